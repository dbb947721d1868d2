"""The contract of an environment and of a task, as code that a contributor calls.

    from marft_envs.testing import check_env, check_task

    check_env(my_package.my_task_v0.env)       # or check_env("math_v0")
    check_task(my_package.MyTask)              # a Task, or its class

A failing check raises ``ConformanceError`` with a sentence that says what is wrong, where, and what was expected. Both
functions return a ``Report`` that lists the checks that passed, and those that could not run, with the reason.

How a gold is answered: the checks call the task's ``reference_answer(problem) -> str`` where it has that method, else
they try the gold as text and ``\\boxed{gold}``. Give a task the method when neither of these is a right answer.
"""

from marft_envs.testing.checking import ConformanceError, Report
from marft_envs.testing.env_checks import ENV_CHECKS, check_env
from marft_envs.testing.task_checks import TASK_CHECKS, check_task

__all__ = ["ENV_CHECKS", "TASK_CHECKS", "ConformanceError", "Report", "check_env", "check_task"]
