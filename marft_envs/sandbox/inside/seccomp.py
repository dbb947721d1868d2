"""Seccomp filter: an allow-list of system calls, written as a BPF program and loaded with prctl.

Every call that is not in the two lists below fails with EPERM: sockets, execve, fork, ptrace, mount, unshare,
memfd_create (it is not counted by RLIMIT_AS), shared memory, io_uring, bpf, keyctl, chmod, and the calls that later
kernels add.

The program is built here because the binding on PyPI (pyseccomp 0.1.2) needs libseccomp on the host and is no longer
developed. It is a search tree, not a list: the kernel evaluates a new filter for every system call number, to cache
the numbers that are always allowed.
"""

from __future__ import annotations

import ctypes
import errno
import functools
import os
import platform
import struct

# Allowed with any arguments. name:number on x86_64:number on aarch64, "-" if the machine does not have the call.
_ALLOWED = """
read:0:63 write:1:64 close:3:57 fstat:5:80 lseek:8:62 mprotect:10:226 munmap:11:215 brk:12:214
rt_sigaction:13:134 rt_sigprocmask:14:135 rt_sigreturn:15:139 pread64:17:67 pwrite64:18:68 readv:19:65 writev:20:66
access:21:- pipe:22:- select:23:- pselect6:270:72 mremap:25:216 mincore:27:232
madvise:28:233 msync:26:227 dup:32:23 dup2:33:- dup3:292:24 pause:34:- nanosleep:35:101 getitimer:36:102
setitimer:38:103 alarm:37:- getpid:39:172 shutdown:48:210 exit:60:93 exit_group:231:94 wait4:61:260
waitid:247:95 uname:63:160 fsync:74:82 fdatasync:75:83 ftruncate:77:46 getcwd:79:17 chdir:80:49
fchdir:81:50 readlink:89:- readlinkat:267:78 stat:4:- lstat:6:- newfstatat:262:79 statx:332:291 statfs:137:43
fstatfs:138:44 umask:95:166 gettimeofday:96:169 time:201:- times:100:153 getrlimit:97:163 getrusage:98:165
sysinfo:99:179 getuid:102:174 getgid:104:176 geteuid:107:175 getegid:108:177 getppid:110:173 getpgrp:111:-
getpgid:121:155 getsid:124:156 getgroups:115:158 getresuid:118:148 getresgid:120:150 sigaltstack:131:132
rt_sigpending:127:136 rt_sigtimedwait:128:137 rt_sigsuspend:130:133 gettid:186:178 futex:202:98
sched_getaffinity:204:123 sched_getparam:143:121 sched_getscheduler:145:120 sched_get_priority_max:146:125
sched_get_priority_min:147:126 set_tid_address:218:96 getdents:78:- getdents64:217:61 clock_gettime:228:113
clock_getres:229:114 clock_nanosleep:230:115 epoll_create:213:- epoll_create1:291:20 epoll_ctl:233:21 epoll_wait:232:-
epoll_pwait:281:22 poll:7:- ppoll:271:73 open:2:- openat:257:56 set_robust_list:273:99 get_robust_list:274:100
eventfd:284:- eventfd2:290:19 getrandom:318:278 rseq:334:293 membarrier:324:283 getcpu:309:168 restart_syscall:219:128
faccessat:269:48 faccessat2:439:439 fadvise64:221:223 getsockname:51:204
getpeername:52:205 getpriority:140:141 rename:82:- mkdir:83:- rmdir:84:- unlink:87:- mkdirat:258:34 unlinkat:263:35
renameat:264:38 renameat2:316:276
"""
# Allowed with some arguments only, see ``_conditions``.
_CHECKED = """
clone:56:220 clone3:435:435 kill:62:129 tgkill:234:131 prlimit64:302:261 setrlimit:160:164 socketpair:53:199
sendto:44:206 recvfrom:45:207 getsockopt:55:209 ioctl:16:29 prctl:157:167 fcntl:72:25 mmap:9:222 pipe2:293:59
close_range:436:436 sched_yield:24:124
"""
_MACHINES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}  # column, AUDIT_ARCH

