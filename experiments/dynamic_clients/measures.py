"""Measures from the rows of sessions: accuracy after transitions, drops and recoveries.

The first session trains the pilot model. The next session has no past sessions, and the one after
it has only one, so that Proposed and Average equal Previous there. The paper does not define its
"first transition". We take it as the first one at which the warm starts can differ. With one pilot
session and sessions 0 to 5, it leads into session 3, the second transition into session 4, and the
third into session 5. The published numbers agree with this assumption: Average is close to Proposed
after the first transition, where one of two past models fits, and falls behind after the second,
where one of three fits.
"""

from __future__ import annotations

from experiments.studies import Case, Results
from wirelessfl.runs.transitions import Transition


def session_of(number: int, pilot_sessions: int = 1) -> int:
    """The session, counted from 0, that the paper's transition ``number`` leads into."""
    return pilot_sessions + 1 + number


def number_of(session: int, pilot_sessions: int = 1) -> int:
    """The paper's number of the transition into ``session``."""
    return session - pilot_sessions - 1


def entered(results: Results, case: Case, number: int) -> list[Transition]:
    """Each seed's transition with the paper's ``number``; runs that end earlier are omitted.

    Args:
        results: results of the study.
        case: the case.
        number: number of the transition, from 1.
    """
    session = session_of(number)
    return [one for run in results.of(case) for one in run.transitions if one.session == session]


def after(results: Results, case: Case, number: int) -> list[float]:
    """For each seed, mean accuracy in percent of the first ten rounds after a transition."""
    return [100 * one.mean_accuracy for one in entered(results, case, number)]


def last(case: Case) -> int:
    """The paper's number of a run's last transition."""
    return number_of(case["sessions"] - 1)
