"""Marks in figures: seeds, bounds, missed targets, legends, bars, and spans of time."""

from __future__ import annotations

import math
import statistics
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from wirelessfl.base.figures.style import looks, style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

NOT_REACHED, NOT_RUN, DIVERGED = "not reached", "not run", "diverged"
BOUND, DOT, RANGE, ONE, BAND, SEEDS = "bound", "seed", "range", "one seed", "band", "seeds"
"""What artists with these gids show."""
DOTS = 5
"""Most seeds that are drawn as dots; the range of more is a line."""
SHIFT = 1.15
"""Distance of marks at the same place, in units of the size of the text."""
BESIDE = 0.62
"""Distance of the dots of seeds from their mean, in units of the size of the text."""
HIGH = 0.13
"""Height of the band of targets that are not reached, as a share of the axis."""
EM, LINE, SPACING = 0.58, 1.2, 0.5
"""Mean width of a character, height of a line and space between the entries of a legend, in units
of the size of the text."""
HANDLE = 4.5
"""Width of a legend's handle and margins, in units of the size of the text."""
PLACED = {NOT_REACHED: (r"$\uparrow$", 1 - HIGH / 2, 1.1, 0.3), DIVERGED: ("x", 0.03, 0.7, 1.4)}
"""Markers of places without a value, which no series has: their height as a share of the axis, size
in units of small text, and width of lines."""
TALL = 0.35
"""Share of a figure's height up to which a legend takes its room from the panels."""
DARK = "0.25"
"""Colour of text in figures."""


class AtLeast(float):
    """The cost of a run that ended before its target: the cost until the target is larger."""


def missed(value: float | None) -> bool:
    """Whether a seed's value is missing or only a bound."""
    return value is None or isinstance(value, AtLeast)


def diverged(value: float | None) -> bool:
    """Whether a seed's value is nan: its run has diverged, and has no accuracy."""
    return value is not None and math.isnan(value)


def hits_of(values: Sequence[float | None]) -> list[float]:
    """The values of the seeds that have one: they reach the target, or have not diverged."""
    return [float(v) for v in values if v is not None and not missed(v) and not diverged(v)]


def mean_or_bound(values: Sequence[float | None]) -> float | None:
    """The mean over the seeds; if some miss the target, a lower bound; None if all do.

    A seed without a value counts as the largest value of the others; diverged ones do not count.
    """
    hits, values = hits_of(values), [value for value in values if not diverged(value)]
    if not hits:
        return None
    return statistics.mean(max(hits) if value is None else float(value) for value in values)


def draw_seeds(
    axes: Axes, x: float, values: Sequence[float | None], colour: str, beside: bool = True
) -> None:
    """Draw the seeds that reach the target as dots, or their range if they are many.

    Args:
        axes: axes to draw on.
        x: the place.
        values: the seeds' values.
        colour: colour of the dots.
        beside: whether they stand to the right of the place, beside a marker of the mean.
    """
    from matplotlib.transforms import ScaledTranslation

    hits = hits_of(values)
    if len(values) < 2 or not hits:
        return
    look: dict[str, Any] = {"color": colour, "zorder": 3}
    if len(values) > DOTS:
        look |= {"linewidth": 1, "markersize": 4, "gid": RANGE}
        axes.plot([x, x], [min(hits), max(hits)], "_-", **look)
        return
    figure = axes.get_figure()
    assert figure is not None
    moved = ScaledTranslation(beside * BESIDE * style().small / 72, 0, figure.dpi_scale_trans)
    look |= {"markersize": style().small / 2.9, "markeredgecolor": "white", "linestyle": "none"}
    look |= {"markeredgewidth": 0.3, "transform": axes.transData + moved, "gid": DOT}
    axes.plot([x] * len(hits), hits, marker="o", **look)
    axes.update_datalim([(x, min(hits)), (x, max(hits))])


def draw_bound(axes: Axes, x: float, y: float, colour: str) -> None:
    """Draw an arrow upwards from a bound."""
    arrow = axes.annotate(
        "",
        (x, y),
        (0, 13),
        textcoords="offset points",
        arrowprops={"arrowstyle": "<-", "color": colour, "linewidth": 1.1, "shrinkB": 2},
        annotation_clip=False,
    )
    arrow.set_gid(BOUND)


