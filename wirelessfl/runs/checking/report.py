"""The report of a check."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

from wirelessfl.base.wording import count_of

NEEDS = "needs that it "
"""Beginning of the reason to skip a contract that needs another one."""
Status = Literal["ok", "failed", "skipped"]


@dataclass(frozen=True)
class Outcome:
    """The result of one contract test.

    >>> from wirelessfl.runs.checking import Outcome
    >>> print(Outcome("equal streams give equal draws", "ok"))
    ok       equal streams give equal draws

    Args:
        contract: what must hold.
        status: whether it does, or could not be tested.
        reason: what is wrong, or why the test was skipped; one line.
    """

    contract: str
    status: Status
    reason: str = ""

    def __str__(self) -> str:
        return f"{self.status:<7}  {self.contract}" + (f": {self.reason}" if self.reason else "")


@dataclass(frozen=True)
class Report:
    """The results of all contract tests of a class or function.

    >>> from wirelessfl.runs.checking import Outcome, Report
    >>> outcomes = (Outcome("equal streams, equal draws", "ok"), Outcome("has name", "failed"))
    >>> report = Report("my_fading:Mine", "fading", outcomes, seconds=0.1)
    >>> report.passed, report.failed
    (False, ['has name'])

    Args:
        name: import path, or name of the class.
        kind: kind of choice, e.g. "algorithm".
        outcomes: the result of each test, in order.
        seconds: wall-clock seconds.
    """

    name: str
    kind: str
    outcomes: tuple[Outcome, ...]
    seconds: float

    @property
    def passed(self) -> bool:
        """Whether no test has failed."""
        return not self.failed

    @property
    def failed(self) -> list[str]:
        """The contracts that do not hold."""
        return [outcome.contract for outcome in self.outcomes if outcome.status == "failed"]

    def as_dict(self) -> dict[str, Any]:
        """The report as plain values, for JSON."""
        return {**asdict(self), "outcomes": [*map(asdict, self.outcomes)], "passed": self.passed}

    def __str__(self) -> str:
        counts = {
            status: sum(outcome.status == status for outcome in self.outcomes)
            for status in ("ok", "failed", "skipped")
        }
        summary = ", ".join(f"{count} {status}" for status, count in counts.items() if count)
        head = f"{self.kind.replace('_', ' ')} {self.name}: {summary} in {self.seconds:.1f} s"
        lines = [
            f"  {outcome}" for outcome in self.outcomes if not outcome.reason.startswith(NEEDS)
        ]
        waiting = len(self.outcomes) - len(lines)
        if waiting:
            lines.append(f"  skipped  {count_of(waiting, 'contract')} that depend on failed ones")
        return "\n".join([head, *lines])
