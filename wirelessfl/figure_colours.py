"""The colours of figures: one per method, in all figures."""

from __future__ import annotations

import re
from collections.abc import Sequence

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
    found = _NAMES.match(label)
    return found[1].lower() if found else None


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
    known = [name for name in methods.values() if name is not None]
    others = list(dict.fromkeys(rests[label] for label in labels if methods[label] is not None))
    several = len(set(known)) < len(known)
    free = [one for one in COLOURS if one not in {_COLOUR[name] for name in known}] or COLOURS
    without = [label for label in labels if methods[label] is None]
    found = {}
    for place, label in enumerate(labels):
        name = methods[label]
        if name is None:
            found[label] = free[without.index(label) % len(free)], place
            continue
        same = [one for one in labels if methods[one] == name]
        colour = shade(_COLOUR[name], same.index(label), len(same))
        found[label] = colour, others.index(rests[label]) if several else place
    return found


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
    while contrast(_mixed(colour, 1.0, lightest + 0.01)) >= LEAST_CONTRAST:
        lightest += 0.01
    if lightest > DARKEST / 2:
        return _mixed(colour, 1.0, share * lightest)
    return _mixed(colour, 0.0, place / max(count - 1, 2) * DARKEST)  # two: not another hue


def _mixed(colour: str, other: float, share: float) -> str:
    parts = [round(255 * ((1 - share) * v + share * other)) for v in _parts(colour)]
    return "#" + "".join(f"{part:02X}" for part in parts)


def _parts(colour: str) -> list[float]:
    return [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
