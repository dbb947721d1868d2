"""A real HTTP server for tests of endpoints: it answers chat completions from a function, in a thread of its own."""

import json
import threading
import time
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class ChatServer:
    """Answers POST requests with ``script(body, number)`` and records them.

    ``script`` gets the JSON body and the number of the request, from 0. It returns a string (the content of a
    completion), a mapping (the whole JSON body), or (status, headers, JSON body or bytes); None closes the connection.
    """

    def __init__(self, script):
        self.script, self.bodies, self.headers, self.paths, self.times = script, [], [], [], []
        self.most_at_once = self._now = 0
        self._lock = threading.Lock()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}/v1"

    def serve(self):
        self._server.serve_forever(poll_interval=0.01)

    def close(self):
        self._server.shutdown()
        self._server.server_close()

    def begin(self, handler, body):
        with self._lock:
            self.bodies.append(body)
            self.headers.append(dict(handler.headers))
            self.paths.append(handler.path)
            self.times.append(time.monotonic())
            self._now += 1
            self.most_at_once = max(self.most_at_once, self._now)
            return len(self.bodies) - 1

    def end(self):
        with self._lock:
            self._now -= 1

    def _handler(server):  # ``self`` is the handler below
        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                number = server.begin(self, body)
                try:
                    answer = server.script(body, number)
                finally:
                    server.end()
                if answer is None:
                    self.close_connection = True
                    return
                if isinstance(answer, str):
                    answer = completion(answer)
                status, headers, content = answer if isinstance(answer, tuple) else (200, {}, answer)
                data = content if isinstance(content, bytes) else json.dumps(content).encode()
                self.send_response(status)
                for name, value in {"Content-Length": str(len(data)), **headers}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *_):
                pass

        return Handler


def completion(content, *, finish="stop", usage=(10, 3)):
    """Return the body of a chat completion."""
    counts = {"prompt_tokens": usage[0], "completion_tokens": usage[1]}
    message = {"role": "assistant", "content": content}
    return {"choices": [{"index": 0, "message": message, "finish_reason": finish}], "usage": counts}


@contextmanager
def chat_server(script):
    """Run a ``ChatServer`` in a thread."""
    server = ChatServer(script)
    thread = threading.Thread(target=server.serve, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.close()
        thread.join()