def mark(axes: Axes, x: float, text: str, colour: str = DARK) -> None:
    """Mark a place of the horizontal axis that has no value.

    A target that is not reached is an arrow in the band that ``finish`` draws at the top of the
    axis, and a diverged run a cross at its bottom. Several marks at the same place stand side by
    side, centred on it.

    Args:
        axes: axes to draw on.
        x: the place.
        text: ``NOT_REACHED``, ``NOT_RUN`` or ``DIVERGED``.
        colour: colour of the arrow.
    """
    if text in PLACED:
        form, height, size, width = PLACED[text]
        look: dict[str, Any] = {"color": colour, "gid": text, "clip_on": False, "zorder": 4}
        look |= {"marker": form, "markersize": size * style().small, "markeredgewidth": width}
        axes.plot([x], [height], transform=axes.get_xaxis_transform(), **look)
        if text == DIVERGED:
            axes.set_ymargin(HIGH)  # room below the values
            axes.autoscale_view()
    else:
        axes.annotate(
            text,
            (x, 0),
            (0, 3),
            xycoords=("data", "axes fraction"),
            textcoords="offset points",
            fontsize=style().small,
            fontstyle="italic",
            color=DARK,
            bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.3, "alpha": 0.85},
            zorder=1.5,  # above the grid, below lines and error bars
            rotation=90,
            ha="center",
            va="bottom",
        )
    _side_by_side(axes, x)


def _side_by_side(axes: Axes, x: float) -> None:
    """Move the marks at a place apart."""
    from matplotlib.text import Annotation
    from matplotlib.transforms import ScaledTranslation

    figure = axes.get_figure()
    assert figure is not None
    apart = SHIFT * style().small
    for text in PLACED:
        marks = [line for line in marks_of(axes, text) if line.get_xdata()[0] == x]
        for i, line in enumerate(marks):
            shift = (i - (len(marks) - 1) / 2) * apart / 72
            moved = ScaledTranslation(shift, 0, figure.dpi_scale_trans)
            line.set_transform(axes.get_xaxis_transform() + moved)
    annotations = (annotation for annotation in axes.texts if isinstance(annotation, Annotation))
    texts = [
        annotation
        for annotation in annotations
        if annotation.get_text() == NOT_RUN and annotation.xy == (x, 0)
    ]
    for i, annotation in enumerate(texts):
        annotation.xyann = (i - (len(texts) - 1) / 2) * apart, 3


def marks_of(axes: Axes, text: str = NOT_REACHED) -> list[Any]:
    """The arrows of targets that are not reached, or the crosses of diverged runs."""
    return [line for line in axes.get_lines() if line.get_gid() == text]


def finish(figure: Figure) -> None:
    """Add bands for targets that are not reached; no axis of positive values goes below 0.

    Panels with the same vertical axis keep it.
    """
    together: dict[tuple[float, float], list[Axes]] = {}
    for panel in figure.axes:
        together.setdefault(panel.get_ylim(), []).append(panel)
    for (low, high), panels in together.items():
        least = min((panel.dataLim.y0 for panel in panels), default=0.0)
        if low < 0 < least:
            for panel in panels:
                panel.set_ylim(bottom=0)
        done = any(patch.get_gid() == BAND for panel in panels for patch in panel.patches)
        if any(map(marks_of, panels)) and not done:
            for panel in panels:
                _band(panel, high)


def _band(panel: Axes, high: float) -> None:
    """Add a band above the values, without ticks."""
    low = panel.get_ylim()[0]
    scale = panel.yaxis.get_transform()
    bottom, top = scale.transform([low, high])
    (end,) = scale.inverted().transform([top + HIGH / (1 - HIGH) * (top - bottom)])
    for minor in (False, True):
        ticks = [tick for tick in panel.get_yticks(minor=minor) if low <= tick <= high]
        panel.set_yticks(ticks, minor=minor)
    panel.axhspan(high, end, color="0.9", linewidth=0, zorder=0.5, gid=BAND)
    panel.set_ylim(low, end)


def counted_seeds(counts: Iterable[int]) -> str:
    """The gid of a labelled line or bar: the least and the largest number of seeds."""
    present = [count for count in counts if count]
    return f"{SEEDS} {min(present)} {max(present)}" if present else ""


def entries(panels: Sequence[Axes]) -> dict[str, Any]:
    """The entries of a legend: handle by text, with the number of seeds where these differ."""
    handles: dict[str, Any] = {}
    for panel in panels:
        for handle, text in zip(*panel.get_legend_handles_labels(), strict=True):
            handles.setdefault(text, _plain(handle))
    counts = _counts(panels)
    differ = len(set(map(frozenset, counts.values()))) > 1
    return {
        _numbered(text, counts.get(text) if differ else None): handle
        for text, handle in handles.items()
    }


