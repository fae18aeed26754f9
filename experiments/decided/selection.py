"""Who takes part: accuracy, seconds and joules of the selections of clients."""

from __future__ import annotations

import statistics
from pathlib import Path

from experiments.labels import costs_of, data_name, seeds_text
from experiments.studies import Results
from wirelessfl.figures import draw_bars, save_figure
from wirelessfl.results.panels import draw_points, grid, legend
from wirelessfl.results.report import markdown, reached, spread

TARGET = 0.75
TESTS = 3
"""Evaluations that are averaged, as single ones vary by points."""
AXES = (("sim_seconds", "simulated seconds"), ("joules", "J per client"))


def table(results: Results) -> str:
    """Cost of a round, final accuracy, and costs to the target."""
    goal = f"{100 * TARGET:g} %"
    head = [
        "selection",
        "seeds",
        "s per round",
        "J per client and round",
        "J, largest client / mean",
    ]
    head += ["final accuracy (%)"]
    goal += f", mean of {TESTS} evaluations"
    head += [f"rounds to {goal}", f"s to {goal}", f"J per client to {goal}"]
    rows = []
    for case in results.where():
        seeds = results.rows(case)
        ends = [run[-1] for run in seeds]
        rows.append(
            [
                case["select"],
                str(len(seeds)),
                f"{statistics.mean(end['sim_seconds'] / end['round'] for end in ends):.2f}",
                f"{statistics.mean(end['joules'] / end['round'] for end in ends):.3f}",
                f"{statistics.mean(end['joules_max'] / end['joules'] for end in ends):.1f}",
                spread(results.finals(case)),
                reached(seeds, TARGET, "round", "d", TESTS),
                reached(seeds, TARGET, "sim_seconds", tests=TESTS),
                reached(seeds, TARGET, "joules", ".2f", TESTS),
            ]
        )
    return markdown(head, rows)


def draw(results: Results, out: Path) -> list[Path]:
    """Final accuracy, and seconds and joules to the target, by selection."""
    cases = results.where()
    goal = f"to {100 * TARGET:g} %"
    figure, axes = grid(3, height=2.4)
    labels = [str(case["select"]) for case in results.study.cases]
    finals = {labels.index(str(case["select"])): results.finals(case) for case in cases}
    draw_points(axes[0], finals, None, 0, line=False)
    axes[0].set_xticks(range(len(labels)), labels)
    axes[0].set_ylabel("final accuracy (%)")
    for panel, (field, text) in zip(axes[1:], AXES, strict=True):
        spent = {
            str(case["select"]): costs_of(results, case, field, TARGET, TESTS) for case in cases
        }
        draw_bars(panel, {"": spent}, f"{text} {goal}", labels)
    for panel in axes:
        panel.tick_params(axis="x", labelrotation=40)
    shares = f"{cases[0]['clients_per_round']} of {cases[0]['clients']} clients per round"
    about = seeds_text(results, cases, "mean"), shares, f"target: mean of {TESTS} evaluations"
    legend(figure, axes, data_name(cases), *about)
    return save_figure(figure, out / "selection")
