"""Selection of LiveCodeBench problems by the day of the contest, so that a model has not seen them in training."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from marft_envs.arguments import expected_one_of

RELEASES = {
    "v1": "2024-03-31", "v2": "2024-05-31", "v3": "2024-07-31", "v4": "2024-09-30", "v5": "2025-01-31",
    "v6": "2025-04-30",
}  # fmt: skip
"""Last day of each release of LiveCodeBench; a release holds all problems up to this day."""


@dataclass(frozen=True)
class ContestDates:
    """A range of days, both included, such as "2024-08-01"; an empty string is no bound."""

    first: str = ""
    last: str = ""

    def contains(self, row: Mapping[str, Any]) -> bool:
        """Return whether the contest of a row is in the range. A row without a date is."""
        day = str(row.get("contest_date") or "")[:10]
        return not day or (self.first <= day and (not self.last or day <= self.last))


def contest_dates(name: str, since: str | None, until: str | None, release: str | None) -> ContestDates | None:
    """Return the range of days that the arguments of ``load`` describe, None if they are all None.

    Raises:
        ValueError: The data set has no dates, or an argument is not allowed.
    """
    arguments = {"since": since, "until": until, "release": release}
    chosen = ", ".join(f"{argument}={value!r}" for argument, value in arguments.items() if value is not None)
    if not chosen:
        return None
    if name != "livecodebench":
        raise ValueError(f"{chosen}: only dataset='livecodebench' has dates, got dataset={name!r}")
    if release is not None:
        if release not in RELEASES:
            raise ValueError(expected_one_of("release", release, RELEASES))
        if until is not None:
            raise ValueError(f"until={until!r} with release={release!r}: expected one of the two")
        until = RELEASES[release]
    for argument, day in (("since", since), ("until", until)):
        try:
            datetime.date.fromisoformat(day or "2000-01-01")
        except (ValueError, TypeError):
            raise ValueError(f"{argument}={day!r}: expected a day such as '2024-08-01'") from None
    return ContestDates(since or "", until or "")
