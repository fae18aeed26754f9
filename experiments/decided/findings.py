"""The numbers in the findings of the page, from stored rows and prices."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from experiments.decided import conventions, crossover, energy, oma, payloads, selection, votes
from experiments.decided.uplinks import AIR, BEST, EQUAL, OPTIMAL, SLOTS
from experiments.evidence import Evidence, by_seed, final
from wirelessfl.results.archive import StoredRun
from wirelessfl.results.intervals import CostToTarget, Effect, difference, ratio
from wirelessfl.runs.targets import cost_to


def numbers(hist: Evidence, ours: Evidence) -> dict[str, str]:
    """Each number by its name on the page.

    Args:
        hist: stored runs of HIST.
        ours: stored runs of this page's studies.
    """
    points, costs, places = oma.load(), energy.load(), crossover.load()
    return {
        **_air(points),
        **_conventions(hist, ours),
        **_bands(points, costs),
        **_sizes(points, ours),
        **_participants(ours),
        **_deadlines(costs),
        **_map(places),
        **_payloads(ours),
        **_votes(ours),
    }


def _air(points: Sequence[oma.Point]) -> dict[str, str]:
    """How much sooner AirComp reaches the target than the best of OMA, and with how many runs."""
    noisy = oma.of(points, study="fig7b", algorithm="hist")
    low = [p for p in noisy if (p.snr_db or 0.0) < 0]
    return {
        "air, by SNR": _range(_advantages(points, "fig7b"), ".0f"),
        "air, by clients": _range(_advantages(points, "fig7c"), ".1f"),
        "air, low SNR": _reaching([p for p in low if p.uplink == AIR]),
        "oma, low SNR": _reaching(oma.of(low, uplink=SLOTS, snr_db=-10.0)),
    }


def _advantages(points: Sequence[oma.Point], study: str) -> list[float]:
    """By place, how much longer the best of OMA takes than AirComp, in the mean of the seeds."""
    mine = oma.of(points, study=study, algorithm="hist")
    places = dict.fromkeys(p[:5] for p in mine if p.uplink == AIR)
    ratios = (oma.advantage([p for p in mine if p[:5] == place]) for place in places)
    return [_mean(seeds.values()) for seeds in ratios if seeds]


def _conventions(hist: Evidence, ours: Evidence) -> dict[str, str]:
    """Noise of the published convention; points of accuracy and error that others lose."""
    results = ours.study("conventions")
    rounds = conventions.last_round(results)
    runs = conventions.runs_of(results, hist.study("fig7a"))

    def less(low: str, snr: float, high: str = conventions.OMA) -> str:
        ends = (
            {run.seed: conventions.accuracies([run], rounds)[0] for run in runs[name][snr]}
            for name in (high, low)
        )
        return _points(difference("", *ends, 0.0))

    errors = [conventions.errors(runs[name][-20.0], rounds) for name in ("mmse", "physical")]
    return {
        "noise of published": f"{conventions.excess_db(hist):.0f}",
        "published, -20 dB": less("published", -20.0),
        "published, -10 dB": less("published", -10.0),
        "physical, -20 dB": less("physical", -20.0),
        "error of mmse": f"{100 * (1 - (errors[0] or 0) / (errors[1] or 1)):.0f}",
        "mmse": less("mmse", -20.0, "physical"),
        "mmse, unbiased": less("mmse, unbiased", -20.0, "physical"),
    }


def _bands(points: Sequence[oma.Point], costs: Sequence[energy.DesignCost]) -> dict[str, str]:
    """What optimal bands gain in time, and cost in energy."""
    pairs = _pairs(_by_design(costs, energy.DISC), EQUAL, OPTIMAL)
    return {
        "bands, cells": _range(_faster(points, "fig6"), ".1f"),
        "bands, 20 dB": _range(_faster(points, "fig7b", 20.0), ".1f"),
        "bands, -20 dB": _range(_faster(points, "fig7b", -20.0), ".0f"),
        "bands, less time": f"{100 - 100 * _mean(b.seconds / a.seconds for a, b in pairs):.0f}",
        "bands, more energy": f"{100 * _mean(b.joules / a.joules for a, b in pairs) - 100:.0f}",
    }


def _faster(points: Sequence[oma.Point], study: str, snr: float | None = None) -> list[float]:
    """Seconds with equal slots over those with optimal bands: by place, the mean of the seeds."""
    seconds: dict[tuple[object, ...], dict[str, dict[int, float]]] = {}
    for p in oma.of(points, study=study):
        if p.seconds is not None and p.uplink in (SLOTS, OPTIMAL) and snr in (None, p.snr_db):
            seconds.setdefault(p[:5], {}).setdefault(p.uplink, {})[p.seed] = p.seconds
    return [
        _mean(place[SLOTS][seed] / value for seed, value in place[OPTIMAL].items())
        for place in seconds.values()
    ]


def _sizes(points: Sequence[oma.Point], ours: Evidence) -> dict[str, str]:
    """Time that optimised sizes and bands save against uniform sizes over another uplink."""
    results = ours.study("masks")

    def saved(uplink: str) -> str:
        effects = []
        for case in results.where():
            uniform = oma.of(
                points, study="fig6", algorithm="hist", cells=case["cells"], uplink=uplink
            )
            before = {
                p.seed: CostToTarget(p.seconds, True) for p in uniform if p.seconds is not None
            }
            after = {run.seed: _to(run, oma.TARGET) for run in results.of(case)}
            effects.append(ratio("", before, after, 1.0))
        return _range([100 * (1 - math.exp(-effect.mean)) for effect in effects], ".0f")

    return {"sizes, slots": saved(SLOTS), "sizes, bands": saved(OPTIMAL)}


def _participants(ours: Evidence) -> dict[str, str]:
    """Which selections reach the target, how soon, and where they end."""
    results = ours.study("selection")
    goal, tests = selection.TARGET, selection.TESTS
    costs = {
        name: by_seed(results, lambda run: _to(run, goal, tests), select=name)
        for name in ("random", "soonest", "age", "round-robin")
    }
    ends = {
        name: f"{statistics.mean(by_seed(results, final, select=name).values()):.1f}"
        for name in ("random", "soonest")
    }
    reached = [cost.reached for cost in costs["soonest"].values()]
    return {
        "soonest, seeds": f"{sum(reached)} of {len(reached)}",
        "soonest, final": ends["soonest"],
        "random, final": ends["random"],
        "random over age": str(ratio("", costs["random"], costs["age"], 1.0)),
        "round-robin over age": str(ratio("", costs["round-robin"], costs["age"], 1.0)),
    }


def _deadlines(costs: Sequence[energy.DesignCost]) -> dict[str, str]:
    """Energy saved and time added by two designs, against optimal bands at full power."""
    designs = {
        "deadline": (energy.CELLS, f"{energy.DEADLINE} {energy.DEADLINES[0]:g}"),
        "weight": (energy.DISC, f"{energy.WEIGHT} 1"),
    }
    texts = {}
    for name, (network, design) in designs.items():
        pairs = _pairs(_by_design(costs, network), OPTIMAL, design)
        joules = 1 - _mean(b.joules / a.joules for a, b in pairs)
        seconds = _mean(b.seconds / a.seconds for a, b in pairs) - 1
        texts |= {f"{name}, energy": f"{100 * joules:.0f}", f"{name}, time": f"{100 * seconds:.0f}"}
    return texts


def _by_design(
    costs: Sequence[energy.DesignCost], network: str
) -> dict[str, list[energy.DesignCost]]:
    designs: dict[str, list[energy.DesignCost]] = {}
    for cost in sorted((c for c in costs if c.network == network), key=lambda c: c.seed):
        designs.setdefault(cost.design, []).append(cost)
    return designs


def _pairs(
    designs: Mapping[str, list[energy.DesignCost]], before: str, after: str
) -> list[tuple[energy.DesignCost, energy.DesignCost]]:
    return [*zip(designs[before], designs[after], strict=True)]


def _map(places: Sequence[crossover.Place]) -> dict[str, str]:
    """Ratios of OMA to AirComp, and where OMA is faster with one bit per number."""
    best, slots, bit = (crossover.ratios(places, ups) for ups in crossover.MAPS.values())
    faster = [p for p in places if p.ratio([name + crossover.ONE_BIT for name in BEST]) < 1]
    return {
        "map, best": f"{best.min():.1f} to {best.max():.0f}",
        "map, slots": f"{slots.min():.0f} to {round(slots.max(), -3):,.0f}",
        "one bit, clients": str(max(p.clients for p in faster)),
        "one bit, SNR": f"{min(p.snr_db for p in faster):g}",
        "one bit, places": f"{len(faster)} of {bit.size}",
    }


def _payloads(ours: Evidence) -> dict[str, str]:
    """What few bits save until the target, and the accuracy that they cost."""
    results = ours.study("payloads")
    cases = {payloads.label(case): case for case in results.where()}

    def less_mib(name: str) -> str:
        costs = (
            {
                run.seed: cost_to(run.rows, payloads.TARGET, payloads.TESTS).of("uplink_mib")
                for run in results.of(cases[label])
            }
            for label in ("32 bits", name)
        )
        before, after = costs
        return f"{_mean(before[seed].cost / after[seed].cost for seed in after):.0f}"

    def lost(name: str, than: str = "32 bits") -> str:
        ends = ({run.seed: final(run) for run in results.of(cases[one])} for one in (than, name))
        return _points(difference("", *ends, 0.0))

    return {
        "payloads, 1 bit": less_mib("q = 1"),
        "payloads, 8 bits": less_mib("q = 8"),
        "payloads, lost with 1 bit": lost("q = 1"),
        "payloads, lost with 1 %": lost("k = 0.01"),
        "payloads, feedback": lost("k = 0.01", "k = 0.01, feedback"),
        "payloads, lost with signs": lost("sign, feedback"),
    }


def _votes(ours: Evidence) -> dict[str, str]:
    """Accuracy that signs lose against values, and how many votes are wrong."""
    results = ours.study("votes")
    rounds = conventions.last_round(results)

    def lost(name: str, snr: float) -> float:
        ends = [
            statistics.mean(conventions.accuracies(results.of(case), rounds))
            for one in ("physical", name)
            for case in results.where(convention=one, snr_db=snr)
        ]
        return ends[0] - ends[1]

    def wrong(name: str) -> str:
        (case,) = results.where(convention=name, snr_db=-20.0)
        return f"{100 * (votes.mean_of(results.of(case), 'air_error_votes') or 0):.0f}"

    signs, high = ("one-bit", "majority"), [-10.0, 0.0, 10.0]
    return {
        "votes, most": f"{max(lost(name, snr) for name in signs for snr in high):.1f}",
        "votes, wrong by energy": wrong("majority"),
        "votes, wrong": wrong("one-bit"),
        "votes, majority": f"{lost('majority', -20.0):.1f}",
        "votes, one-bit": f"{lost('one-bit', -20.0):.1f}",
    }


def _to(run: StoredRun, target: float, tests: int = 1) -> CostToTarget:
    return cost_to(run.rows, target, tests).of("sim_seconds")


def _mean(values: Iterable[float]) -> float:
    """Geometric mean."""
    return statistics.geometric_mean(values)


def _range(values: Sequence[Any], form: str) -> str:
    low, high = format(min(values), form), format(max(values), form)
    return low if low == high else f"{low} to {high}"


def _reaching(points: Sequence[oma.Point]) -> str:
    """How many of these runs reach 80 %."""
    return f"{sum(p.rounds is not None for p in points)} of {len(points)}"


def _points(effect: Effect) -> str:
    """Percentage points with interval and seeds."""
    low, high = effect.interval
    return f"{effect.mean:.1f} pp ({low:.1f} to {high:.1f}, {len(effect.values)} seeds)"
