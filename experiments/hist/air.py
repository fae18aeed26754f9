"""Figure 7, HIST over the air: curves, noise, conventions, seconds by SNR and by clients a cell."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from experiments import sealed
from experiments.hist.figures import QUANTITIES, TARGET, Lines, draw_by_place, draw_cases, facts
from experiments.labels import SPREAD, costs_of, data_name, seeds_text
from experiments.runs import identity
from experiments.studies import Case, Results
from wirelessfl.base.figures.curves import new_figure, style
from wirelessfl.base.figures.marks import AtLeast, missed
from wirelessfl.results.panels import draw_points, grid, legend, same_limits
from wirelessfl.results.price import price
from wirelessfl.results.selection import NAMES, UPLINKS
from wirelessfl.runs.pricing.network_prices import NetworkPrices

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

BEAMFORMERS = {"anneal": "annealing", "mirror_prox": "Mirror-Prox", "random": "random"}
LOW_TARGET = 0.75
"""A lower target, which all runs of 40 rounds reach above -10 dB."""
LENGTH = ("rounds", "target", "stop_at_target")
"""Settings of the length of a run."""
EQUAL = ", equal sizes"
"""Ends the names of HIST over the air without the masks of (36)."""
METHODS = {
    "optimized": "optimised sizes, Mirror-Prox beamformers",
    None: "equal sizes, annealed beamformers",
}
"""The paper's method over the air, and ours to compare, by sizes of masks."""
SNRS = (-20.0, -10.0, 0.0, 10.0, 20.0)
"""SNRs of Figures 7a and 7b, in dB."""
GAIN_DB = 3
"""What the real part gains: it has half of the variance of the noise."""
ALL, HALF = "AirComp, all of the noise", "AirComp, half of the noise (real part)"
NEAR = 2.0
"""Ratio of errors of beamformers up to which one text names them."""
BUDGET = ("sim_seconds", "joules")


def noise(results: Results) -> Figure:
    """Final accuracy against the SNR, with all and half of the noise; one panel per step size.

    Runs at the SNRs between the others show half of the noise, as in ``settings/noise.toml``.
    """
    steps = sorted(results.values("lr"))
    figure, axes = grid(len(steps), height=2.3)
    for panel, lr in zip(axes, steps, strict=True):
        lines: Lines = {ALL: {}, HALF: {}}
        for case in sorted(results.where(lr=lr, uplink="aircomp"), key=lambda c: c["snr_db"]):
            half = case["snr_db"] % 10 != 0
            at = case["snr_db"] - GAIN_DB * half
            lines[HALF if half else ALL][at] = [*results.finals(case)]
        drawn = {name: points for name, points in lines.items() if points}
        draw_by_place(panel, drawn, "SNR (dB)", "final accuracy (%)")
        for case in results.where(lr=lr, uplink="tdma"):
            _level(panel, results.finals(case), "OMA, without errors")
        panel.set_title(f"step size {lr:g}")
    same_limits(axes)
    cases = results.where()
    legend(figure, axes, data_name(cases), seeds_text(results, cases))
    return figure


def fig7a(results: Results) -> Figure:
    """Accuracy against global rounds by SNR and over OMA, one panel per method over the air."""
    figure, axes = grid(len(METHODS))
    for panel, (sizes, name) in zip(axes, METHODS.items(), strict=True):
        cases = [
            case
            for case in results.study.cases
            if case["uplink"] == "tdma" or case["mask_sizes"] == sizes
        ]
        draw_cases(panel, results, {snr_of(case): case for case in cases}, "round")
        panel.set_title(name)
    same_limits(axes)
    drawn = results.where()
    legend(figure, axes, data_name(drawn), seeds_text(results, drawn, SPREAD))
    return figure


def snr_of(case: Case) -> str:
    """The SNR over the air, or OMA, which has no errors at any."""
    name = UPLINKS[case["uplink"]]
    return f"{name}, {case['snr_db']:g} dB" if case["uplink"] == "aircomp" else name


def fig7b(results: Results) -> Figure:
    """Simulated seconds to 80 % against the SNR, by algorithm and uplink."""
    results = longest(results)
    lines: Lines = {}
    for case in results.study.cases:
        lines.setdefault(label(case), {})[case["snr_db"]] = None
    for name, points in latencies(results).items():
        lines[name] = dict(sorted((lines[name] | points).items()))
    figure, (panel,) = new_figure(height=2.6)
    text = f"simulated seconds to {100 * TARGET:g} %"
    draw_by_place(panel, lines, "SNR (dB)", text, log=True, apart=0.025)
    legend(figure, [panel], *facts(results, results.where()))
    return figure


def longest(results: Results) -> Results:
    """Of cases that differ only in the length of runs, the longest, with all their seeds.

    The first rounds of a longer run are those of a shorter one.
    """
    groups: dict[str, list[Case]] = {}
    for case in results.study.cases:
        rest = {name: value for name, value in case.settings.items() if name not in LENGTH}
        groups.setdefault(sealed.key(rest), []).append(case)
    runs = {}
    for place, cases in enumerate(groups.values()):
        several = [run for case in cases for run in results.of(case)]
        by_seed = {run.seed: run for run in sorted(several, key=lambda run: len(run.rows))}
        runs[place] = [by_seed[seed] for seed in sorted(by_seed)]
    merged = [
        max(cases, key=lambda case: case["rounds"]).with_seeds([s for c in cases for s in c.seeds])
        for cases in groups.values()
    ]
    study = replace(results.study, cases=tuple(merged), parts=())
    return Results(study, runs, results.used)


