"""The seccomp filter, evaluated in Python as the kernel evaluates it. It is not applied to any process."""

import errno
import platform
import struct

import pytest

from marft_envs.sandbox.inside import seccomp

pytestmark = pytest.mark.skipif(platform.machine() != "x86_64", reason="the numbers below are those of x86_64")

X86_64, X32_BIT, SELF = 0xC000003E, 0x40000000, 4242
ALLOW, KILL, REFUSE = 0x7FFF0000, 0x80000000, 0x00050000 | errno.EPERM
NOT_IMPLEMENTED, SUCCESS = 0x00050000 | errno.ENOSYS, 0x00050000
THREAD = 0x00010000 | 0x00000F00  # CLONE_THREAD with VM, FS, FILES, SIGHAND
FILES = 0x400


@pytest.fixture(scope="module")
def program():
    seccomp.prepare()
    text = seccomp._template().replace(struct.pack("I", seccomp._PID_PLACEHOLDER), struct.pack("I", SELF))
    return [struct.unpack_from("HBBI", text, at) for at in range(0, len(text), 8)]


def decide(program, number, *arguments, arch=X86_64):
    """Return the decision of the filter: the value of the return instruction that is reached."""
    data = struct.pack("IIQ6Q", number, arch, 0, *arguments, *[0] * (6 - len(arguments)))
    held, at = 0, 0
    while True:
        code, yes, no, operand = program[at]
        at += 1
        match code:
            case 0x20:
                held = struct.unpack_from("I", data, operand)[0]
            case 0x54:
                held &= operand
            case 0x06:
                return operand
            case 0x15 | 0x35 | 0x45:
                holds = {0x15: held == operand, 0x35: held >= operand, 0x45: bool(held & operand)}[code]
                at += yes if holds else no


def test_exactly_the_listed_numbers_are_allowed(program):
    allowed = set(seccomp._numbers(seccomp._ALLOWED, 0).values())
    checked = set(seccomp._numbers(seccomp._CHECKED, 0).values())
    assert len(allowed) > 100 and not allowed & checked
    for number in {*range(1000), X32_BIT - 1, 0xFFFFFFFF} - checked:
        assert decide(program, number) == (ALLOW if number in allowed else REFUSE), number


@pytest.mark.parametrize("number", [0, 1, 56, 59, 231])
def test_x32_calls_and_other_machines_are_refused(program, number):
    assert decide(program, number | X32_BIT) == REFUSE
    assert decide(program, number, arch=0x40000003) == KILL  # i386, where the numbers mean other calls


