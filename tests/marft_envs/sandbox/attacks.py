# ruff: noqa: E501
"""Programs that attack the sandbox. ``battery.py`` runs them in the sandbox under test; run them nowhere else.

Each does little harm even if it is not contained. The lines of its input are: a canary file, a folder, a TCP port, the
path of a unix socket, the name of an abstract unix socket, the process id of a victim, and the process id of the
caller. A program whose attack succeeds prints ESCAPED. SECURITY.md lists the attacks by claim.
"""

HEAD = """
import os, sys, socket, ctypes, signal, time, struct, threading
CANARY, FOLDER, PORT, UNIX, ABSTRACT, VICTIM, TRAINER = [input() for _ in range(7)]
PORT, VICTIM, TRAINER = int(PORT), int(VICTIM), int(TRAINER)
libc = ctypes.CDLL(None, use_errno=True)
def escaped(what=""):
    print("ESCAPED", what, flush=True)
def tried(*attempts):
    for attempt in attempts:
        try:
            result = attempt()
        except (OSError, ValueError, AttributeError, ImportError, RuntimeError, EOFError, MemoryError) as error:
            continue
        if result is not False and not (isinstance(result, int) and not isinstance(result, bool) and result < 0):
            escaped(repr(result)[:80])
def syscall(number, *arguments):
    return libc.syscall(number, *arguments)
# At the level "namespace" the host's folders do not exist, and these are the program's own.
OWN = () if os.path.exists(FOLDER) else ("/tmp", "/dev/shm", ".")
"""

