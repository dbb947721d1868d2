"""Checks of environments and tasks: what every user of an environment may rely on, as code that a contributor calls.

    from marft_envs.testing import check_env, check_task

    check_env(my_package.my_task_v0.env)       # or check_env("math_v0")
    check_task(my_package.MyTask)              # the Task class, or a Task

A check that fails raises ``ConformanceError`` with a sentence: what is wrong, where, and what was expected. Both
functions return a ``CheckReport`` of the checks that passed, and of those that could not run, with the reason.

``validate("my_tasks:coins_v0")`` runs all checks and plays policies that must earn everything or nothing. Its report
lists every failure, what each policy earned, and what the problems look like.

The checks need correct replies to some problems. If the task has a method ``reference_answer(problem) -> str``, they
use it. Otherwise they try the gold as a string and ``\\boxed{gold}``. Add the method if neither is a correct reply.
"""

from marft_envs.testing.checking import CheckReport, ConformanceError
from marft_envs.testing.env_checks import ENV_CHECKS, check_env
from marft_envs.testing.task_checks import TASK_CHECKS, check_task
from marft_envs.testing.validation import validate
from marft_envs.testing.validation_report import ValidationReport

__all__ = [
    "ENV_CHECKS", "TASK_CHECKS", "ConformanceError", "CheckReport", "ValidationReport", "check_env", "check_task",
    "validate",
]  # fmt: skip
