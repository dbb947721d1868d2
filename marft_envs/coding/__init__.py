"""Programming tasks: programs are run in ``marft_envs.sandbox``, and judged outside it.

>>> from marft_envs.coding import grade
>>> grade("print(int(input()) + 1)", [{"input": "41", "output": "42"}]).score
1.0

``grade`` takes a bare program; ``extract_program`` takes it out of a whole reply.
"""

from __future__ import annotations

from marft_envs.coding.grader.output_checkers import Checker
from marft_envs.coding.grader.program_extraction import extract_program
from marft_envs.coding.grader.run_tests import TestOutcome, TestReport, TestResult, grade, run_tests

__all__ = ["Checker", "TestOutcome", "TestReport", "TestResult", "extract_program", "grade", "run_tests"]
