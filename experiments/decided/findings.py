"""The findings of the page, in sentences with their numbers, from stored rows and prices."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from experiments.decided import conventions, crossover, energy, oma, selection
from experiments.decided.uplinks import AIR, BEST, EQUAL, OPTIMAL, SLOTS
from experiments.evidence import Evidence, by_seed, final
from wirelessfl.results.archive import StoredRun
from wirelessfl.results.intervals import CostToTarget, Effect, difference, ratio


def findings(hist: Evidence, ours: Evidence) -> str:
    """One paragraph per finding.

    Args:
        hist: stored runs of HIST.
        ours: stored runs of this page's studies.
    """
    points, costs, places = oma.load(), energy.load(), crossover.load()
    parts = [
        _air(points, hist),
        _noise(hist, ours),
        _least_error(ours),
        _bands(points, costs),
        _sizes(points, ours),
        _who(ours),
        _deadlines(costs),
        _map(places),
    ]
    return "\n\n".join(f"- {part}" for part in parts) + "\n"


def _air(points: Sequence[oma.Point], hist: Evidence) -> str:
    snrs, cells = _advantages(points, "fig7b", "hist"), _advantages(points, "fig7c", "hist")
    (trained,) = hist.study("fig7b").where(algorithm="hist", uplink="tdma")
    noisy = oma.of(points, study="fig7b", algorithm="hist")
    low = [p for p in noisy if p.uplink == AIR and (p.snr_db or 0.0) < 0]
    lowest = sorted({p.snr_db or 0.0 for p in low}, reverse=True)
    other = oma.of(noisy, uplink=SLOTS, snr_db=lowest[0])
    return (
        "AirComp is much faster than any orthogonal uplink, while it reaches the target at all. In "
        "the published convention, HIST reaches 80 % over AirComp "
        f"{_range(map(_mean, snrs.values()), '.0f')} times sooner than over the best of OMA at "
        f"{_range((p[4] for p in snrs), 'g')} dB ({_seeds(snrs)}), and "
        f"{_range(map(_mean, cells.values()), '.1f')} times sooner with "
        f"{_range((p[3] // p[2] for p in cells), 'd')} clients per cell ({_seeds(cells)}). At "
        f"{' and '.join(f'{snr:g}' for snr in lowest)} dB, {_of(low)} runs reach 80 % over AirComp "
        f"within {trained['rounds']} rounds, and {_of(other)} do over OMA."
    )


def _advantages(
    points: Sequence[oma.Point], study: str, algorithm: str
) -> dict[tuple[Any, ...], list[float]]:
    """By place, how much longer the best of OMA takes than AirComp, for each seed."""
    mine = oma.of(points, study=study, algorithm=algorithm)
    places = dict.fromkeys(p[:5] for p in mine if p.uplink == AIR)
    found = {one: oma.advantage([p for p in mine if p[:5] == one]) for one in places}
    return {place: [*by_seed.values()] for place, by_seed in found.items() if by_seed}


def _noise(hist: Evidence, ours: Evidence) -> str:
    excess = conventions.excess_db(hist)
    rounds = conventions.last_round(ours.study("conventions"))
    return (
        f"The published AirComp convention is {excess:.0f} dB noisier than the physical one, in "
        f"which clients scale their updates up to the power limit. After {rounds} rounds, HIST in "
        f"the published convention is {_points(_less(hist, ours, 'published', -20.0))} below "
        f"error-free OMA at -20 dB and {_points(_less(hist, ours, 'published', -10.0))} at -10 dB; "
        f"in the physical one, {_points(_less(hist, ours, 'physical', -20.0))} at -20 dB."
    )


def _less(hist: Evidence, ours: Evidence, convention: str, snr: float) -> Effect:
    """Points of accuracy below error-free OMA."""
    found = _accuracies(hist, ours)
    return difference("", found[conventions.OMA, snr], found[convention, snr], 0.0)


def _accuracies(hist: Evidence, ours: Evidence) -> dict[tuple[str, float], dict[int, float]]:
    """Accuracy in percent by convention and SNR, and seed."""
    results = ours.study("conventions")
    rounds = conventions.last_round(results)
    runs = conventions.runs_of(results, hist.study("fig7a"))
    return {
        (name, snr): {run.seed: conventions.accuracies([run], rounds)[0] for run in some}
        for name, by_snr in runs.items()
        for snr, some in by_snr.items()
    }


def _least_error(ours: Evidence) -> str:
    results = ours.study("conventions")
    rounds = conventions.last_round(results)
    found = {conventions.label(case): results.of(case) for case in results.where(snr_db=-20.0)}
    physical, mmse = found["physical"], found["mmse"]
    less = 1 - (conventions.errors(mmse, rounds) or 0) / (conventions.errors(physical, rounds) or 1)

    def accuracy(name: str) -> dict[int, float]:
        return {run.seed: conventions.accuracies([run], rounds)[0] for run in found[name]}

    lost = difference("", accuracy("physical"), accuracy("mmse"), 0.0)
    unbiased = difference("", accuracy("physical"), accuracy("mmse, unbiased"), 0.0)
    return (
        f"The least error is not the best model. At -20 dB, minimum-MSE precoders (`mmse`) have "
        f"{100 * less:.0f} % less error per element than `physical` and end {_points(lost)} lower, "
        "because the sum shrinks and clients in fades count less. Without bias in what all updates "
        f"have in common, they end {_points(unbiased)} lower."
    )


def _bands(points: Sequence[oma.Point], costs: Sequence[energy.DesignCost]) -> str:
    cells = _faster(points, "fig6")
    snrs = [_faster(points, "fig7b", snr) for snr in (20.0, -20.0)]
    disc = _by_design(costs, energy.DISC)
    more = [b.joules / a.joules for a, b in zip(disc[EQUAL], disc[OPTIMAL], strict=True)]
    longer = [b.seconds / a.seconds for a, b in zip(disc[EQUAL], disc[OPTIMAL], strict=True)]
    return (
        f"Optimal bandwidth allocation reaches the target {_range(cells, '.1f')} times sooner than "
        f"equal time slots in the networks of Section VI-C, {_range(snrs[0], '.1f')} times at 20 "
        f"dB and {_range(snrs[1], '.0f')} times at -20 dB in those of Figure 7b. It is not free. "
        f"In a disc of 500 m it takes {100 - 100 * _mean(longer):.0f} % less time than equal "
        f"bandwidth and {100 * _mean(more) - 100:.0f} % more energy ({len(more)} seeds), since "
        "fast clients send as long as the slowest, at full power."
    )


def _faster(points: Sequence[oma.Point], study: str, snr: float | None = None) -> list[float]:
    """Seconds with equal slots over those with optimal bands: by place, the mean of the seeds."""
    found: dict[tuple[object, ...], dict[str, dict[int, float]]] = {}
    for p in oma.of(points, study=study):
        if p.seconds is not None and p.uplink in (SLOTS, OPTIMAL) and snr in (None, p.snr_db):
            found.setdefault(p[:5], {}).setdefault(p.uplink, {})[p.seed] = p.seconds
    return [
        _mean([one[SLOTS][seed] / seconds for seed, seconds in one[OPTIMAL].items()])
        for one in found.values()
    ]


def _sizes(points: Sequence[oma.Point], ours: Evidence) -> str:
    results, over = ours.study("masks"), {}
    for before in (OPTIMAL, SLOTS):
        over[before] = []
        for case in results.where():
            uniform = {
                p.seed: CostToTarget(p.seconds, True)
                for p in oma.of(
                    points, study="fig6", algorithm="hist", cells=case["cells"], uplink=before
                )
                if p.seconds is not None
            }
            both = {run.seed: _to(run, oma.TARGET) for run in results.of(case)}
            over[before].append(ratio("", uniform, both, 1.0))
    counts = {len(effect.values) for effects in over.values() for effect in effects}
    with_bands, with_slots = ([_percent(e) for e in over[one]] for one in (OPTIMAL, SLOTS))
    return (
        "Submodel sizes and bandwidth gain together. With both optimised, HIST takes "
        f"{_range(with_slots, '.0f')} % less time to 80 % than with uniform sizes and equal slots, "
        f"and {_range(with_bands, '.0f')} % less than with uniform sizes and optimal bandwidth "
        f"(N = {_range(results.values('cells'), 'd')}, {_numbers(counts)} seeds)."
    )


def _who(ours: Evidence) -> str:
    results = ours.study("selection")
    goal, tests = selection.TARGET, selection.TESTS
    found = {
        name: by_seed(results, lambda run: _to(run, goal, tests), select=name)
        for name in ("random", "soonest", "age", "round-robin")
    }
    ends = {
        name: statistics.mean(by_seed(results, final, select=name).values())
        for name in ("random", "soonest")
    }
    short = [one.reached for one in found["soonest"].values()]
    return (
        "Choosing the clients that end a round soonest makes rounds short and models poor: "
        f"{sum(short)} of {len(short)} seeds reach {100 * goal:g} %, and the final accuracy is "
        f"{ends['soonest']:.1f} instead of {ends['random']:.1f} % with random clients. The clients "
        f"with the oldest updates reach {100 * goal:g} % "
        f"{ratio('', found['random'], found['age'], 1.0)} times sooner than random ones; against "
        f"round-robin the ratio is {ratio('', found['round-robin'], found['age'], 1.0)}."
    )


def _deadlines(costs: Sequence[energy.DesignCost]) -> str:
    cells, disc = _by_design(costs, energy.CELLS), _by_design(costs, energy.DISC)
    deadline, weight = f"{energy.DEADLINE} {energy.DEADLINES[0]:g}", f"{energy.WEIGHT} 1"
    return (
        "Little time saves much energy. In the cells of Section VI-C, where rounds are alike, a "
        f"deadline {100 * (energy.DEADLINES[0] - 1):.0f} % above the longest round saves "
        f"{_saved(cells, deadline)}. In the disc, the longest round is much longer than the mean, "
        f"so a weight of energy is better than a deadline: it saves {_saved(disc, weight)}."
    )


def _by_design(
    costs: Sequence[energy.DesignCost], network: str
) -> dict[str, list[energy.DesignCost]]:
    found: dict[str, list[energy.DesignCost]] = {}
    for one in sorted((c for c in costs if c.network == network), key=lambda c: c.seed):
        found.setdefault(one.design, []).append(one)
    return found


def _saved(designs: Mapping[str, list[energy.DesignCost]], name: str) -> str:
    """Energy saved and time added by a design, against optimal bands at full power."""
    pairs = [*zip(designs[OPTIMAL], designs[name], strict=True)]
    joules = 1 - _mean([b.joules / a.joules for a, b in pairs])
    seconds = _mean([b.seconds / a.seconds for a, b in pairs]) - 1
    return (
        f"{100 * joules:.0f} % of the energy of full power for {100 * seconds:.0f} % more time "
        f"({len(pairs)} seeds)"
    )


def _map(places: Sequence[crossover.Place]) -> str:
    values = {title: crossover.ratios(places, ups) for title, ups in crossover.MAPS.items()}
    best, slots, bit = values.values()
    slower = [p for p in places if p.ratio([one + crossover.ONE_BIT for one in BEST]) < 1]
    return (
        f"No SNR and number of clients makes OMA with {crossover.BITS} bits per number faster per "
        f"round: from {_range((p.clients for p in places), 'd')} clients per cell and "
        f"{_range((p.snr_db for p in places), 'g')} dB, the best OMA takes {best.min():.1f} to "
        f"{best.max():.0f} times as long as AirComp, and equal slots {slots.min():.0f} to "
        f"{round(slots.max(), -3):,.0f} times. With one bit per number, OMA is faster with up to "
        f"{max(p.clients for p in slower)} clients per cell, from "
        f"{min(p.snr_db for p in slower):g} dB on ({len(slower)} of {bit.size} places)."
    )


def _to(run: StoredRun, target: float, tests: int = 1) -> CostToTarget:
    return CostToTarget.of(run.rows, target, "sim_seconds", tests)


def _mean(values: Iterable[float]) -> float:
    """Geometric mean."""
    return statistics.geometric_mean(values)


def _percent(effect: Effect) -> float:
    """How much less time the effect is, in percent."""
    return 100 * (1 - math.exp(-effect.mean))


def _range(values: Iterable[float], form: str) -> str:
    low, high = (format(pick(known), form) for known in [[*values]] for pick in (min, max))
    return low if low == high else f"{low} to {high}"


def _numbers(counts: Iterable[int]) -> str:
    return _range(counts, "d")


def _seeds(by_place: Mapping[tuple[Any, ...], Sequence[float]]) -> str:
    return f"{_numbers(map(len, by_place.values()))} seeds"


def _of(points: Sequence[oma.Point]) -> str:
    """How many of these runs reach 80 %."""
    return f"{sum(p.rounds is not None for p in points)} of {len(points)}"


def _points(effect: Effect) -> str:
    """Percentage points with interval and seeds."""
    low, high = effect.interval
    return f"{effect.mean:.1f} pp ({low:.1f} to {high:.1f}, {len(effect.values)} seeds)"