_LOAD, _EQUAL, _FROM, _SET, _AND, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x54, 0x06  # BPF: ld word, jeq, jge, jset, and, ret
_ALLOW, _ERRNO, _KILL = 0x7FFF0000, 0x00050000, 0x80000000
_REFUSE = _ERRNO | errno.EPERM
_NUMBER, _ARCH, _ARGUMENTS = 0, 4, 16  # offsets in struct seccomp_data; an argument is 8 bytes, low half first
_CLONE_THREAD = 0x00010F00  # CLONE_THREAD, VM, FS, FILES, SIGHAND: without FILES it has further descriptors
_CLONE_NEW = 0x7E020080  # every CLONE_NEW* flag
_SHARED, _ANONYMOUS = 0x01, 0x20
_OUT_OF_BAND = 0x1  # MSG_OOB
_CLOSE_RANGE_CLOEXEC = 4
_PIPE_FLAGS = 0o2000000 | 0o4000  # O_CLOEXEC, O_NONBLOCK
_SOL_SOCKET = 1
_SOCKET_OPTIONS = (3, 4, 7, 8, 38, 39)  # type, error, sizes of the buffers, protocol, domain
_IOCTLS = (0x5401, 0x5413, 0x541B, 0x5421, 0x5450, 0x5451)  # TCGETS, TIOCGWINSZ, FIONREAD, FIONBIO, FIO(N)CLEX
_FCNTLS = (0, 1, 2, 3, 4, 5, 6, 7, 1030, 1032, 1034)  # without F_SETOWN and F_SETSIG, which send signals to any process
_PRCTLS = (15, 16, 0x53564D41)  # thread names, names of memory areas
_PRCTL_SET_SECCOMP, _MODE_FILTER = 22, 2
_PID_PLACEHOLDER = 0x5EED1234
_SIGKILL = 9

_libc = ctypes.CDLL(None, use_errno=True)

Instruction = tuple[int, int, int, int]
"""(code, jump if true, jump if false, operand)."""


def supported() -> bool:
    """Return whether the filter supports this machine."""
    return platform.machine() in _MACHINES


@functools.cache
def _template() -> bytes:
    """Return the filter with a placeholder for the process id, as a process may send signals to itself only."""
    column, arch = _MACHINES[platform.machine()]
    allow, refuse = [(_RETURN, 0, 0, _ALLOW)], [(_RETURN, 0, 0, _REFUSE)]
    blocks = dict.fromkeys(_numbers(_ALLOWED, column).values(), allow)
    checked, conditions = _numbers(_CHECKED, column), _conditions(_PID_PLACEHOLDER)
    blocks |= {number: conditions[name] for name, number in checked.items()}
    program = [(_LOAD, 0, 0, _ARCH), (_EQUAL, 1, 0, arch), (_RETURN, 0, 0, _KILL), (_LOAD, 0, 0, _NUMBER)]
    program += _tree(_intervals(blocks, refuse))
    return b"".join(struct.pack("HBBI", *instruction) for instruction in program)


def _intervals(blocks: dict[int, list[Instruction]], other: list[Instruction]) -> list[tuple[int, list[Instruction]]]:
    """Return (first number, block) of each interval of numbers with the same block, from 0. The last is unbounded."""
    found = [(0, other)]
    for number in sorted(blocks):
        if found[-1][0] == number:  # replaces the interval that the previous number opened
            found.pop()
        if not found or found[-1][1] is not blocks[number]:
            found.append((number, blocks[number]))
        found.append((number + 1, other))
    return found


def _tree(intervals: list[tuple[int, list[Instruction]]]) -> list[Instruction]:
    """Return a binary search for the interval of the loaded number, with its block at each leaf."""
    if len(intervals) == 1:
        return intervals[0][1]
    half = len(intervals) // 2
    below, above = _tree(intervals[:half]), _tree(intervals[half:])
    return [(_FROM, len(below), 0, intervals[half][0]), *below, *above]


