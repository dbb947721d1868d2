"""``check_env``: what every environment owes to those who play it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from importlib import import_module

from marft_envs.registry.registry import make
from marft_envs.registry.versioned_names import is_versioned
from marft_envs.testing import form, repeating, scoring, visibility
from marft_envs.testing.case import Case, EnvFn
from marft_envs.testing.checking import Report, run_checks

ENV_CHECKS: dict[str, Callable[[Case], None]] = {
    check.__name__: check
    for check in (
        form.interface,
        form.names_and_metadata,
        form.same_spaces,
        form.membership,
        form.wrong_type,
        form.after_the_end,
        visibility.turn_order,
        visibility.round_count,
        visibility.visibility,
        repeating.same_seed_same_episode,
        repeating.no_seed_continues,
        repeating.pinned_problem,
        repeating.fork,
        repeating.other_process,
        scoring.terminal_reward,
        scoring.wrong_answer_terminates,
        scoring.broken_grader_truncates,
        scoring.gold_scores_one,
        scoring.garbage_scores_zero,
        scoring.no_label_leak,
    )
}
"""Every check by name, in the order in which they run."""


def check_env(
    env_fn: EnvFn | str,
    *,
    seed: int = 0,
    problems: int = 3,
    only: Iterable[str] | None = None,
    skip: Iterable[str] = (),
) -> Report:
    """Check an environment against the contract; ConformanceError says what is wrong.

    env_fn: makes the environment when called without arguments: ``marft_envs.math_v0.env``, or
    ``functools.partial(marft_envs.make, "math_v0", team="trio")``; or a text: a registered name such as "math_v0", or
    "package.module:function". A lambda or a local function does as well, but then no other process can make the same
    environment, and the report lists "other_process" as not checked. seed: of the episodes. problems: how many
    problems are answered rightly and pinned. only, skip: names of ``ENV_CHECKS``.
    """
    make_env, module = _resolve(env_fn)
    env = make_env()
    for limit in ("defer_grading", "max_turns"):
        value = getattr(env.unwrapped, limit, None)
        if value:
            raise ValueError(f"{limit}={value!r}: expected an environment without it, whose episodes end graded")
    size = env.unwrapped.task.size if hasattr(env.unwrapped, "task") else None
    indices = tuple(range(problems if size is None else min(problems, size)))
    return run_checks(ENV_CHECKS, Case(make_env, module, seed, indices), str(env), only, skip)


def _resolve(env_fn: EnvFn | str) -> tuple[EnvFn, str]:
    """(a function without arguments, the name of the versioned module as far as it is known)."""
    if not isinstance(env_fn, str):
        if not callable(env_fn):
            raise TypeError(f"env_fn={env_fn!r:.80}: expected a function that makes an environment, or its name")
        return env_fn, ""
    module, colon, function = env_fn.partition(":")
    if not colon or is_versioned(function):
        return partial(make, env_fn), function or module
    name = module.rpartition(".")[2]
    return getattr(import_module(module), function), name if is_versioned(name) else ""
