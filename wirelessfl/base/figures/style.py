"""The style of figures: sizes in print or on screens, colours of methods, dashes and markers."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Literal

from wirelessfl.base.rows import TITLES, is_accuracy, numeric_fields, unknown_field
from wirelessfl.base.wording import shown

BLUE, ORANGE, TEAL, BROWN = "#1054FA", "#F36712", "#31A28E", "#723E1D"
LAVENDER, NAVY, BLACK = "#9E80DA", "#021C7E", "#000000"
COLOURS = [BLUE, ORANGE, TEAL, BROWN, LAVENDER, NAVY, BLACK]
"""Distinct also for colour-blind readers, with a contrast of at least 3 on white."""
LEAST_CONTRAST = 3.0
"""Contrast on white that graphics need (WCAG 2.1, 1.4.11)."""
DARKEST = 0.35
"""Share of black in the darkest shade of a colour that cannot be lighter."""
METHODS = {
    BLUE: ("hist", "ra-fed", "fadamgc", "fedast", "fedacg", "proposed"),
    ORANGE: ("hfedavg", "fedavg-small", "local-adam", "localadam", "sync-st", "average", "fedyogi"),
    TEAL: (
        "ram-fed", "fa-nt", "fedast-nobuffer", "moon", "continuous", "aircomp", "fedadagrad",
    ),
    BROWN: ("fedrolex", "fedadam", "sync-ucb-st", "fedprox", "fresh", "ofdma"),
    LAVENDER: ("heterofl", "fedams", "sync-bayes-st", "random pilot", "random-pilot"),
    NAVY: ("scaffold", "scaffold-m", "fedbuff", "equal"),
    BLACK: (
        "fedavg", "fedavg-m", "fedasync", "centralised", "previous", "oma", "tdma", "optimal",
    ),
}  # fmt: skip
"""Algorithms, warm starts and uplinks by colour; those that are compared have different ones."""
_COLOUR = {name: colour for colour, names in METHODS.items() for name in names}
_NAMES = re.compile(
    rf"({'|'.join(sorted(map(re.escape, _COLOUR), key=len, reverse=True))})(?![\w-])", re.IGNORECASE
)


def method_of(label: str) -> str | None:
    """The method with which a label begins, such as ``hist`` of ``HIST, N = 4``; None without.

    >>> method_of("HIST, N = 4"), method_of("fedavg-small"), method_of("history")
    ('hist', 'fedavg-small', None)
    """
    match = _NAMES.match(label)
    return match[1].lower() if match else None


def colour_of(method: str) -> str:
    """The colour of a method in all figures.

    >>> colour_of("HIST, N = 4") == colour_of("hist")
    True

    Args:
        method: name of an algorithm, a warm start or an uplink, or a label that begins with it.

    Raises:
        ValueError: the method has no colour.
    """
    name = method_of(method)
    if name is None:
        raise ValueError(
            f"method is {method!r}, which has no colour: choose {', '.join(sorted(_COLOUR))}, or "
            "a colour of COLOURS."
        )
    return _COLOUR[name]


def looks_of(labels: Sequence[str]) -> dict[str, tuple[str, int]]:
    """Colour, and number of dashes and marker, by label; see ``looks``."""
    labels = list(dict.fromkeys(labels))
    methods = {label: method_of(label) for label in labels}
    rests = {label: label[len(name or "") :] for label, name in methods.items()}
    named = [name for name in methods.values() if name is not None]
    others = list(dict.fromkeys(rests[label] for label in labels if methods[label] is not None))
    several = len(set(named)) < len(named)
    free = [one for one in COLOURS if one not in {_COLOUR[name] for name in named}] or COLOURS
    without = [label for label in labels if methods[label] is None]
    by_label = {}
    for place, label in enumerate(labels):
        name = methods[label]
        if name is None:
            by_label[label] = free[without.index(label) % len(free)], place
            continue
        same = [one for one in labels if methods[one] == name]
        colour = shade(_COLOUR[name], same.index(label), len(same))
        by_label[label] = colour, others.index(rests[label]) if several else place
    return by_label


def contrast(colour: str) -> float:
    """The contrast of a colour, as in ``#1054FA``, with white (WCAG 2.1)."""
    linear = [v / 12.92 if v <= 0.04045 else ((v + 0.055) / 1.055) ** 2.4 for v in _parts(colour)]
    red, green, blue = linear
    return 1.05 / (0.2126 * red + 0.7152 * green + 0.0722 * blue + 0.05)