@functools.cache
def _prepared() -> tuple[ctypes.Array[ctypes.c_char], bytes]:
    """Return a buffer for the filter, and the struct sock_fprog that points to it."""
    size = len(_template())
    buffer = ctypes.create_string_buffer(size)
    return buffer, struct.pack("HxxxxxxP", size // 8, ctypes.addressof(buffer))


def prepare() -> None:
    """Build the parts that are the same for every process, before processes are forked."""
    _prepared()


def load() -> None:
    """Apply the filter to the calling process, permanently.

    Requires no_new_privs. Raises OSError if the kernel refuses the filter.
    """
    buffer, header = _prepared()
    buffer.raw = _template().replace(struct.pack("I", _PID_PLACEHOLDER), struct.pack("I", os.getpid()))
    if _libc.prctl(_PRCTL_SET_SECCOMP, _MODE_FILTER, header, 0, 0):
        raise OSError(ctypes.get_errno(), f"seccomp: {os.strerror(ctypes.get_errno())}")


def _numbers(lists: str, column: int) -> dict[str, int]:
    rows = [row.split(":") for row in lists.split()]
    return {name: int(numbers[column]) for name, *numbers in rows if numbers[column] != "-"}


def _conditions(pid: int) -> dict[str, list[Instruction]]:
    """Return the instructions that decide a call by its arguments. Every path through a block ends in a return."""
    yes, no = (_RETURN, 0, 0, _ALLOW), (_RETURN, 0, 0, _REFUSE)
    not_implemented, done = (_RETURN, 0, 0, _ERRNO | errno.ENOSYS), (_RETURN, 0, 0, _ERRNO)
    # Only to itself, and not SIGKILL. A SIGKILL can then only come from the host, where it is a fault of the grader:
    # a program cannot use it to avoid a verdict.
    kill, tgkill = (
        [_argument(0), (_EQUAL, 0, 3, pid), _argument(signal), (_EQUAL, 1, 0, _SIGKILL), yes, no] for signal in (1, 2)
    )
    threads = [*_masked(0, _CLONE_THREAD | _CLONE_NEW, _CLONE_THREAD), yes, no]
    stream_of_unix = [_argument(0), (_EQUAL, 0, 4, 1), _argument(1), (_AND, 0, 0, 0xF), (_EQUAL, 0, 1, 1), yes, no]
    in_band = [_argument(3), (_SET, 1, 0, _OUT_OF_BAND), yes, no]
    no_address = [_argument(4), (_EQUAL, 0, 5, 0), _argument(4, high=True), (_EQUAL, 0, 3, 0), *in_band]
    # Setting a limit reports success and does nothing, so that programs which raise their stack limit continue.
    getter = [_argument(2), (_EQUAL, 0, 3, 0), _argument(2, high=True), (_EQUAL, 0, 1, 0), yes, done]
    return {
        "clone": threads,
        # A filter cannot read the flags of clone3, which are in memory. The C library falls back to clone.
        "clone3": [not_implemented],
        "kill": kill,
        "tgkill": tgkill,
        "prlimit64": getter,
        "setrlimit": [done],
        "socketpair": stream_of_unix,  # asyncio needs it; a datagram socket could send to any path
        "sendto": no_address,
        "recvfrom": in_band,
        "getsockopt": [_argument(1), (_EQUAL, 1, 0, _SOL_SOCKET), no, _argument(2), *_one_of(_SOCKET_OPTIONS), no],
        # The memory of a shared mapping stays allocated, and is no longer counted, when most of it is unmapped.
        "mmap": [*_masked(3, _SHARED | _ANONYMOUS, _SHARED | _ANONYMOUS), no, yes],
        "pipe2": [*_masked(1, ~_PIPE_FLAGS & 0xFFFFFFFF, 0), yes, no],
        # CLOSE_RANGE_UNSHARE gives a thread descriptors of its own, which no limit counts together.
        "close_range": [*_masked(2, ~_CLOSE_RANGE_CLOEXEC & 0xFFFFFFFF, 0), yes, no],
        # Reports success and does nothing: a program could otherwise wait without end and look as if it had no core.
        "sched_yield": [done],
        "ioctl": [_argument(1), *_one_of(_IOCTLS), (_RETURN, 0, 0, _ERRNO | errno.ENOTTY)],
        "fcntl": [_argument(1), *_one_of(_FCNTLS), no],
        "prctl": [_argument(0), *_one_of(_PRCTLS), no],
    }


def _masked(index: int, mask: int, value: int) -> list[Instruction]:
    """Return instructions after which the next one runs if ``argument & mask == value``, else the one after it."""
    return [_argument(index), (_AND, 0, 0, mask), (_EQUAL, 0, 1, value)]


def _argument(index: int, high: bool = False) -> Instruction:
    return (_LOAD, 0, 0, _ARGUMENTS + 8 * index + 4 * high)


def _one_of(values: tuple[int, ...]) -> list[Instruction]:
    return [step for value in values for step in ((_EQUAL, 0, 1, value), (_RETURN, 0, 0, _ALLOW))]
