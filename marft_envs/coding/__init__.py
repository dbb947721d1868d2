"""Programming tasks: programs run in ``marft_envs.sandbox`` and are graded outside it.

>>> from marft_envs.coding import grade
>>> grade("print(int(input()) + 1)", [{"input": "41", "output": "42"}]).score
1.0

``grade`` takes the program itself; ``extract_program`` returns the program of a whole reply.
"""

from __future__ import annotations

from marft_envs.coding.grader.outcomes import TestOutcome, TestReport, TestResult
from marft_envs.coding.grader.output_checkers import Checker
from marft_envs.coding.grader.program_extraction import extract_program
from marft_envs.coding.grader.run_tests import grade, run_tests

__all__ = ["Checker", "TestOutcome", "TestReport", "TestResult", "extract_program", "grade", "run_tests"]
