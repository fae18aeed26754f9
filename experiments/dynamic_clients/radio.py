"""Cost and benefit of trial rounds over the air: seconds and MiB to a common accuracy.

The paper counts extra rounds; here they also take simulated seconds, over TDMA or over the air.
Which warm start is the fastest depends on how close the target is to the final accuracy.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from experiments.dynamic_clients.measures import session_of
from experiments.dynamic_clients.methods import SHOWN
from experiments.labels import span
from experiments.studies import Case, Results
from wirelessfl.base.rows import as_mean_value, has_diverged
from wirelessfl.results.costs import markdown, spread
from wirelessfl.results.panels import draw_points, grid, legend, room, same_limits
from wirelessfl.results.selection import DATA, NAMES

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NUMBERS = (1, 2, 3)
"""Transitions over which costs are averaged."""
DISTANCES = (4.0, 2.0, 1.0, 0.5, 0.25)
"""Targets, as points below the lowest final accuracy of the warm starts in a session."""
APART = 0.12
"""Distance of two warm starts at the same target."""
UPLINKS = {"tdma": "TDMA", "aircomp": "AirComp"}
Rows = list[dict[str, Any]]


class SessionCost(NamedTuple):
    """Cost from the end of a session until the accuracy of the next one reaches a target.

    Args:
        rounds: training rounds, without trial rounds.
        seconds: simulated seconds, including trial rounds.
        mib: uplink plus downlink, mean over the registered clients, including trial rounds.
    """

    rounds: int
    seconds: float
    mib: float


def cost(rows: Rows, session: int, target: float) -> SessionCost | None:
    """Cost of a session until it reaches ``target``, in [0, 1]; None if it does not."""
    before = next(row for row in reversed(rows) if row["session"] == session - 1)
    reaching = (
        row
        for row in rows
        if row["session"] == session and not has_diverged(row) and row["accuracy"] >= target
    )
    hit = next(reaching, None)
    if hit is None:
        return None
    mib = (hit[f"{way}_mib"] - before[f"{way}_mib"] for way in ("uplink", "downlink"))
    seconds = hit["sim_seconds"] - before["sim_seconds"]
    return SessionCost(hit["session_round"], seconds, sum(mib))


def common_target(runs: Sequence[Rows], session: int, below: float) -> float:
    """The lowest final accuracy of the runs in this session, minus ``below`` points.

    Runs that have diverged are ignored.
    """
    ends = (next(r for r in reversed(rows) if r["session"] == session) for rows in runs)
    lowest = min((as_mean_value(row) for row in ends if not has_diverged(row)), default=0.0)
    return lowest - below / 100


def groups(results: Results) -> list[list[Case]]:
    """Groups of cases that differ only in their warm start."""
    cases: dict[tuple[Any, ...], list[Case]] = {}
    for case in results.where():
        cases.setdefault((case["dataset"], case["algorithm"], case["uplink"]), []).append(case)
    return list(cases.values())


def costs(
    results: Results, cases: Sequence[Case], number: int, below: float
) -> dict[str, list[SessionCost | None]]:
    """Costs of a transition by warm start, one per seed that all warm starts share."""
    session = session_of(number)
    by_start = {case["warm_start"]: results.rows(case) for case in cases}
    seeds = list(zip(*by_start.values(), strict=False))
    targets = [common_target(runs, session, below) for runs in seeds]
    return {
        start: [cost(rows, session, goal) for rows, goal in zip(runs, targets, strict=False)]
        for start, runs in by_start.items()
    }


def mean_costs(
    results: Results, cases: Sequence[Case], below: float
) -> dict[str, list[tuple[float, ...] | None]]:
    """Costs by warm start and seed, means over the transitions; None if one misses its target."""
    by_number = [costs(results, cases, number, below) for number in NUMBERS]
    return {
        start: [_mean(one) for one in zip(*(by_seed[start] for by_seed in by_number), strict=True)]
        for start in by_number[0]
    }


def _mean(costs: Sequence[SessionCost | None]) -> tuple[float, ...] | None:
    reached = [one for one in costs if one is not None]
    if len(reached) < len(costs):
        return None
    return tuple(statistics.mean(values) for values in zip(*reached, strict=True))


def table(results: Results) -> str:
    """Rounds, simulated seconds and MiB to targets, and the share of trial rounds."""
    head = ["data, algorithm", "uplink", "target (pp)", "warm start", "seeds"]
    head += ["rounds", "seconds", "MiB per client"]
    head += ["seconds of trial rounds", "MiB of trial rounds"]
    rows = []
    for cases in groups(results):
        for below in DISTANCES:
            costs = mean_costs(results, cases, below)
            for case in cases:
                seeds = costs[case["warm_start"]]
                reached = [one for one in seeds if one is not None]
                extras = [_extra(run, session_of(n)) for run in results.rows(case) for n in NUMBERS]
                extra = [statistics.mean(values) for values in zip(*extras, strict=True)]
                rows.append(
                    [
                        f"{DATA[case['dataset']]}, {NAMES[case['algorithm']]}",
                        UPLINKS[case["uplink"]],
                        f"-{below:g}",
                        SHOWN[case["warm_start"]],
                        f"{len(reached)} of {len(seeds)}",
                        spread([one[0] for one in reached]),
                        *(spread([one[i] for one in reached], places=3) for i in (1, 2)),
                        f"{extra[0]:.3f}",
                        f"{extra[1]:.3f}",
                    ]
                )
    return (
        "Mean cost over three transitions, from the end of the previous session to the target: "
        "the lowest final accuracy of any warm start in the session, minus some points. Seconds "
        "and MiB include the trial rounds at its start, which are also given separately.\n\n"
        + markdown(head, rows)
    )


def _extra(rows: Rows, session: int) -> tuple[float, float]:
    """Seconds and MiB of the trial rounds at a session's start."""
    before, at = (
        next(row for row in reversed(rows) if row["session"] == number)
        for number in (session - 1, session)
    )
    return (
        at["extra_seconds"] - before["extra_seconds"],
        at["extra_mib"] - before["extra_mib"],
    )


def points(results: Results) -> Figure:
    """Simulated seconds against the target, one panel per data set and uplink.

    All panels have the same logarithmic axis, because the uplinks differ tenfold.
    """
    several = groups(results)
    figure, axes = grid(len(several), height=2.0)
    for panel, cases in zip(axes, several, strict=True):
        by_start: dict[str, dict[float, list[float | None]]] = {}
        for place, below in enumerate(DISTANCES):
            for start, seeds in mean_costs(results, cases, below).items():
                seconds = [None if one is None else one[1] for one in seeds]
                by_start.setdefault(start, {})[float(place)] = seconds
        panel.set_yscale("log")
        for rank, (start, values) in enumerate(by_start.items()):
            shift = APART * (rank - (len(by_start) - 1) / 2)
            draw_points(panel, values, SHOWN[start], rank, shift=shift)
        panel.set_xticks(range(len(DISTANCES)), [f"-{one:g}" for one in DISTANCES])
        panel.set_xlabel("target relative to the lowest final accuracy (pp)")
        panel.set_ylabel("time to target (s)")
        counts = span(len(results.of(case)) for case in cases)
        name = f"{DATA[cases[0]['dataset']]}, {UPLINKS[cases[0]['uplink']]}"
        panel.set_title(f"{name} (n = {counts})")
    same_limits(axes)
    for panel in axes:
        room(panel)
        panel.yaxis.set_major_formatter("{x:g}")
    algorithms = ", ".join(NAMES[one] for one in results.values("algorithm"))
    legend(figure, axes, algorithms, "mean over three changes of clients and the seeds")
    return figure