NETWORK = {
    "tcp": 'tried(lambda: socket.create_connection(("127.0.0.1", PORT), timeout=1))',
    "tcp_v6": "tried(lambda: socket.socket(socket.AF_INET6).bind(('::1', 0)))",
    "listen": 'tried(lambda: socket.socket().bind(("127.0.0.1", 0)), lambda: socket.create_server(("127.0.0.1", 0)))',
    "udp": 'tried(lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"x", ("127.0.0.1", PORT)))',
    "unix": "tried(lambda: socket.socket(socket.AF_UNIX).connect(UNIX))",
    "abstract": r'tried(lambda: socket.socket(socket.AF_UNIX).connect("\0" + ABSTRACT))',
    "datagram_pair": """
def send():
    a, b = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    return a.sendto(b"x", UNIX)
tried(send)""",
    "stream_pair_with_address": """
def send():
    a, b = socket.socketpair()
    return a.sendto(b"x", UNIX)
tried(send)""",
    "netlink_raw_packet": """
tried(lambda: socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0),
      lambda: socket.socket(socket.AF_INET, socket.SOCK_RAW, 1),
      lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0))""",
    "raw_syscall": "tried(lambda: syscall(41, 2, 1, 0), lambda: syscall(425, 4, 0))",
    "out_of_band": """
a, b = socket.socketpair()
b.setblocking(False)
tried(lambda: a.send(b"x", socket.MSG_OOB), lambda: b.recv(1, socket.MSG_OOB))""",
    "handle_of_the_peer": """
a, b = socket.socketpair()
tried(lambda: a.getsockopt(socket.SOL_SOCKET, 77), lambda: a.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12),
      lambda: a.getsockopt(socket.SOL_SOCKET, socket.SO_PEERSEC, 99))""",
}
READING = {
    "canary": "tried(lambda: open(CANARY).read(), lambda: os.open(CANARY, os.O_RDONLY))",
    "passwd": "tried(lambda: open('/etc/passwd').read(), lambda: open('/etc/shadow').read())",
    "environment": """
tried(lambda: open("/proc/self/environ").read(), lambda: open(f"/proc/{TRAINER}/environ").read(),
      lambda: open("/proc/1/environ").read(), lambda: len(os.environ.get("MARFT_CANARY", "")) - 1)
if "MARFT_CANARY" in str(dict(os.environ)): escaped()""",
    "listing": "tried(lambda: os.listdir('/'), lambda: os.listdir(FOLDER), lambda: os.listdir('/proc'), "
    "*[lambda f=f: os.listdir(f) != [] or f not in OWN and [] for f in ('/tmp', '.', '/dev/shm')])",
    "processes": """
tried(lambda: open(f"/proc/{os.getppid()}/mem", "rb"), lambda: open(f"/proc/{TRAINER}/mem", "rb"),
      lambda: open("/proc/self/mem", "rb"), lambda: os.listdir(f"/proc/{os.getppid()}/fd"),
      lambda: open(f"/proc/{TRAINER}/cmdline").read(), lambda: open("/proc/self/maps").read())""",
    "installed_packages": """
import sysconfig
packages = os.path.join(sysconfig.get_path("stdlib"), "site-packages")
tried(lambda: os.listdir(packages), lambda: open(packages + "/README.txt").read())
try:
    import pettingzoo
    escaped()
except ImportError:
    pass""",
    "by_handle": """
handle = ctypes.create_string_buffer(struct.pack("Ii", 128, 0) + bytes(128))
mount = ctypes.c_int()
tried(lambda: libc.name_to_handle_at(-100, CANARY.encode(), handle, ctypes.byref(mount), 0),
      lambda: libc.open_by_handle_at(-100, handle, 0))""",
    "leftover_descriptors": """
for number in range(3, 1024):
    try:
        os.fstat(number)
        escaped(number)
    except OSError:
        pass""",
}
WRITING = {
    "new_file": "tried(*[lambda f=f: os.open(f + '/x', os.O_CREAT | os.O_WRONLY, 0o666) "
    "for f in {FOLDER, '/tmp', '/dev/shm', '/var/tmp', '.', '/', '/dev', '/proc', '/usr/lib'} - {*OWN}])",
    "many_new_files": """
count = size = 0
try:
    while count < 2000:
        with open(f"/tmp/{count}", "wb") as f: size += f.write(b"x" * (3 << 20))
        count += 1
except OSError:
    pass
if count > 256 or size > 20 << 20 or count and not OWN: escaped((count, size))""",
    "special_new_files": """
tried(lambda: os.symlink(CANARY, "/tmp/l") or True, lambda: os.mkfifo("/tmp/f") or True,
      lambda: os.mknod("/tmp/n", 0o20666, os.makedev(1, 1)) or True, lambda: os.link("/dev/null", "/tmp/h") or True,
      lambda: os.rename("/usr/lib", "/tmp/lib") or True, lambda: os.chmod("/tmp", 0o777) or True)""",
    "canary": "tried(lambda: open(CANARY, 'a'), lambda: os.truncate(CANARY, 0), lambda: os.open(CANARY, os.O_RDWR))",
    "names": """
tried(lambda: os.unlink(CANARY) or True, lambda: os.rename(CANARY, CANARY + "2") or True,
      lambda: os.symlink(CANARY, FOLDER + "/l") or True, lambda: os.link(CANARY, FOLDER + "/h") or True,
      lambda: os.mkdir(FOLDER + "/d") or True, lambda: os.rmdir(FOLDER) or True)""",
    "attributes": """
tried(lambda: os.chmod(CANARY, 0o600) or True, lambda: os.utime(CANARY, (0, 0)) or True,
      lambda: os.chown(CANARY, os.getuid(), -1) or True, lambda: os.setxattr(CANARY, "user.x", b"1") or True)""",
    "cgroups": """
folder = "/sys/fs/cgroup"
tried(lambda: open("/proc/self/cgroup").read(), lambda: os.listdir(folder), lambda: os.mkdir(folder + "/x") or True,
      *[lambda name=name: os.open(f"{folder}/{name}", os.O_WRONLY)
        for name in ("cgroup.procs", "cgroup.subtree_control", "supervisor/cgroup.procs", "supervisor/memory.max")])""",
    "nodes": "tried(lambda: os.mkfifo(FOLDER + '/f') or True, lambda: os.mknod(FOLDER + '/n') or True)",
    "input": """
tried(lambda: os.write(0, b"x"), lambda: os.write(os.open("/proc/self/fd/0", os.O_RDWR), b"x" * 9),
      lambda: os.ftruncate(0, 1 << 30) or True)""",
    "standard_library": "tried(lambda: open(os.__file__, 'a'), lambda: open(os.__cached__, 'ab'))",
}
PROCESSES = {
    "fork": """
for _ in range(50):
    try:
        if os.fork() == 0:
            time.sleep(3); os._exit(0)
    except OSError:
        break
    escaped()""",
    "vfork_clone": "tried(lambda: syscall(58), lambda: syscall(57), lambda: syscall(56, 17, 0, 0, 0, 0), "
    "lambda: syscall(435, ctypes.create_string_buffer(88), 88))",
    "execute": """
import subprocess
tried(lambda: subprocess.run(["/bin/true"]), lambda: os.posix_spawn("/bin/true", ["true"], {}),
      lambda: os.execv("/bin/true", ["true"]), lambda: os.system("true") == 0)""",
    "multiprocessing": """
import multiprocessing
tried(lambda: multiprocessing.get_context("fork").Process(target=print).start() or True)""",
    "daemon": """
def daemon():
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            time.sleep(3)
        os._exit(0)
    return True
tried(daemon, lambda: os.setsid())""",
    "threads": """
threading.stack_size(65536)
alive = []
try:
    for _ in range(2000):
        alive.append(threading.Thread(target=time.sleep, args=(0.5,), daemon=True))
        alive[-1].start()
except RuntimeError:
    pass
if len(alive) > 1000: escaped(len(alive))""",
    "thread_with_its_own_descriptors": """
# close_range with CLOSE_RANGE_UNSHARE; clone of a thread that does not share its descriptors, which must not start
tried(lambda: syscall(436, 1000, 1000, 2), lambda: syscall(436, 1000, 1000, 6))
number = {"x86_64": 56, "aarch64": 220}[os.uname().machine]
tried(lambda: syscall(number, 0x10B00, None, None, None, None))""",
}
SIGNALS = {
    "kill": """
tried(*[lambda p=p: os.kill(p, 0) or True for p in (VICTIM, TRAINER, os.getppid(), 1, -1, 0)],
      lambda: os.killpg(0, 0) or True, lambda: syscall(234, VICTIM, VICTIM, 0), lambda: syscall(200, VICTIM, 0))""",
    "kill_for_real": """
for p in (VICTIM, os.getppid()):
    try:
        os.kill(p, signal.SIGKILL)
        escaped(p)
    except OSError:
        pass""",
    "queued_and_by_handle": """
info = ctypes.create_string_buffer(128)
tried(lambda: syscall(129, VICTIM, 9, info), lambda: syscall(297, VICTIM, VICTIM, 9, info),
      lambda: os.pidfd_open(VICTIM), lambda: syscall(424, 0, 9, 0, 0))""",
    "by_descriptor_owner": """
import fcntl
a, b = os.pipe()
tried(lambda: fcntl.fcntl(a, fcntl.F_SETOWN, VICTIM) + 1, lambda: fcntl.fcntl(a, 10, 9) + 1)""",
    "timers_of_others": "tried(lambda: syscall(222, 1, ctypes.create_string_buffer(struct.pack('QIII', 0, 9, 4, VICTIM)"
    " + bytes(44)), ctypes.create_string_buffer(8)))",
    "priority": """
tried(lambda: os.setpriority(os.PRIO_PROCESS, VICTIM, 19) or True, lambda: os.sched_setaffinity(VICTIM, {0}) or True)
syscall(302, VICTIM, 0, ctypes.create_string_buffer(16), 0)  # prlimit64 reports success; battery.py checks that nothing changed""",
    "trace": """
tried(lambda: libc.ptrace(16, VICTIM, 0, 0), lambda: libc.ptrace(16, os.getppid(), 0, 0),
      lambda: libc.ptrace(0, 0, 0, 0), lambda: syscall(310, TRAINER, 0, 0, 0, 0, 0),
      lambda: syscall(311, TRAINER, 0, 0, 0, 0, 0), lambda: syscall(312, TRAINER, TRAINER, 0, 0, 0))""",
}
KERNEL = {
    "namespaces": """
tried(*[lambda f=f: libc.unshare(f) for f in (0x10000000, 0x20000, 0x20000000, 0x40000000, 0x4000000, 0x8000000)],
      lambda: libc.setns(0, 0), lambda: syscall(56, 0x10000000 | 17, 0, 0, 0, 0))""",
    "mounts": """
tried(lambda: libc.mount(b"tmpfs", b"/tmp", b"tmpfs", 0, 0), lambda: libc.chroot(b"/tmp"),
      lambda: libc.umount2(b"/proc", 2), lambda: syscall(155, b"/", b"/"), lambda: syscall(428, -100, b"/", 0))""",
    "identity": "tried(lambda: os.setuid(0) or True, lambda: os.setgid(0) or True, lambda: os.setgroups([0]) or True, "
    "lambda: os.setresuid(0, 0, 0) or True)",
    "calls_nobody_needs": """
# bpf, keyctl, add_key, perf_event_open, userfaultfd, personality, reboot, sethostname, settimeofday, init_module,
# kexec_load, swapon, acct, quotactl, io_uring_setup, fanotify_init, inotify_init, lookup_dcookie, syslog, iopl
for number in (321, 250, 248, 298, 323, 135, 169, 170, 164, 175, 246, 167, 163, 179, 425, 300, 253, 212, 103, 172):
    if syscall(number, 0, 0, 0, 0, 0) >= 0: escaped(number)
    elif ctypes.get_errno() not in (1, 38): escaped((number, ctypes.get_errno()))""",
    "second_table": "if os.uname().machine == 'x86_64':\n"
    "    tried(lambda: syscall(0x40000000 + 39), lambda: syscall(0x40000000 + 57))",
    "int_0x80": """
# int 0x80 reaches the 32-bit table: getpid is 20 there
import mmap
if os.uname().machine == "x86_64":
    code = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    code.write(b"\\xb8\\x14\\x00\\x00\\x00\\xcd\\x80\\xc3")
    call = ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(code)))
    if call() == os.getpid(): escaped()""",
    "raise_limits": """
import resource
for what in (resource.RLIMIT_AS, resource.RLIMIT_FSIZE, resource.RLIMIT_NPROC, resource.RLIMIT_CPU):
    before = resource.getrlimit(what)
    try: resource.setrlimit(what, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    except (OSError, ValueError): pass
    if resource.getrlimit(what) != before: escaped(what)""",
    "undo_the_confinement": "tried(lambda: libc.prctl(22, 0, 0, 0, 0), lambda: libc.prctl(38, 0, 0, 0, 0), "
    "lambda: syscall(317, 1, 0, 0), lambda: syscall(444, 0, 0, 1))",
}
MEMORY = {
    "beyond_the_limit": "a = bytearray(400 << 20)\ntime.sleep(0.3)\nescaped()",
    "beyond_the_limit_for_a_moment": "a = bytearray(400 << 20)\ndel a\nprint(1)",
    "beyond_the_limit_in_threads": """
kept = []
def take():
    for _ in range(400): kept.append(bytearray(1 << 20))
threads = [threading.Thread(target=take) for _ in range(4)]
[t.start() for t in threads]
[t.join() for t in threads]
time.sleep(0.3)
escaped()""",
    "unmapped_shared_map": """
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
libc.madvise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
held = 0
for _ in range(20):  # each leaves 64 MiB allocated, of which one page is mapped
    start = libc.mmap(None, 64 << 20, 3, 0x21, -1, 0)
    if start in (None, (1 << 64) - 1): break
    libc.madvise(ctypes.c_void_p(start), 64 << 20, 23)  # MADV_POPULATE_WRITE
    held += libc.munmap(start + 4096, (64 << 20) - 4096) == 0
    if held > 4: escaped(held); break""",
    "shared_map_of_zeros": "tried(lambda: open('/dev/zero', 'rb'), lambda: os.open('/dev/zero', os.O_RDWR))",
    "sockets": """
held, size = [], 0
try:
    while len(held) < 4000:
        held.append(socket.socketpair())
        for end in held[-1]:
            end.setblocking(False)
            try:
                while True: size += end.send(b"x" * 65536)
            except BlockingIOError:
                pass
except OSError:
    pass
if len(held) > 32 or size > 32 << 20: escaped((len(held), size))""",
    "sockets_in_threads": """
sizes = []
def fill():
    libc.syscall(436, 3, 1000, 2)  # close_range with CLOSE_RANGE_UNSHARE
    held, size = [], 0
    try:
        while True:
            held.append(socket.socketpair())
            for end in held[-1]:
                end.setblocking(False)
                try:
                    while True: size += end.send(b"x" * 65536)
                except BlockingIOError:
                    pass
    except OSError:
        sizes.append(size)
        time.sleep(0.2)
threading.stack_size(65536)
threads = [threading.Thread(target=fill) for _ in range(20)]
[t.start() for t in threads]
[t.join() for t in threads]
if sum(sizes) > 32 << 20: escaped(sum(sizes))""",
    "one_process": "a = []\nwhile len(a) < 200: a.append(bytearray(64 << 20))\nescaped()",
    "small_pieces": "a = []\nwhile len(a) < 40_000_000: a.append([0] * 8)\nescaped()",
    "shared_map": """
import mmap
kept = []
def take():
    for _ in range(40):
        kept.append(mmap.mmap(-1, 256 << 20))
        kept[-1][::4096] = b"x" * len(range(0, 256 << 20, 4096))
    return True
tried(take)""",
    "memory_files": "tried(lambda: os.memfd_create('x'), lambda: syscall(319, b'x', 0), lambda: syscall(447, 0))",
    "system_v": "tried(lambda: libc.shmget(0, 1 << 20, 0o1600), lambda: libc.msgget(0, 0o1600), "
    "lambda: libc.semget(0, 1, 0o1600))",
    "posix": """
tried(lambda: libc.mq_open(b"/x", 64, 0o600, 0))
from _posixshmem import shm_open
if not OWN: tried(lambda: shm_open("/marft", os.O_CREAT | os.O_RDWR, 0o600))
else: tried(lambda: os.posix_fallocate(shm_open("/marft", os.O_CREAT | os.O_RDWR, 0o600), 0, 20 << 20) or True)""",
    "sparse_output": "tried(lambda: os.ftruncate(1, 1 << 40) or True, lambda: os.posix_fallocate(1, 0, 1 << 34) or True,"
    " lambda: os.pwrite(1, b'x', 1 << 36))",
    "pipes": """
import fcntl
held = 0
try:
    while held < 4000:
        a, b = os.pipe()
        fcntl.fcntl(b, fcntl.F_SETPIPE_SZ, 1 << 20)
        held += 1
except (OSError, AttributeError):
    pass
if held > 64: escaped(held)""",
}
TIME = {
    "loop": "while True: pass",
    "loop_in_c": "pow(3, 10 ** 9)",
    "regular_expression": "import re\nre.match('(a+)+$', 'a' * 64 + 'b')",
    "loops_in_threads": """
for _ in range(8): threading.Thread(target=lambda: sum(iter(int, 1)), daemon=True).start()
while True: pass""",
    "sleep": "time.sleep(100)",
    "stopped": "os.kill(os.getpid(), signal.SIGSTOP)",
    "ignores_signals": """
for number in range(1, 65):
    try: signal.signal(number, signal.SIG_IGN)
    except (OSError, ValueError): pass
while True: pass""",
    "waits_for_input": "import select\nselect.select([], [], [])",
    "busy_sleep": "while True: time.sleep(0.001)",
    "sleep_to_one_tick": """
threading.stack_size(65536)
def f():
    n = int(time.monotonic() * 25) + 2
    while True:
        left = n / 25 - time.monotonic()
        if left > 0: time.sleep(left)
        n += 1
for _ in range(59): threading.Thread(target=f, daemon=True).start()
f()""",
    "short_sleeps_in_threads": """
threading.stack_size(65536)
def f():
    while True: time.sleep(0.02)
for _ in range(40): threading.Thread(target=f, daemon=True).start()
f()""",
    "wakes_its_threads": """
threading.stack_size(65536)
tick = threading.Condition()
def f():
    while True:
        with tick: tick.wait()
for _ in range(30): threading.Thread(target=f, daemon=True).start()
while True:
    time.sleep(0.03)
    with tick: tick.notify_all()""",
    "yields": "while True: os.sched_yield()",
    "exit_handler": "import atexit\natexit.register(lambda: time.sleep(100))",
    "thread_left": "threading.Thread(target=time.sleep, args=(100,)).start()",
}
OUTPUT = {
    "stdout": "for _ in range(4096): sys.stdout.write('A' * (1 << 20))",
    "stderr": "for _ in range(4096): sys.stderr.write('A' * (1 << 20))",
    "raw": "while True: os.write(1, b'A' * (1 << 20))",
    "flood_in_threads": """
for _ in range(8): threading.Thread(target=lambda: [os.write(1, b"A" * (1 << 20)) for _ in range(999)]).start()""",
    "crash": "ctypes.string_at(0)",
    "abort": "os.abort()",
    "recursion": "sys.setrecursionlimit(10**9)\ndef f(n): return sorted([n], key=f)\nf(0)",
}
GROUPS = {
    "network": NETWORK, "reading": READING, "writing": WRITING, "processes": PROCESSES, "signals": SIGNALS,
    "kernel": KERNEL, "memory": MEMORY, "time": TIME, "output": OUTPUT,
}  # fmt: skip
RETURNED = {
    "deep": "def f():\n    x = []\n    for _ in range(10**5): x = [x]\n    return x",
    "cycle": "def f():\n    x = []\n    x.append(x)\n    return x",
    "cycle_of_dicts": "def f():\n    x = {}\n    x[1] = x\n    return x",
    "huge_int": "def f(): return 1 << (1 << 25)",
    "flood": "def f(): return 'A' * (64 << 20)",
    "many": "def f(): return [0] * 10**7",
    "endless": "def f():\n    while True: yield 1",
    "colliding_keys": "def f(): return {i * (2**61 - 1): 0 for i in range(1000)}",
    "raw_digits": "import os\ndef f():\n    os.write(3, b'9' * (3 << 20))\n    os._exit(0)",
    "raw_brackets": "import os\ndef f():\n    os.write(3, b'[' * (3 << 20))\n    os._exit(0)",
    "raw_nonsense": "import os\ndef f():\n    os.write(3, bytes(range(256)) * 999)\n    os._exit(0)",
    "raw_colliding": "import os\ndef f():\n    os.write(3, ('{\"dict\": [' + ','.join('[{\"int\":\"%x\"},0]' % (i * (2**61 - 1))"
    " for i in range(99999)) + ']}').encode())\n    os._exit(0)",
}  # fmt: skip
"""Functions whose return values would stall or confuse the process that reads them. They run as kind "call"."""
