"""The style of figures: dashes, markers, and sizes at print size or for screens."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Literal

from wirelessfl.figure_colours import COLOURS, colour_of, looks_of, method_of

# Dashes and markers distinguish curves also in greyscale.
DASHES: list[Any] = [
    "-",
    (0, (5, 2)),
    (0, (3, 1, 1, 1)),
    (0, (1, 1)),
    (0, (8, 2)),
    (0, (6, 1, 1, 1, 1, 1)),
    (0, (3, 2)),
]
MARKERS = ["o", "s", "^", "D", "v", "P", "X"]
StyleName = Literal["ieee", "screen"]


@dataclass(frozen=True)
class Style:
    """Sizes of figures, in inches, and of their text and lines, in points.

    Args:
        column: width of a figure with one panel.
        wide: width of a figure with panels side by side.
        text: size of titles and axis labels.
        small: size of tick labels, legends and notes.
        line: width of curves.
        stretch: factor of the heights given to ``new_figure``.
    """

    column: float
    wide: float
    text: float
    small: float
    line: float
    stretch: float

    @property
    def rc(self) -> Any:
        """Its settings for matplotlib."""
        return {
            "font.family": "sans-serif",
            "font.size": self.small,
            "axes.labelsize": self.text,
            "axes.titlesize": self.text,
            "xtick.labelsize": self.small,
            "ytick.labelsize": self.small,
            "legend.fontsize": self.small,
            "legend.title_fontsize": self.small,
            "legend.frameon": False,
            "figure.titlesize": self.small,
            "figure.labelsize": self.small,
            "lines.linewidth": self.line,
            "lines.markersize": self.small / 2,
            "hatch.linewidth": 0.6,
            "pdf.fonttype": 42,  # TrueType: IEEE does not accept the default, Type 3
        }


STYLES: dict[StyleName, Style] = {
    "ieee": Style(column=3.5, wide=7.16, text=8, small=7, line=1.2, stretch=1.0),
    "screen": Style(column=5.5, wide=11.0, text=11, small=10, line=1.8, stretch=1.5),
}
"""``ieee``: one or two columns of IEEE journals at print size; ``screen``: for slides and pages."""
_current: ContextVar[Style] = ContextVar("style", default=STYLES["ieee"])


def style() -> Style:
    """The style of figures that are drawn now."""
    return _current.get()


@contextmanager
def use_style(name: StyleName) -> Iterator[None]:
    """Draw and save all figures inside the context in this style; outside of it, in ``ieee``."""
    from matplotlib import rc_context

    token = _current.set(STYLES[name])
    try:
        with rc_context(style().rc):
            yield
    finally:
        _current.reset(token)


def line_look(place: int, label: str | None = None) -> dict[str, Any]:
    """Colour, dashes and marker of a line, as arguments of ``Axes.plot``.

    Args:
        place: number of the line, which decides its dashes and its marker.
        label: its label; if it begins with a method that has a colour, the line has this colour,
            else that of its number.
    """
    known = label is not None and method_of(label) is not None
    return {
        "color": colour_of(label) if label and known else COLOURS[place % len(COLOURS)],
        "linestyle": DASHES[place % len(DASHES)],
        "marker": MARKERS[place % len(MARKERS)],
        "linewidth": style().line,
        "markersize": style().small / 1.8,
    }


def looks(labels: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Colour, dashes and marker by label, as arguments of ``Axes.plot``.

    Lines of one method have its colour, in shades; then dashes and markers show what else the
    labels say, such as the number of cells.

    Args:
        labels: all labels of the figure, in order.
    """
    return {
        label: line_look(number) | {"color": colour}
        for label, (colour, number) in looks_of(labels).items()
    }
