"""Figure 7, HIST over the air: its four panels and their tables."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from experiments.hist.figures import TARGET, facts
from experiments.look import save
from experiments.report import MISSING, accuracies, markdown, reached
from experiments.stated import identity
from experiments.studies import Case, Results
from wirelessfl.config import Config
from wirelessfl.divergence import counted
from wirelessfl.figures import draw_curves, new_figure
from wirelessfl.pricing.price import price
from wirelessfl.pricing.prices import Prices
from wirelessfl.results.names import NAMES, UPLINKS
from wirelessfl.results.panels import draw_points, grid, legend, room, same_limits
from wirelessfl.results.seeds import first_reaching

EARLY = 5
"""Rounds whose differences from OMA may lie outside the panel of Figure 7a, as they are large."""
BEAMFORMERS = {"anneal": "annealing", "mirror_prox": "Mirror-Prox", "random": "random"}
LOW_TARGET = 0.75
"""Target of Figure 7d, whose noise keeps most runs below 80 %."""


def fig7a(results: Results, out: Path) -> list[Path]:
    """Accuracy against global rounds over the air, one curve per SNR, and error-free OMA.

    The right panel shows the differences from OMA, because most curves hide each other.
    """
    cases = sorted(results.where(), key=lambda case: (case["uplink"], -case["snr_db"]))
    curves = {_snr_label(case): results.rows(case) for case in reversed(cases)}
    apart = differences(results)
    figure, axes = grid(2 if apart else 1)
    draw_curves(axes[0], curves, "round", target=TARGET, legend=False)
    if apart:
        draw_curves(axes[1], apart, "round", legend=False, styles=list(curves))
        axes[1].axhline(0, color="0.5", linewidth=0.8)
        late = [
            100 * row["accuracy"]
            for seeds in apart.values()
            for rows in seeds
            for row in rows
            if row["round"] >= EARLY
        ]
        axes[1].set_ylim(min([-5.0, *late]) - 1, max([5.0, *late]) + 1)
        axes[1].set_ylabel("difference from OMA (points)")
    legend(figure, axes, *facts(results, cases))
    return save(figure, results, out / "fig7a")


def differences(results: Results) -> dict[str, list[list[dict[str, Any]]]]:
    """Rows of each SNR whose accuracy is that minus OMA's, for the seeds that both have."""
    oma = {run.seed: run.rows for case in results.where(uplink="tdma") for run in results.of(case)}
    found = {}
    for case in sorted(results.where(uplink="aircomp"), key=lambda case: case["snr_db"]):
        seeds = [(run.rows, oma[run.seed]) for run in results.of(case) if run.seed in oma]
        if seeds:
            found[_snr_label(case)] = [
                [
                    {"round": row["round"], "accuracy": counted(row) - counted(other)}
                    for row, other in zip(rows, others, strict=False)
                ]
                for rows, others in seeds
            ]
    return found


def fig7b(results: Results, out: Path) -> list[Path]:
    """Simulated seconds to 80 % against the SNR, by algorithm and uplink."""
    snrs = sorted({case["snr_db"] for case in results.study.cases})
    lines = latencies(results)
    labels = list(dict.fromkeys(map(_label, results.study.cases)))
    points = {label: {snr: lines.get(label, {}).get(snr) for snr in snrs} for label in labels}
    return _seconds(results, points, snrs, "SNR (dB)", out / "fig7b")


