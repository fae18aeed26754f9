"""Accuracy after 10, 20 and 30 rounds, beside what the published code gives."""

from __future__ import annotations

import statistics
import tomllib
from pathlib import Path
from typing import Any

from experiments.runs import kept_run
from wirelessfl.figures import draw_curves, new_figure, save_figure

SETTINGS = Path(__file__).with_name("landmark.toml")
DROPOUTS = (0.5, 0.0)
Rows = list[dict[str, Any]]


def landmark(
    scale: str, out: Path, data_dir: Path | None = None
) -> dict[tuple[str, float], list[Rows]]:
    """Run every case with and without dropout; write the table and the figure into ``out``.

    Returns:
        By (label, dropout), the rows of each seed.
    """
    settings = tomllib.loads(SETTINGS.read_text(encoding="utf-8"))
    chosen = settings["scale"][scale]
    report, seeds = chosen["report"], chosen["seeds"]
    common = settings["settings"] | {
        key: value for key, value in chosen.items() if key not in ("report", "seeds")
    }
    rows: dict[tuple[str, float], list[Rows]] = {}
    for seed in seeds:
        for dropout in DROPOUTS:
            for case in settings["case"]:
                label = case["label"]
                result = kept_run(
                    f"{label}, dropout {dropout:g}, seed {seed}",
                    out / "runs",
                    case["algorithm"],
                    **common,
                    cells=case["cells"],
                    dropout=dropout,
                    seed=seed,
                    data_dir=data_dir,
                )
                rows.setdefault((label, dropout), []).append(result.rows)
    out.mkdir(parents=True, exist_ok=True)
    table = markdown(settings["case"], rows, report) + "\n" + traffic(settings["case"], rows)
    (out / "landmark.md").write_text(table, encoding="utf-8")
    print(table)
    figure, panels = new_figure(columns=2)
    for panel, dropout in zip(panels, DROPOUTS, strict=True):
        curves = {case["label"]: rows[case["label"], dropout] for case in settings["case"]}
        draw_curves(panel, curves, "round", floor=0.6, legend=dropout == DROPOUTS[0])
        panel.set_title(f"dropout {dropout:g}", fontsize=9)
    for file in save_figure(figure, out / "landmark"):
        print(f"drawn: {file}")
    return rows


def markdown(
    cases: list[dict[str, Any]], rows: dict[tuple[str, float], list[Rows]], report: list[int]
) -> str:
    """The table: mean accuracy in percent over the seeds after each of the rounds ``report``."""
    shown = " / ".join(map(str, report))
    lines = [
        f"| accuracy (%) after {shown} rounds | published code, dropout 0.5, seed 1 "
        "| ours, dropout 0.5 | each seed | ours, no dropout | each seed |",
        "|---|---|---|---|---|---|",
    ]
    for case in cases:
        cells = [case["label"]]
        cells.append(" / ".join(f"{v:.1f}" for v in case.get("published", [])) or "-")
        for dropout in DROPOUTS:
            seeds = [accuracies(run, report) for run in rows[case["label"], dropout]]
            means = [statistics.mean(at) for at in zip(*seeds, strict=True)]
            cells.append(" / ".join(f"{v:.1f}" for v in means))
            cells.append("; ".join(" / ".join(f"{v:.1f}" for v in s) for s in seeds))
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def traffic(cases: list[dict[str, Any]], rows: dict[tuple[str, float], list[Rows]]) -> str:
    """A table of the MiB a client has sent when its run first reaches 75 %, for each seed."""
    lines = ["| MiB a client to 75 %, each seed | dropout 0.5 | no dropout |", "|---|---|---|"]
    for case in cases:
        cells = [case["label"]]
        for dropout in DROPOUTS:
            sent = [
                next((f"{row['uplink_mib']:.1f}" for row in run if row["accuracy"] >= 0.75), "-")
                for run in rows[case["label"], dropout]
            ]
            cells.append(" / ".join(sent))
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def accuracies(rows: Rows, report: list[int]) -> list[float]:
    """Accuracy in percent at each of the rounds."""
    by_round = {row["round"]: 100 * row["accuracy"] for row in rows}
    return [by_round[number] for number in report]
