r"""Mathematics: environments, data sets, and the grader ``grade(reply, gold) -> Verdict`` (see docs/grading.md).

>>> from marft_envs.mathematics import grade
>>> grade(r"So \boxed{1{,}000}.", "1000").score
1.0
>>> grade(r"\boxed{\frac{\sqrt{2}}{2}}", r"\frac{1}{\sqrt{2}}").score
1.0
"""

from __future__ import annotations

from marft_envs.mathematics.grader.grading_policy import GradingPolicy
from marft_envs.mathematics.grader.reply_grader import Unmarked, fault_counts, grade, grade_many, is_number

__all__ = ["GradingPolicy", "Unmarked", "fault_counts", "grade", "grade_many", "is_number"]
