"""Inputs of the speed benchmark: integers, golds of MATH and hostile replies, each with the correct verdict."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from marft_envs.mathematics.datasets import load
from marft_envs.mathematics.problems.arithmetic import Arithmetic
from marft_envs.task import Task


class Item(NamedTuple):
    """A reply to grade.

    Attributes:
        reply: The whole reply.
        gold: The reference answer.
        correct: Whether the reply is correct.
    """

    reply: str
    gold: str
    correct: bool


GOLDS = (
    r"\frac{1}{2}", r"2\sqrt{5}", r"-\frac{\sqrt{3}}{3}", r"(-\infty,0)", r"\left( 6, -\frac{3}{8} \right)", r"2516_8",
    r"\text{(D)}", r"\frac{x+5}{6}", r"\frac{11 \pi}{4}", r"[-3, -1]", r"t^7", r"3y + 1", r"\sqrt{185} - 4", r"25\pi",
    r"-1,0,1", r"-x^3 + 4x^2 - 7x - 3", r"x = \frac{3}{2}", r"\begin{pmatrix} 4/5 \\ 3/5 \end{pmatrix}", r"6 - 5i",
    r"x^2 + y^2 = 13", r"3 \pm 2 \sqrt{2}", r"90^\circ", r"10{,}080", r"\text{east}", r"(-\infty,-4) \cup (-4,\infty)",
    r"15\mbox{ cm}^2", r"\frac{2\sqrt{3}}{3}", r"4x(8x^2-x+5)", r"\frac{3\sqrt{13}}{13}", r"1 : 2", r"2^{27} - 2^{11}",
)  # fmt: skip

HOSTILE = (
    r"9^{9^{9}}", r"9^{9^{9^{9}}}", r"2^{2^{2^{2^{2^{2}}}}}", r"10^{10^{10}}+1", r"(x+y+z+w)^{500}", r"(x+y+z+1)^{60}",
    r"\binom{1000000000}{500000000}", r"1000000!", r"((100!)!)!", r"\int_0^1 e^{e^{e^{x^{x^{x}}}}} dx",
    r"\lim_{x \to \infty} (1 + 1/x)^{x^{x^{x}}}", r"\sum_{k=1}^{10^{9}} \frac{1}{k^2}", r"\prod_{k=1}^{10^{6}} k",
    r"\int_{0}^{1} \sin(\cos(\tan(x^{x}))) dx", r"\sum_{k=1}^{\infty} \frac{\sin(k^{2})}{k^{k}}", "9" * 100_000,
    "{" * 3_000 + "x" + "}" * 3_000, "(" * 2_000 + "1" + ")" * 2_000, r"\frac{1}{1+" * 80 + "x" + "}" * 80,
    r"\sqrt{" * 200 + "2" + "}" * 200, "+".join(["1"] * 9_000), "x" * 15_000, r"\left(" * 4_000, "1,234" * 4_000,
    r"x^{100} + x^{99} + 1 = 0", r"\sin(10^{1000000})", r"\zeta(3)^{\Gamma(1/3)^{\Gamma(1/7)}}", r"\det" + "1" * 400,
)  # fmt: skip


def groups_of_items(data: Path | None, size: int) -> list[tuple[str, list[Item]]]:
    """Return the groups of inputs: integers, MATH golds and hostile replies.

    Args:
        data: Folder with gsm8k/ and math/. None: the variable MARFT_DATA; without it, generated problems and GOLDS.
        size: Approximate number of items in a group.

    Returns:
        (name, items) for each group.

    Raises:
        FileNotFoundError: The folder does not exist.
    """
    folder = data or (Path(os.environ["MARFT_DATA"]) if os.environ.get("MARFT_DATA") else None)
    if folder is not None and not folder.is_dir():
        raise FileNotFoundError(f"--data {folder}: no such folder; expected one with gsm8k/ and math/")
    integers = _golds(_task("gsm8k", folder) or Arithmetic(level=3), size // 2)
    task = _task("math", folder)
    golds = _golds(task, size // 3) if task else list(GOLDS)
    return [
        ("integers", _varied(integers, (_same, _changed))),
        ("MATH golds", _varied(golds, (_same, _rewritten, _changed))),
        ("hostile", [Item(_boxed(text), "42", False) for text in HOSTILE]),
    ]


def _task(name: str, folder: Path | None) -> Task | None:
    return load(name, path=folder, split="test", seed=0) if folder else None


def _golds(task: Task, count: int) -> list[str]:
    return [str(task.problem(i).gold) for i in range(min(count, task.size or count))]


def _varied(golds: list[str], variants: tuple[Callable[[str], Item | None], ...]) -> list[Item]:
    return [item for gold in golds for variant in variants if (item := variant(gold))]


def _boxed(text: str) -> str:
    return rf"Therefore the answer is $\boxed{{{text}}}$."


def _same(gold: str) -> Item:
    return Item(_boxed(gold), gold, True)


def _rewritten(gold: str) -> Item | None:
    """Return the gold in another notation; None if the rules below change nothing."""
    text = (
        gold.replace(r"\frac{", r"\dfrac{").replace(r"\sqrt{", r"\sqrt {").replace(r"\left", "").replace(r"\right", "")
    )
    text = re.sub(r"(?<=[\d}a-z]) ?\+ ?(?=[\d\\a-z])", "  +  ", text)
    return Item(_boxed(text), gold, True) if text != gold else None


def _changed(gold: str) -> Item | None:
    """Return another value in the same notation: the first digit outside words and units is changed."""
    for match in re.finditer(r"\d", gold):
        before = gold[: match.start()]
        if re.search(r"\\(?:text|mbox|mathrm)\s?\{[^{}]*(?:\}\s?\^\s?\{?)?$", before):
            continue
        return Item(_boxed(f"{before}{int(match.group()) % 9 + 1}{gold[match.end() :]}"), gold, False)
    return None