def legend_above(figure: Figure, by_text: Mapping[str, Any], title: str = "") -> None:
    """A legend above the panels, in as few lines as fit; if it is tall, the figure gets higher.

    Args:
        figure: the figure.
        by_text: handles by label; labels that are wider than the figure are wrapped.
        title: title of the legend.
    """
    small, width, height = style().small, figure.get_figwidth(), figure.get_figheight()
    by_text = {wrapped(figure, text, HANDLE): handle for text, handle in by_text.items()}
    longest = max(len(line) for text in by_text for line in text.split("\n"))
    entry = (EM * longest + HANDLE) * small / 72
    fitting = max(min(int(width / entry), len(by_text)), 1)
    rows = math.ceil(len(by_text) / fitting)
    tallest = LINE * (1 + max(text.count("\n") for text in by_text)) + SPACING
    tall = (LINE * (title.count("\n") + 1) + rows * tallest) * small / 72
    figure.set_figheight(height + max(tall - TALL * height, 0.0))
    figure.legend(
        by_text.values(),
        by_text.keys(),
        title=title or None,
        loc="outside upper center",
        ncols=math.ceil(len(by_text) / rows),
        fontsize=small,
        title_fontsize=small,
        frameon=False,
        columnspacing=1.2,
        handlelength=2.8,
        borderpad=0.1,
    ).get_title().set_multialignment("center")


def wrapped(figure: Figure, text: str, beside: float = 0.0) -> str:
    """The text in as few lines as fit into the figure, of about equal length.

    ``beside``: width that is not free, in units of the size of the text.
    """
    width = int((72 * figure.get_figwidth() / style().small - beside) / EM)
    lines = textwrap.wrap(text, width, break_long_words=False)
    for narrower in range(width - 1, 0, -1):
        attempt = textwrap.wrap(text, narrower, break_long_words=False)
        if len(attempt) > len(lines):
            break
        lines = attempt
    return "\n".join(lines)


def _counts(panels: Iterable[Axes]) -> dict[str, set[int]]:
    """The least and the largest number of seeds by label."""
    counts: dict[str, set[int]] = {}
    for panel in panels:
        for handle, text in zip(*panel.get_legend_handles_labels(), strict=True):
            artist = handle.patches[0] if hasattr(handle, "patches") else handle
            words = str(getattr(artist, "get_gid", lambda: "")() or "").split()
            if words[:1] == [SEEDS]:
                counts.setdefault(text, set()).update(map(int, words[1:]))
    return counts


def _numbered(text: str, counts: set[int] | None) -> str:
    if not counts:
        return text
    least, most = min(counts), max(counts)
    return f"{text} (n = {most})" if least == most else f"{text} (n = {least} to {most})"


def _plain(handle: Any) -> Any:
    """The handle of a legend; that of bars is opaque, also if the first of them is a bound."""
    from matplotlib.container import BarContainer
    from matplotlib.patches import Patch

    bars = isinstance(handle, BarContainer)
    return Patch(color=handle.patches[0].get_facecolor()[:3]) if bars else handle


def explained(figure: Figure) -> list[str]:
    """What marks and axes of a figure mean, in words; single seeds are open where numbers differ.

    Args:
        figure: the figure.
    """
    lines = [line for panel in figure.axes for line in panel.get_lines()]
    arrows = any(text.get_gid() == BOUND for panel in figure.axes for text in panel.texts)
    gids = {line.get_gid() for line in lines}
    counts = _counts(figure.axes)
    differ = len(set().union(*counts.values())) > 1
    single = [line for line in lines if line.get_gid() == ONE]
    for line in single:
        line.set_visible(differ)
    return [
        *["dots: seeds"] * (DOT in gids),
        *[f"bars: range of more than {DOTS} seeds"] * (RANGE in gids),
        *["↑ in the band: target not reached"] * (NOT_REACHED in gids),
        *["↑ at a mean: at least, as some seeds do not reach it"] * arrows,
        *["×: diverged seeds, which leave the mean"] * (DIVERGED in gids),
        *["n: seeds"] * (len(set(map(frozenset, counts.values()))) > 1),
        *["open: one seed"] * (differ and bool(single)),
        *dict.fromkeys(
            f"axis: linear within ±{axis.get_transform().linthresh:g}, else logarithmic"  # type: ignore[attr-defined]
            for panel in figure.axes
            for axis in (panel.xaxis, panel.yaxis)
            if axis.get_scale() == "symlog"
        ),
    ]


MANY_SPANS = 5000
"""Number of spans above which they are stored as pixels in the PDF."""
Span = tuple[float, float, float]
"""Begin and length in seconds, and height of the line."""
Looks = Mapping[str, Mapping[str, Any]]
"""Properties of patches, by kind of span."""