def shade(colour: str, place: int, count: int) -> str:
    """One of ``count`` shades of a colour: the colour itself, then lighter, or else darker ones."""
    if count < 2:
        return colour
    share, lightest = place / (count - 1), 0.0
    while contrast(mixed(colour, 1.0, lightest + 0.01)) >= LEAST_CONTRAST:
        lightest += 0.01
    if lightest > DARKEST / 2:
        return mixed(colour, 1.0, share * lightest)
    return mixed(colour, 0.0, place / max(count - 1, 2) * DARKEST)  # two: not another hue


def mixed(colour: str, end: float, share: float) -> str:
    """A colour with a share of white, if ``end`` is 1, or of black, if it is 0."""
    parts = [round(255 * ((1 - share) * v + share * end)) for v in _parts(colour)]
    return "#" + "".join(f"{part:02X}" for part in parts)


def _parts(colour: str) -> list[float]:
    return [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]


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

    >>> from wirelessfl.results import line_look
    >>> line_look(0)["linestyle"], line_look(1)["linestyle"]
    ('-', (0, (5, 2)))

    Args:
        place: number of the line, which decides its dashes and its marker.
        label: its label; if it begins with a method that has a colour, the line has this colour,
            else that of its number.
    """
    coloured = label is not None and method_of(label) is not None
    return {
        "color": colour_of(label) if label and coloured else COLOURS[place % len(COLOURS)],
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


def check_scales(what: str, accuracies: Mapping[str, float | None], smooth: int) -> None:
    """Check settings of ``draw_curves``; those in ``accuracies`` are of accuracies only."""
    for name, value in accuracies.items():
        if value is None:
            continue
        if not is_accuracy(what):
            raise ValueError(
                f"{name}={value} conflicts with what={what!r}: it is an accuracy. Leave it out."
            )
        if not 0 <= value <= 1:
            raise ValueError(
                f"{name} is {shown(value)}: give an accuracy in [0, 1], such as 0.9 for 90 %."
            )
    if not isinstance(smooth, int) or smooth < 1 or smooth % 2 == 0:
        raise ValueError(f"smooth is {shown(smooth)}: give an odd number of rows, at least 1.")


def check_curves(runs: Any, fields: Mapping[str, str], styles: Sequence[str]) -> None:
    """Check the rows that ``draw_curves`` is given.

    Args:
        runs: its argument.
        fields: fields that some row needs, by the argument that gives them.
        styles: its argument.
    """
    if not isinstance(runs, Mapping):
        raise ValueError(
            f"runs is {shown(runs)}: give the rows of each seed's run by label, such as "
            '{"fedavg": [result.rows]}.'
        )
    if not runs:
        raise ValueError("runs is empty: give at least one curve.")
    for label, seeds in runs.items():
        if not seeds or not all(seeds):
            raise ValueError(f"runs[{label!r}] has no rows: give rows of at least one run.")
        if not all(isinstance(row, Mapping) for rows in seeds for row in rows):
            raise ValueError(
                f"runs[{label!r}] is {shown(seeds)}: give a list of the rows of each run, such as "
                "[result.rows]."
            )
        if styles and label not in styles:
            raise ValueError(f"styles is {shown(styles)}: it lacks the label {label!r}. Add it.")
    together = [row for seeds in runs.values() for rows in seeds for row in rows]
    every = numeric_fields(together)
    for argument, name in fields.items():
        if name not in every and not (name in TITLES and any(name in row for row in together)):
            raise ValueError(unknown_field(argument, name, every, together))
