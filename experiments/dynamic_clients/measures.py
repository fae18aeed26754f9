"""Measures from the rows of sessions: accuracy after transitions, and gains of warm starts.

The first session trains the pilot model. The next session has no past sessions, and the one after
it has only one, so that Proposed and Average equal Previous there. The paper does not define its
"first transition". We take it as the first one at which the warm starts can differ. With one pilot
session and sessions 0 to 5, it leads into session 3, the second transition into session 4, and the
third into session 5. The published numbers agree with this assumption: Average is close to Proposed
after the first transition, where one of two past models fits, and falls behind after the second,
where one of three fits.
"""

from __future__ import annotations

from typing import Any

from experiments.evidence import differences
from experiments.studies import Case, Results
from wirelessfl.results.archive import StoredRun

SAME = (
    *("dataset", "model", "split", "overlap", "alpha", "clients"),
    *("algorithm", "lr", "momentum", "server_momentum"),
)
"""Settings shared by the warm starts of one row."""


def session_of(number: int, pilot_sessions: int = 1) -> int:
    """The session, counted from 0, that the paper's transition ``number`` leads into."""
    return pilot_sessions + 1 + number


def number_of(session: int, pilot_sessions: int = 1) -> int:
    """The paper's number of the transition into ``session``."""
    return session - pilot_sessions - 1


def after(results: Results, case: Case, number: int) -> list[float]:
    """For each seed, mean accuracy in percent of the first ten rounds after a transition."""
    return [*after_by_seed(results, case, number).values()]


def after_by_seed(results: Results, case: Case, number: int) -> dict[int, float]:
    """Mean accuracy in percent of the first ten rounds after a transition, by seed.

    Runs that end earlier are left out.
    """
    accuracies = {}
    for run in results.of(case):
        accuracy = _accuracy(run, session_of(number))
        if accuracy is not None:
            accuracies[run.seed] = accuracy
    return accuracies


def _accuracy(run: StoredRun, session: int) -> float | None:
    entered = (one for one in run.transitions if one.session == session)
    return next((100 * one.mean_accuracy for one in entered), None)


def pairs(results: Results, over: str, **settings: Any) -> list[tuple[Case, Case]]:
    """Each case of Proposed with the case of the warm start ``over`` and the same settings.

    Args:
        results: results of the study.
        over: name of the other warm start.
        settings: settings of the cases.
    """
    groups: dict[tuple[Any, ...], dict[str, Case]] = {}
    for case in results.where(**settings):
        groups.setdefault(tuple(case[name] for name in SAME), {})[case["warm_start"]] = case
    return [(one["proposed"], one[over]) for one in groups.values() if {"proposed", over} <= {*one}]


def gain(results: Results, both: tuple[Case, Case], number: int) -> dict[int, float]:
    """Accuracy of the first case minus that of the second after a transition, by seed."""
    return differences(*(after_by_seed(results, case, number) for case in both))


def last(case: Case) -> int:
    """The paper's number of a run's last transition."""
    return number_of(case["sessions"] - 1)
