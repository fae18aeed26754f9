"""Table and figure of designs that are redesigned while they train."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from pathlib import Path

from experiments.codesign.choices import median
from experiments.codesign.loops import CASES, DATASETS, EVERY, STATED, LoopRun
from wirelessfl.figures import line_look, new_figure, save_figure
from wirelessfl.results.names import DATA
from wirelessfl.results.panels import legend
from wirelessfl.results.report import MISSING, markdown

SHORT = {"own": "its own pilots", "seed": "pilots of another seed", "network": "another network"}
"""What a design is made for."""


def ratio(sample: LoopRun) -> float:
    """Seconds with redesigns relative to those without; infinite if only the latter exist."""
    if sample.redesigned is None:
        return 1.0 if sample.once is None else math.inf
    return 0.0 if sample.once is None else sample.redesigned[1] / sample.once[1]


def table(found: Sequence[LoopRun]) -> str:
    """One row per case and data set, and the criterion of each case."""
    head = ["design made for", "data", "runs", "s once", "s redesigned", "redesigned / once"]
    head += ["least", "largest", "changed by redesigns", "their redesigned / once", "aim"]
    rows = []
    for case in CASES:
        mine = [one for one in found if one.case == case]
        for name in DATASETS:
            some = [one for one in mine if one.dataset == name]
            if some:
                spent = [_seconds(numbers) for numbers in zip(*map(_both, some), strict=True)]
                rows.append([SHORT[case], DATA[name], str(len(some)), *spent, *_ratios(some), "-"])
        if mine:
            rows.append(
                [SHORT[case], "all", str(len(mine)), "-", "-", *_ratios(mine), _aim(case, mine)]
            )
    return f"{finding(found)}\n\n{markdown(head, rows)}"


def _both(sample: LoopRun) -> tuple[float, float]:
    """Seconds without and with redesigns; infinity without the target."""
    once, redesigned = (
        math.inf if spent is None else spent[1] for spent in (sample.once, sample.redesigned)
    )
    return once, redesigned


def _seconds(numbers: Sequence[float]) -> str:
    return _shown(median(numbers))


def _ratios(some: Sequence[LoopRun]) -> list[str]:
    """Median and range of the ratios, and the median of the runs that redesigns change."""
    ratios = [ratio(one) for one in some]
    changed = [ratio(one) for one in some if one.changes]
    return [
        *map(_shown, (median(ratios), min(ratios), max(ratios))),
        str(len(changed)),
        _shown(median(changed)) if changed else "-",
    ]


def _aim(case: str, some: Iterable[LoopRun]) -> str:
    """The criterion of a case and whether it holds."""
    value, stated = median([ratio(one) for one in some]), STATED[case]
    if "below" in stated:
        return f"below {stated['below']:g}: {'yes' if value < stated['below'] else 'no'}"
    return f"at most {stated['at_most']:g}: {'yes' if value <= stated['at_most'] else 'no'}"


def _shown(value: float) -> str:
    return MISSING if math.isinf(value) else f"{value:.3g}"


def finding(found: Sequence[LoopRun]) -> str:
    """What redesigns gain, in a sentence per kind of design."""
    parts = []
    for case, text in (
        ("own", "Designs with their own pilots"),
        ("seed", "Those with pilots of another seed"),
        ("network", "Those made for another network"),
    ):
        mine = [one for one in found if one.case == case]
        changed = [ratio(one) for one in mine if one.changes]
        if mine:
            takes = _relative(median([ratio(one) for one in mine]))
            of = f"{len(changed)} of {len(mine)} runs change"
            of += f", and these take {_relative(median(changed))}" if changed else ""
            parts.append(f"{text} take {takes}; {of}.")
    return f"Medians of runs with redesigns every {EVERY} rounds: {' '.join(parts)}"


def _relative(value: float) -> str:
    if math.isinf(value):
        return "forever"
    percent = f"{abs(100 * (1 - value)):.2g} %"
    return "as long" if value == 1 else f"{percent} {'less' if value < 1 else 'more'} time"


def draw(found: Sequence[LoopRun], path: Path) -> list[Path]:
    """Seconds with redesigns relative to those without, one marker per run."""
    if not found:
        return []
    figure, (panel,) = new_figure(height=2.2)
    finite = [ratio(one) for one in found if math.isfinite(ratio(one))]
    most = 1.15 * max(*finite, 1.0)
    for number, name in enumerate(DATASETS):
        x, y = [], []
        for place, case in enumerate(CASES):
            mine = [one for one in found if (one.case, one.dataset) == (case, name)]
            for at, value in enumerate(sorted(ratio(one) for one in mine)):
                x.append(min(value, most))
                y.append(place + (number - 0.5) * 0.36 + 0.3 * (at / max(len(mine) - 1, 1) - 0.5))
        if x:
            panel.plot(x, y, label=DATA[name], **line_look(number) | {"linestyle": "none"})
    for place, case in enumerate(CASES):
        value = median([ratio(one) for one in found if one.case == case])
        if math.isfinite(value):
            panel.plot([value] * 2, [place - 0.42, place + 0.42], color="black", linewidth=1.2)
    panel.axvline(1, color="0.5", linewidth=0.8, linestyle=":", zorder=0)
    panel.set_yticks(range(len(CASES)), [SHORT[case] for case in CASES])
    panel.invert_yaxis()
    panel.set_xlabel("seconds to the target, redesigned / once")
    networks, seeds = (len({one[at] for one in found}) for at in (2, 3))
    facts = [f"{networks} networks, {seeds} seeds", "line: median"]
    if len(finite) < len(found):
        facts.append("at the right: not reached")
    legend(figure, [panel], *facts)
    return save_figure(figure, path)
