"""Program of the self-test: it attempts everything that must be impossible in a confined child.

It prints one line, a JSON list of the attempts that succeeded. Its input has three lines: ``SECRET`` (a file that every
user may read), ``PORT`` and ``ABSTRACT`` (a TCP port and an abstract unix socket that listen on this host).
"""

# ruff: noqa: PTH101, PTH108, PTH110, PTH120, PTH123, PTH208
# mypy: disable-error-code="func-returns-value"

import ctypes
import json
import os
import signal
import socket


def read_file() -> object:
    return open(SECRET).read()


def read_environment() -> object:
    return open("/proc/self/environ", "rb").read()


def list_folder() -> object:
    return os.listdir("/") + os.listdir(os.path.dirname(SECRET))


def write_file() -> object:
    """Create a file. The folder for temporary files is the program's own where the host's tree is not visible."""
    host = os.path.dirname(SECRET)
    shared = ("/tmp", "/dev/shm", ".") if os.path.exists(host) else ()
    for folder in (host, "/var/tmp", "/", "/dev", *shared):
        try:
            return os.open(f"{folder}/probe-{os.getpid()}", os.O_CREAT | os.O_WRONLY)
        except OSError:
            continue
    raise OSError("nowhere")


def overwrite_file() -> object:
    return os.open(SECRET, os.O_WRONLY)


def delete_file() -> object:
    return os.unlink(SECRET)


def change_mode() -> object:
    return os.chmod(SECRET, 0o777)


def tcp() -> object:
    return socket.create_connection(("127.0.0.1", PORT), timeout=1)


def udp() -> object:
    return socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"x", ("127.0.0.1", PORT))


def abstract_socket() -> object:
    return socket.socket(socket.AF_UNIX).connect(f"\0{ABSTRACT}")


def fork() -> object:
    child = os.fork()
    if child == 0:
        os._exit(0)
    return os.waitpid(child, 0)


def execute() -> object:
    return os.posix_spawn("/bin/true", ["true"], {})


def signal_another() -> object:
    return os.kill(os.getppid(), 0)


def trace() -> object:
    # PTRACE_SEIZE, which does not stop the server
    return checked(ctypes.CDLL(None, use_errno=True).ptrace(0x4206, os.getppid(), 0, 0))


def new_namespace() -> object:
    return checked(ctypes.CDLL(None, use_errno=True).unshare(0x10000000))


def memory_file() -> object:
    return os.memfd_create("x")


def raise_limit() -> object:
    import resource

    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (before[0] // 2, before[1]))
    if resource.getrlimit(resource.RLIMIT_AS) == before:
        raise OSError("no effect")
    return True


def checked(result: int) -> int:
    if result < 0:
        raise OSError(ctypes.get_errno(), "refused")
    return result


ATTEMPTS = (
    read_file, read_environment, list_folder, write_file, overwrite_file, delete_file, change_mode, tcp, udp,
    abstract_socket, fork, execute, signal_another, trace, new_namespace, memory_file, raise_limit,
)  # fmt: skip


def attempt_all() -> list[str]:
    could = []
    for attempt in ATTEMPTS:
        try:
            attempt()
        except (OSError, ValueError):
            continue
        could.append(attempt.__name__)
    return could


if __name__ == "__main__":
    SECRET, port, ABSTRACT = input(), input(), input()
    PORT = int(port)
    signal.alarm(20)
    import colorsys  # noqa: F401 - the server has not loaded it: checks that imports still work

    print(json.dumps(attempt_all()))
