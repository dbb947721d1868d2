"""Extraction of the program from a reply."""

import time

import pytest

from marft_envs.coding.grader.program_extraction import extract_program, fenced

REPLIES = [
    ("```python\nprint(1)\n```", "print(1)\n"),
    ("First\n```python\nprint(1)\n```\nthen\n```py\nprint(2)\n```\nDone.", "print(2)\n"),
    ("```\nprint(1)\n```", "print(1)\n"),
    ("```Python3\nprint(1)\n```", "print(1)\n"),
    ("```python\nprint(1)\n```\n```text\n1\n```", "print(1)\n"),
    ("```python\nprint(1)\n```\nIt prints:\n```\n1\n```", "print(1)\n"),
    ("```python\nprint(1)\n```\nbetter:\n```py\nprint(2)\n```\nSummary\n~~~\nO(n)\n~~~", "print(2)\n"),
    ("Input\n```\n3\n```\n```python\nprint(1)\n```", "print(1)\n"),
    ("```\nprint(1)\n```\nor\n```\nprint(2)\n```", "print(2)\n"),
    ("```\nprint(1)\n```\n```cpp\nint main() {}\n```", "print(1)\n"),
    ("```cpp\nint main() {}\n```", None),
    ("```python\nprint(1)\n```\nBetter:\n```python\nprint(2", "print(1)\n"),
    ("```python\nprint(1)", None),
    ("print(1)", None),
    ("", None),
    ("```python\n```", None),
    ("<think>```python\nprint(1)\n```</think>\nno", None),
    ("<think>```python\nprint(1)\n```</think>\n```python\nprint(2)\n```", "print(2)\n"),
    ("1. so:\n   ```python\n   if 1:\n       print(1)\n   ```", "if 1:\n    print(1)\n"),
    ("````python\ns = '''\n```\n'''\n````", "s = '''\n```\n'''\n"),
    ("~~~python\nprint(1)\n~~~", "print(1)\n"),
    ("```python\r\nprint(1)\r\n```", "print(1)\n"),
    ("inline ```python print(1)``` only", None),
]


@pytest.mark.parametrize(("reply", "program"), REPLIES)
def test_the_last_complete_block_is_the_program(reply, program):
    assert extract_program(reply) == program


@pytest.mark.parametrize("piece", ["`", "```", "```\n", "```python\n", "~~~ ", "\n", "<think>", "</think>"])
def test_extraction_from_megabytes_is_quick(piece):
    started = time.perf_counter()
    extract_program(piece * (2_000_000 // len(piece)))
    assert time.perf_counter() - started < 2


def test_a_fenced_program_is_extracted():
    assert extract_program(fenced("print(1)\n\n")) == "print(1)\n"
