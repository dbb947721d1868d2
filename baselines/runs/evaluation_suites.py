"""Suites of evaluation: declared lists of environments and data sets."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from marft_envs.arguments import expected_one_of


@dataclass(frozen=True)
class Benchmark:
    """One data set of an evaluation.

    Attributes:
        environment: Name of the environment.
        dataset: Name of its data set; None for an environment without a choice of data sets.
        generated: Whether its problems are generated. Others are read from files or the hub.
    """

    environment: str
    dataset: str | None
    generated: bool = False

    @property
    def name(self) -> str:
        """The name of the data set, or else of the environment."""
        return self.dataset or self.environment


MATH = (
    *(Benchmark("math_v0", name) for name in (
        "gsm8k", "math500", "aime2024", "aime2025", "amc23", "olympiadbench", "minerva_math"
    )),
    Benchmark("math_v0", "word_problems", generated=True),
)  # fmt: skip
CODE = (
    *(Benchmark("code_v0", name) for name in ("humaneval", "humanevalplus", "mbpp", "livecodebench", "codeforces")),
    Benchmark("code_v0", "list_programs", generated=True),
)
SUITES: dict[str, tuple[Benchmark, ...]] = {"math": MATH, "code": CODE, "all": (*MATH, *CODE)}


def benchmarks_of(suite: str, datasets: Sequence[str] | None) -> list[Benchmark]:
    """Return the data sets of a suite.

    Args:
        suite: A key of ``SUITES``.
        datasets: The names of those to evaluate; None for all.

    Raises:
        ValueError: A name is not in the suite.
    """
    known = {benchmark.name: benchmark for benchmark in SUITES[suite]}
    for name in datasets or ():
        if name not in known:
            raise ValueError(expected_one_of(f"--suite {suite}: dataset", name, known))
    return [known[name] for name in dict.fromkeys(datasets or known)]


def names_of(benchmarks: Iterable[Benchmark]) -> str:
    """Return the names of data sets, separated by commas."""
    return ", ".join(benchmark.name for benchmark in benchmarks)