def fig7c(results: Results) -> Figure:
    """Seconds and joules to 80 % against the clients per cell, by algorithm and uplink."""
    figure, axes = new_figure(len(BUDGET), 2.3)
    for panel, quantity in zip(axes, BUDGET, strict=True):
        lines: Lines = {}
        for case in results.study.cases:
            costs = costs_of(results, case, quantity, TARGET) if results.of(case) else None
            lines.setdefault(label(case), {})[case["clients"] // case["cells"]] = costs
        axis = QUANTITIES[quantity]
        draw_by_place(panel, lines, "clients per cell", axis, log=True)
    legend(figure, axes, *facts(results, results.where()))
    return figure


def fig7d(results: Results) -> Figure:
    """Final accuracy against the error of the received updates, by convention and beamformer."""
    figure, (panel,) = new_figure(height=2.5)
    panel.set_xscale("log")
    for place, convention in enumerate(results.values("convention")):
        points, names = {}, {}
        for case in results.where(convention=convention):
            at = mean_error(results.rows(case))
            points[at] = [*results.finals(case)]
            near = next((one for one in names if one / NEAR < at < one * NEAR), at)
            names.setdefault(near, []).append(BEAMFORMERS[case["beamformer"]])
        draw_points(panel, points, f"HIST, {convention} convention", place, line=False)
        for at, words in names.items():
            ends = [min(points[one]) for one in points if at / NEAR < one < at * NEAR]
            _name(panel, at, min(ends), ",\n".join(words))
    panel.margins(0.25, 0.25)
    panel.set_xlabel("error per element of a received update")
    panel.set_ylabel("final accuracy (%)")
    cases = results.where()
    facts = [data_name(cases), f"{cases[0]['snr_db']:g} dB", seeds_text(results, cases)]
    legend(figure, [panel], *facts)
    return figure


def _name(panel: Axes, x: float, y: float, text: str) -> None:
    """Write a text below a point."""
    look: dict[str, Any] = {"ha": "center", "va": "top", "fontsize": style().small}
    panel.annotate(text, (x, y), (0, -6), textcoords="offset points", **look)


def _level(panel: Axes, values: Sequence[float], text: str) -> None:
    """A horizontal line at the mean of the seeds, and a shade over their range."""
    low, high = min(values), max(values)
    panel.axhline(sum(values) / len(values), color="0", linestyle="--", linewidth=1, label=text)
    if low < high:
        panel.axhspan(low, high, color="0", alpha=0.12, linewidth=0, zorder=0.4)


def latencies(results: Results, target: float = TARGET) -> Lines:
    """For each seed, simulated seconds to the target, or a bound, by run and SNR.

    Over OMA, updates arrive without error, so the SNR only changes the duration of a round: one run
    gives the number of rounds, and their price at each SNR the seconds.
    """
    snrs = sorted({case["snr_db"] for case in results.study.cases})
    lines: Lines = {}
    for case in results.where():
        points = lines.setdefault(label(case), {})
        if case["uplink"] == "aircomp":
            points[case["snr_db"]] = costs_of(results, case, "sim_seconds", target)
            continue
        rounds = costs_of(results, case, "round", target)
        for snr in snrs:
            points[snr] = [
                _seconds_of(case, run.seed, snr, cost)
                for run, cost in zip(results.of(case), rounds, strict=True)
            ]
    return {label: dict(sorted(points.items())) for label, points in lines.items()}


def _seconds_of(case: Case, seed: int, snr_db: float, rounds: float | None) -> float | None:
    """Simulated seconds of these rounds; a bound if they are one."""
    if rounds is None:
        return None
    seconds = simulated_seconds(case, seed, snr_db, int(rounds))
    return AtLeast(seconds) if missed(rounds) else seconds


_PRICES: dict[str, NetworkPrices] = {}
"""Prices at all SNRs of the runs that were asked for, by name of the run."""


def simulated_seconds(case: Case, seed: int, snr_db: float, rounds: int) -> float:
    """Simulated seconds of the first ``rounds`` global rounds at one of ``SNRS``, untrained."""
    config = case.config(seed)
    name = identity(config)
    if name not in _PRICES:
        _PRICES[name] = price(config, network=[{"snr_db": snr} for snr in SNRS], joules=False)
    prices = _PRICES[name]
    return float(prices.seconds[SNRS.index(snr_db), [*prices.rounds].index(rounds)])


def label(case: Case) -> str:
    """The algorithm and the uplink; HIST over the air has masks of (36), or else equal ones."""
    equal = (case["algorithm"], case["uplink"]) == ("hist", "aircomp") and not case["mask_sizes"]
    return f"{NAMES[case['algorithm']]}, {UPLINKS[case['uplink']]}" + EQUAL * equal


def mean_error(seeds: Sequence[Sequence[dict[str, Any]]], name: str = "air_error") -> float:
    """Mean error over seeds and rounds, in units of the squared accumulated gradient; nan if none.

    Args:
        seeds: rows of each seed.
        name: the realised error or the predicted one, a field of rows.
    """
    values = [row[name] for run in seeds for row in run if row.get(name) is not None]
    return statistics.mean(values) if values else math.nan