def fig7c(results: Results, out: Path) -> list[Path]:
    """Simulated seconds to 80 % against the number of clients per cell, by algorithm and uplink."""
    numbers = sorted({case["clients"] // case["cells"] for case in results.study.cases})
    points: dict[str, dict[float, list[float | None] | None]] = {}
    for case in results.study.cases:
        line = points.setdefault(_label(case), dict.fromkeys(numbers))
        if results.of(case):
            line[case["clients"] // case["cells"]] = results.costs(case, "sim_seconds", TARGET)
    return _seconds(results, points, numbers, "clients per cell", out / "fig7c")


def fig7d(results: Results, out: Path) -> list[Path]:
    """Accuracy against simulated seconds: one panel per convention, one curve per beamformer."""
    conventions = results.values("convention")
    figure, panels = grid(len(conventions))
    for panel, convention in zip(panels, conventions, strict=True):
        cases = results.where(convention=convention)
        curves = {f"{BEAMFORMERS[c['beamformer']]} beamformer": results.rows(c) for c in cases}
        draw_curves(
            panel,
            curves,
            "sim_seconds",
            target=LOW_TARGET,
            legend=False,
            styles=_beamformer_labels(),
            wide=_beamformer_labels()[:1],
        )
        panel.set_ylim(0, 90)
        panel.set_title(f"{convention} convention, {cases[0]['snr_db']:g} dB")
    same_limits(panels, x=True)
    legend(figure, panels, *facts(results, results.where(), target=LOW_TARGET))
    return save(figure, results, out / "fig7d")


def snr_rows(results: Results) -> str:
    """Figure 7a: accuracy after several rounds, rounds to 75 % and 80 %, transmission error."""
    head = [
        "uplink",
        "SNR (dB)",
        "seeds",
        "accuracy (%) after 5 / 10 / 20 / 30 / 40",
        "minimum of last 10 (%)",
    ]
    head += ["rounds to 75 %", "rounds to 80 %"]
    head += ["error per element, realised", "predicted"]
    rows = []
    for case in results.where():
        seeds = results.rows(case)
        last = min(counted(row) for run in seeds for row in run[-10:])
        rows.append(
            [
                UPLINKS[case["uplink"]],
                f"{case['snr_db']:g}" if case["uplink"] == "aircomp" else "any",
                str(len(seeds)),
                accuracies(seeds, (5, 10, 20, 30, 40)),
                f"{100 * last:.1f}",
                *(reached(seeds, at, "round", "d") for at in (0.75, 0.8)),
                *(_error(seeds, name) for name in ("air_error", "air_error_predicted")),
            ]
        )
    return markdown(head, rows)


def snr_latencies(results: Results) -> str:
    """Figure 7b: simulated seconds to 80 % at every SNR."""
    lines = latencies(results)
    snrs = sorted({snr for points in lines.values() for snr in points})
    head = ["run", "seeds", *(f"s to 80 % at {snr:g} dB" for snr in snrs)]
    rows = []
    for label, points in lines.items():
        counts = [len(seeds) for seeds in points.values()]
        fewest, most = min(counts), max(counts)
        seeds = str(most) if fewest == most else f"{fewest} to {most}"
        cells = [_shown(points[snr]) if snr in points else "not run" for snr in snrs]
        rows.append([label, seeds, *cells])
    return markdown(head, rows)


def client_latencies(results: Results) -> str:
    """Figure 7c: rounds and simulated seconds to 80 %, and seconds per round."""
    head = ["clients per cell", "run", "s per round", "rounds to 80 %", "s to 80 %"]
    rows = []
    for case in sorted(results.where(), key=lambda case: (_label(case), case["clients"])):
        seeds = results.rows(case)
        second = statistics.mean(run[-1]["sim_seconds"] / run[-1]["round"] for run in seeds)
        rows.append(
            [
                str(case["clients"] // case["cells"]),
                _label(case),
                f"{second:.2f}",
                reached(seeds, TARGET, "round", "d"),
                reached(seeds, TARGET, "sim_seconds", ".2f"),
            ]
        )
    return markdown(head, rows)


def convention_rows(results: Results) -> str:
    """Figure 7d: effect of convention and beamformer on error and accuracy."""
    head = ["convention", "beamformer", "seeds", "error per element, realised", "predicted"]
    goal = f"{100 * LOW_TARGET:g} %"
    head += ["accuracy (%) after 10 / 20 / 40", f"rounds to {goal}", f"s to {goal}"]
    return markdown(
        head,
        [
            [
                case["convention"],
                BEAMFORMERS[case["beamformer"]],
                str(len(results.of(case))),
                *(_error(results.rows(case), n) for n in ("air_error", "air_error_predicted")),
                accuracies(results.rows(case), (10, 20, 40)),
                reached(results.rows(case), LOW_TARGET, "round", "d"),
                reached(results.rows(case), LOW_TARGET, "sim_seconds", ".2f"),
            ]
            for case in results.where()
        ],
    )


def latencies(results: Results) -> dict[str, dict[float, list[float | None]]]:
    """For each seed, simulated seconds to 80 %, None if it is not reached, by run and SNR.

    Over OMA, updates arrive without error, so the SNR only changes the duration of a round: one run
    gives the number of rounds, and their price at each SNR the seconds.
    """
    snrs = sorted({case["snr_db"] for case in results.study.cases})
    lines: dict[str, dict[float, list[float | None]]] = {}
    for case in results.where():
        points = lines.setdefault(_label(case), {})
        if case["uplink"] == "aircomp":
            points[case["snr_db"]] = results.costs(case, "sim_seconds", TARGET)
            continue
        hits = [(run.seed, first_reaching(run.rows, TARGET)) for run in results.of(case)]
        for snr in snrs:
            points[snr] = [
                None if hit is None else simulated_seconds(case, seed, snr, hit["round"])
                for seed, hit in hits
            ]
    return {label: dict(sorted(points.items())) for label, points in lines.items()}


_PRICES: dict[str, Prices] = {}
"""Prices of the runs that were asked for, by name of the run."""


def simulated_seconds(case: Case, seed: int, snr_db: float, rounds: int) -> float:
    """Simulated seconds of the first ``rounds`` global rounds at another SNR, without training."""
    tables = case.config(seed).given_tables()
    tables["network"] = tables["network"] | {"snr_db": snr_db}
    config = Config.of(tables)
    name = identity(config)
    if name not in _PRICES:
        _PRICES[name] = price(config, joules=False)
    return float(_PRICES[name].at_round(rounds)["sim_seconds"])


def _seconds(
    results: Results,
    lines: dict[str, dict[float, list[float | None] | None]],
    ticks: list[float],
    label: str,
    path: Path,
) -> list[Path]:
    figure, (panel,) = new_figure(height=2.9)
    panel.set_yscale("log")
    for place, (name, points) in enumerate(lines.items()):
        draw_points(panel, points, name, place)
    panel.margins(x=0.12)
    room(panel)
    if not any(len(line.get_xdata()) for line in panel.get_lines()):
        panel.set_yticks([])
    panel.set_xticks(ticks)
    panel.set_xlabel(label)
    panel.set_ylabel(f"simulated seconds to {100 * TARGET:g} %")
    legend(figure, [panel], *facts(results, results.where()))
    return save(figure, results, path)


def _label(case: Case) -> str:
    return f"{NAMES[case['algorithm']]}, {UPLINKS[case['uplink']]}"


def _snr_label(case: Case) -> str:
    return "OMA" if case["uplink"] == "tdma" else f"AirComp, {case['snr_db']:g} dB"


def _beamformer_labels() -> list[str]:
    return [f"{name} beamformer" for name in BEAMFORMERS.values()]


def _error(seeds: list[list[dict[str, Any]]], name: str) -> str:
    """Mean error over seeds and rounds, in units of the squared accumulated gradient."""
    values = [row[name] for run in seeds for row in run if row.get(name) is not None]
    return f"{statistics.mean(values):.3g}" if values else "-"


def _shown(seeds: Sequence[float | None]) -> str:
    values = [value for value in seeds if value is not None]
    if not values:
        return MISSING
    some = f" ({len(values)} of {len(seeds)} seeds)" * (len(values) < len(seeds))
    return f"{statistics.mean(values):.2f}{some}"