def draw_bars(
    axes: Axes,
    bars: Mapping[str, Mapping[str, Sequence[float | None]]],
    label: str,
    groups: Sequence[str] = (),
) -> None:
    """Draw grouped bars: a bar shows the mean over the seeds, and dots (of many, a line) the seeds.

    Args:
        axes: axes to draw on.
        bars: the seeds' values by series and group; None for a seed that does not reach the target,
            or ``AtLeast`` with the cost at which it ended; nan for one that diverged, which is a
            cross at the bottom and not in the mean. A bar of which only some seeds reach it
            is pale, with an arrow: a lower bound of the mean. If no seed does, the place has an
            arrow in a band at the top; if the group is absent, it is marked "not run".
        label: label of the vertical axis.
        groups: all groups in order; by default those of ``bars`` as they come.

    Raises:
        ValueError: there are no series or no groups.
    """
    from matplotlib.patches import Patch

    groups = groups or list(dict.fromkeys(group for series in bars.values() for group in series))
    if not bars or not groups:
        raise ValueError(f"bars is {dict(bars)}: give at least one series with a group.")
    width, small, by_label = 0.8 / len(bars), style().small, looks(list(bars))
    for i, (series, by_group) in enumerate(bars.items()):
        colour = by_label[series]["color"]
        gid = counted_seeds(map(len, by_group.values()))
        shown = axes.fill_between([], [], color=colour, label=series)
        shown.set_gid(gid)  # for legends: in full colour even if bars are pale
        for j, group in enumerate(groups):
            seeds = by_group.get(group, ())
            x = j + (i - (len(bars) - 1) / 2) * width
            height = mean_or_bound(seeds)
            if any(map(diverged, seeds)):
                mark(axes, x, DIVERGED, "0.2")
            (bar,) = axes.bar(x, height or 0.0, width, color=colour, gid=gid)
            bar.set(edgecolor="white", linewidth=0.5)
            if height is None and not any(map(diverged, seeds)):
                mark(axes, x, NOT_REACHED if group in by_group else NOT_RUN, colour)
            if height is None:
                continue
            draw_seeds(axes, x, seeds, "0.2", beside=False)
            if any(map(missed, seeds)):
                bar.set_alpha(0.5)
                draw_bound(axes, x, height, "0.2")
    axes.set_xticks(range(len(groups)), groups, fontsize=small)
    axes.set_ylabel(label, fontsize=style().text)
    axes.grid(visible=False, axis="x")
    axes.set_axisbelow(True)
    axes.margins(y=0.35)  # room for the legend
    every = [seeds for by_group in bars.values() for seeds in by_group.values()]
    if all(mean_or_bound(seeds) is None for seeds in every):
        axes.set_ylim(0, 1)
        axes.set_yticks([])
    handles = [Patch(color=by_label[series]["color"], label=series) for series in bars]
    axes.legend(handles=handles, fontsize=small, frameon=False)


def draw_spans(
    panel: Axes,
    spans: Mapping[str, Sequence[Span]],
    looks: Looks,
    legend: Looks,
    *,
    clients: str,
    thick: Sequence[str] = (),
) -> None:
    """Draw what clients do over simulated time, a line per client.

    Args:
        panel: axes to draw on.
        spans: the spans of each kind.
        looks: properties of their patches.
        legend: entries of the legend above, with the properties of their patches.
        clients: which clients are shown.
        thick: kinds whose spans have no gaps between lines.
    """
    from matplotlib.collections import PolyCollection
    from matplotlib.patches import Patch

    pixels = sum(map(len, spans.values())) > MANY_SPANS
    for name, bars in spans.items():
        if not bars:
            continue
        begin, length, height = np.array(bars).T
        half = 0.5 if name in thick else 0.4
        x = np.stack([begin, begin + length, begin + length, begin], -1)
        y = np.stack([height - half, height - half, height + half, height + half], -1)
        look = {"linewidth": 0.0, "zorder": 1, **looks[name]}
        panel.add_collection(
            PolyCollection(list(np.stack([x, y], -1)), label=name, rasterized=pixels, **look)
        )
    panel.set_xlabel("simulated time (s)", fontsize=style().text)
    panel.set_ylabel(clients, fontsize=style().text)
    panel.legend(
        handles=[Patch(label=name, **look) for name, look in legend.items()],
        fontsize=style().small,
        frameon=False,
        loc="lower right",
        ncols=len(legend),
        bbox_to_anchor=(1.0, 1.0),
        columnspacing=1.0,
        handlelength=1.2,
    )