@pytest.mark.parametrize(
    ("number", "arguments", "answer"),
    [
        pytest.param(56, [THREAD], ALLOW, id="clone-a-thread"),
        pytest.param(56, [17], REFUSE, id="clone-a-process"),
        pytest.param(56, [THREAD | 0x10000000], REFUSE, id="clone-into-a-user-namespace"),
        pytest.param(56, [THREAD & ~FILES], REFUSE, id="clone-a-thread-with-its-own-descriptors"),
        pytest.param(56, [THREAD | 0x003D0000], ALLOW, id="clone-a-thread-as-the-C-library-does"),
        pytest.param(57, [], REFUSE, id="fork"),
        pytest.param(59, [], REFUSE, id="execve"),
        pytest.param(101, [], REFUSE, id="ptrace"),
        pytest.param(41, [2, 1], REFUSE, id="socket"),
        pytest.param(319, [], REFUSE, id="memfd_create"),
        pytest.param(435, [], NOT_IMPLEMENTED, id="clone3"),
        pytest.param(62, [SELF, 15], ALLOW, id="kill-itself"),
        pytest.param(62, [SELF, 9], REFUSE, id="kill-itself-with-SIGKILL"),
        pytest.param(62, [SELF + 1, 15], REFUSE, id="kill-another"),
        pytest.param(62, [0, 15], REFUSE, id="kill-its-group"),
        pytest.param(234, [SELF, SELF, 6], ALLOW, id="tgkill-itself"),
        pytest.param(234, [1, 1, 6], REFUSE, id="tgkill-another"),
        pytest.param(302, [0, 7, 0], ALLOW, id="prlimit-asks"),
        pytest.param(302, [0, 7, 1 << 40], SUCCESS, id="prlimit-sets"),
        pytest.param(53, [1, 1 | 0o2000000], ALLOW, id="socketpair-of-streams"),
        pytest.param(53, [1, 2], REFUSE, id="socketpair-of-datagrams"),
        pytest.param(53, [2, 1], REFUSE, id="socketpair-of-internet"),
        pytest.param(44, [3, 0, 1, 0, 0], ALLOW, id="sendto-its-peer"),
        pytest.param(44, [3, 0, 1, 0, 1 << 33], REFUSE, id="sendto-an-address"),
        pytest.param(44, [3, 0, 1, 1, 0], REFUSE, id="sendto-out-of-band"),
        pytest.param(45, [3, 0, 1, 2, 0, 0], ALLOW, id="recvfrom-peeks"),
        pytest.param(45, [3, 0, 1, 1, 0, 0], REFUSE, id="recvfrom-out-of-band"),
        pytest.param(55, [3, 1, 4], ALLOW, id="getsockopt-SO_ERROR"),
        pytest.param(55, [3, 1, 77], REFUSE, id="getsockopt-SO_PEERPIDFD"),
        pytest.param(55, [3, 6, 4], REFUSE, id="getsockopt-of-TCP"),
        pytest.param(9, [0, 4096, 3, 0x22], ALLOW, id="mmap-private-and-anonymous"),
        pytest.param(9, [0, 4096, 1, 0x01], ALLOW, id="mmap-a-file-shared"),
        pytest.param(9, [0, 4096, 3, 0x21], REFUSE, id="mmap-shared-and-anonymous"),
        pytest.param(9, [0, 4096, 3, 0x23], REFUSE, id="mmap-shared-validated-and-anonymous"),
        pytest.param(293, [0, 0o2000000 | 0o4000], ALLOW, id="pipe2"),
        pytest.param(293, [0, 0o200], REFUSE, id="pipe2-of-notifications"),
        pytest.param(293, [0, 0o40000], REFUSE, id="pipe2-of-packets"),
        pytest.param(436, [3, 9, 0], ALLOW, id="close_range"),
        pytest.param(436, [3, 9, 4], ALLOW, id="close_range-at-exec"),
        pytest.param(436, [3, 9, 2], REFUSE, id="close_range-unshares"),
        pytest.param(24, [], SUCCESS, id="sched_yield"),
        pytest.param(16, [0, 0x5401], ALLOW, id="ioctl-is-a-terminal"),
        pytest.param(16, [0, 0x5412], 0x00050000 | errno.ENOTTY, id="ioctl-types-into-a-terminal"),
        pytest.param(72, [0, 1], ALLOW, id="fcntl-flags"),
        pytest.param(72, [0, 8], REFUSE, id="fcntl-F_SETOWN"),
        pytest.param(157, [15], ALLOW, id="prctl-names-a-thread"),
        pytest.param(157, [4], REFUSE, id="prctl-dumpable"),
    ],
)
def test_calls_that_depend_on_their_arguments(program, number, arguments, answer):
    assert decide(program, number, *arguments) == answer


def test_every_path_through_the_filter_is_short(program):
    """The kernel evaluates it for every system call number in every new process."""
    assert len(program) < 400
    depth = max(_steps(program, number) for number in range(500))
    assert depth <= 30, depth


def _steps(program, number):
    data, held, at, steps = {0: number, 4: X86_64}, 0, 0, 0
    while True:
        code, yes, no, operand = program[at]
        at, steps = at + 1, steps + 1
        if code == 0x06 or (code == 0x20 and operand not in data):
            return steps
        if code == 0x20:
            held = data[operand]
        elif code == 0x54:
            held &= operand
        else:
            holds = {0x15: held == operand, 0x35: held >= operand, 0x45: bool(held & operand)}[code]
            at += yes if holds else no
