"""Figure 7, HIST over the air: its four panels and their tables."""

from __future__ import annotations

import statistics
from pathlib import Path
from typing import Any

from experiments.hist.figures import TARGET, to_target
from experiments.report import MISSING, accuracies, markdown, reached
from experiments.studies import NAMES, Case, Results, first_reaching
from wirelessfl.figures import COLOURS, DASHES, draw_curves, new_figure, save_figure
from wirelessfl.setup import build

UPLINKS = {"tdma": "OMA", "aircomp": "AirComp"}
BEAMFORMERS = {"anneal": "default", "mirror_prox": "Mirror-Prox", "random": "random"}


def fig7a(results: Results, out: Path) -> list[Path]:
    """Accuracy against global rounds over the air, one curve per SNR, and error-free OMA."""
    figure, (axes,) = new_figure(height=2.8)
    cases = sorted(results.where(), key=lambda case: (case["uplink"], -case["snr_db"]))
    curves = {_snr_label(case): results.rows(case) for case in reversed(cases)}
    draw_curves(axes, curves, "round", target=TARGET)
    return save_figure(figure, out / "fig7a")


def fig7b(results: Results, out: Path) -> list[Path]:
    """Simulated seconds to 80 % against the SNR, by algorithm and uplink."""
    figure, (axes,) = new_figure(height=2.8)
    for place, (label, points) in enumerate(latencies(results).items()):
        _line(axes, points, label, place)
    axes.set_xlabel("SNR (dB)", fontsize=9)
    return _seconds(figure, axes, out / "fig7b")


def fig7c(results: Results, out: Path) -> list[Path]:
    """Simulated seconds to 80 % against the number of clients per cell, by algorithm and uplink."""
    figure, (axes,) = new_figure(height=2.8)
    for place, label in enumerate(dict.fromkeys(map(_label, results.study.cases))):
        points = {
            case["clients"] // case["cells"]: to_target(results, case, "sim_seconds")
            for case in sorted(results.where(), key=lambda case: case["clients"])
            if _label(case) == label
        }
        _line(axes, points, label, place)
    axes.set_xlabel("clients per cell", fontsize=9)
    return _seconds(figure, axes, out / "fig7c")


def fig7d(results: Results, out: Path) -> list[Path]:
    """Accuracy against simulated seconds: one panel per convention, one curve per beamformer."""
    conventions = results.values("convention")
    figure, panels = new_figure(columns=len(conventions), height=2.8)
    for panel, convention in zip(panels, conventions, strict=True):
        cases = results.where(convention=convention)
        curves = {f"{BEAMFORMERS[c['beamformer']]} beamformer": results.rows(c) for c in cases}
        draw_curves(panel, curves, "sim_seconds", styles=_beamformer_labels())
        panel.set_ylim(0, 90)
        panel.set_title(f"{convention} convention, {cases[0]['snr_db']:g} dB", fontsize=9)
    return save_figure(figure, out / "fig7d")


def snr_rows(results: Results) -> str:
    """Figure 7a: accuracy after several rounds, rounds to 75 % and 80 %, transmission error."""
    head = [
        "uplink",
        "SNR (dB)",
        "accuracy (%) after 5 / 10 / 20 / 30 / 40",
        "minimum of last 10 (%)",
    ]
    head += ["rounds to 75 %", "rounds to 80 %"]
    head += ["error per element, realised", "predicted"]
    rows = []
    for case in results.where():
        seeds = results.rows(case)
        last = min(row["accuracy"] for run in seeds for row in run[-10:])
        rows.append(
            [
                UPLINKS[case["uplink"]],
                f"{case['snr_db']:g}" if case["uplink"] == "aircomp" else "any",
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
    head = ["run", *(f"s to 80 % at {snr:g} dB" for snr in snrs)]
    return markdown(
        head,
        [
            [label, *(_shown(points[snr]) if snr in points else "not run" for snr in snrs)]
            for label, points in lines.items()
        ],
    )


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
    head = ["convention", "beamformer", "error per element, realised", "predicted"]
    head += ["accuracy (%) after 10 / 20 / 40", "rounds to 75 %", "s to 75 %"]
    return markdown(
        head,
        [
            [
                case["convention"],
                BEAMFORMERS[case["beamformer"]],
                *(_error(results.rows(case), n) for n in ("air_error", "air_error_predicted")),
                accuracies(results.rows(case), (10, 20, 40)),
                reached(results.rows(case), 0.75, "round", "d"),
                reached(results.rows(case), 0.75, "sim_seconds", ".2f"),
            ]
            for case in results.where()
        ],
    )


def latencies(results: Results) -> dict[str, dict[float, list[float]]]:
    """Simulated seconds to 80 % of each seed that reaches it, by run and SNR.

    Over OMA, updates arrive without error, so the SNR only changes the duration of a round: one run
    gives the number of rounds, and the planner computes the seconds at each SNR.
    """
    snrs = sorted({case["snr_db"] for case in results.study.cases})
    lines: dict[str, dict[float, list[float]]] = {}
    for case in results.where():
        points = lines.setdefault(_label(case), {})
        if case["uplink"] == "aircomp":
            points[case["snr_db"]] = to_target(results, case, "sim_seconds")
            continue
        hits = [
            (run.config.run.seed, hit["round"])
            for run in results.runs[results.study.cases.index(case)]
            if (hit := first_reaching(run.rows, TARGET))
        ]
        for snr in snrs:
            points[snr] = [simulated_seconds(case, seed, snr, rounds) for seed, rounds in hits]
    return {label: dict(sorted(points.items())) for label, points in lines.items()}


def simulated_seconds(case: Case, seed: int, snr_db: float, rounds: int) -> float:
    """Simulated seconds of the first ``rounds`` global rounds at another SNR, without training."""
    other = Case(case.settings | {"snr_db": snr_db, "workers": 1, "chunk": 1}, case.seeds, 0)
    planner = build(other.config(seed)).planner
    return sum(float(planner.plan(number).cost.seconds.max()) for number in range(rounds))


def _line(axes: Any, points: dict[Any, list[float]], label: str, place: int) -> None:
    """Plot means over the seeds; points where no seed reaches the target are omitted."""
    reached = {x: statistics.mean(values) for x, values in points.items() if values}
    style = {"color": COLOURS[place], "linestyle": DASHES[place % len(DASHES)]}
    axes.plot(list(reached), list(reached.values()), marker="o", markersize=3, label=label, **style)


def _seconds(figure: Any, axes: Any, path: Path) -> list[Path]:
    axes.set_yscale("log")
    axes.set_ylabel(f"simulated seconds to {TARGET:.0%}", fontsize=9)
    if axes.lines:
        place = {"loc": "lower center", "bbox_to_anchor": (0.5, 1.0), "ncols": 2}
        axes.legend(fontsize=8, frameon=False, **place)  # above the axes, where it hides no line
    return save_figure(figure, path)


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


def _shown(values: list[float]) -> str:
    return f"{statistics.mean(values):.2f}" if values else MISSING
