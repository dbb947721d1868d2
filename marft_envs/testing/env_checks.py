"""``check_env``: run all checks of an environment."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from importlib import import_module

from marft_envs.registry.registry import make
from marft_envs.registry.versioned_names import is_versioned
from marft_envs.testing import interface, reproducibility, scoring_checks, visibility
from marft_envs.testing.checking import CheckReport, run_checks
from marft_envs.testing.env_case import EnvCase, EnvFn

ENV_CHECKS: dict[str, Callable[[EnvCase], None]] = {
    check.__name__: check
    for check in (
        interface.interface,
        interface.names_and_metadata,
        interface.same_spaces,
        interface.membership,
        interface.wrong_type,
        interface.after_the_end,
        visibility.turn_order,
        visibility.round_count,
        visibility.visibility,
        reproducibility.same_seed_same_episode,
        reproducibility.no_seed_continues,
        reproducibility.pinned_problem,
        reproducibility.fork,
        reproducibility.other_process,
        scoring_checks.terminal_reward,
        scoring_checks.wrong_answer_terminates,
        scoring_checks.broken_grader_truncates,
        scoring_checks.gold_scores_one,
        scoring_checks.garbage_scores_zero,
        scoring_checks.no_label_leak,
    )
}
"""All checks by name, in the order in which they run."""


def check_env(
    env_fn: EnvFn | str,
    *,
    seed: int = 0,
    problems: int = 3,
    only: Iterable[str] | None = None,
    skip: Iterable[str] = (),
) -> CheckReport:
    """Check that an environment conforms to the interface of this package.

    Args:
        env_fn: A function without arguments that makes the environment, such as ``marft_envs.math_v0.env`` or
            ``functools.partial(marft_envs.make, "math_v0", team="trio")``; or a string: a registered name such as
            "math_v0", or "package.module:function". With a lambda or a local function, the check "other_process"
            cannot run, because another process cannot import it.
        seed: The seed of the episodes.
        problems: How many problems are pinned and answered correctly.
        only: The names of the checks to run (of ``ENV_CHECKS``); None for all.
        skip: The names of the checks to skip.

    Returns:
        The checks that passed, and those that could not run.

    Raises:
        ConformanceError: A check failed; the message describes what is wrong and what was expected.
        TypeError: ``env_fn`` is not a function or string.
        ValueError: A name is unknown, or the environment has ``defer_grading`` or ``max_turns``.
    """
    make_env, module = _resolve(env_fn)
    env = make_env()
    for setting in ("defer_grading", "max_turns"):
        value = getattr(env.unwrapped, setting, None)
        if value:
            raise ValueError(
                f"{setting}={value!r}: expected an environment without it, because the checks need graded episodes"
            )
    size = env.unwrapped.task.size if hasattr(env.unwrapped, "task") else None
    indices = tuple(range(problems if size is None else min(problems, size)))
    return run_checks(ENV_CHECKS, EnvCase(make_env, module, seed, indices), str(env), only, skip)


def _resolve(env_fn: EnvFn | str) -> tuple[EnvFn, str]:
    """Return a function without arguments, and the name of the versioned module ("" if it is unknown)."""
    if not isinstance(env_fn, str):
        if not callable(env_fn):
            raise TypeError(f"env_fn={env_fn!r:.80}: expected a function that makes an environment, or its name")
        return env_fn, ""
    module, colon, function = env_fn.partition(":")
    if not colon or is_versioned(function):
        return partial(make, env_fn), function or module
    name = module.rpartition(".")[2]
    return getattr(import_module(module), function), name if is_versioned(name) else ""
