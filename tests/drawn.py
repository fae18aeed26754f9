"""Read panels, lines, bars and legends of figures, so that tests can compare them with rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from wirelessfl.base.figures.marks import BAND, NOT_REACHED, NOT_RUN, finish, marks_of

COARSE = 30
"""Resolution of rendered figures, in dots per inch."""
AGAINST = {
    "round": "global round",
    "uplink_mib": "uplink traffic per client (MiB)",
    "sim_seconds": "simulated time (s)",
}
"""Horizontal axes of curves, with their units."""
ACCURACY = "test accuracy (%)"


@contextmanager
def recorded(laid_out: bool = True, rendered: bool = False) -> Iterator[dict[str, Figure]]:
    """Collect the figures saved inside the context, by file name; the first one of each name.

    Only the .png file of a figure is written, empty unless ``rendered``. Both output files are
    tested in tests/wirelessfl/base/test_figures.py.

    Args:
        laid_out: whether to run the layout engine, which takes longer than drawing.
        rendered: whether to write the image, in low resolution.
    """
    drawn: dict[str, Figure] = {}
    save = Figure.savefig

    def savefig(figure: Figure, path: Path, **_: Any) -> None:
        if Path(path).suffix == ".png":
            if not laid_out:
                figure.set_layout_engine("none")
            if rendered:
                save(figure, path, dpi=COARSE)
            else:
                figure.draw_without_rendering()
                Path(path).touch()
            drawn.setdefault(Path(path).stem, figure)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Figure, "savefig", savefig)
        yield drawn


def finished(figure: Figure) -> Figure:
    """The figure as it is saved, without the layout engine, which takes longer than drawing."""
    figure.set_layout_engine("none")
    finish(figure)
    figure.draw_without_rendering()
    return figure


def lines(panel: Axes) -> dict[str, tuple[list[float], list[float]]]:
    """The labelled lines of a panel: x and y by label."""
    return {
        str(line.get_label()): (list(line.get_xdata()), list(line.get_ydata()))
        for line in panel.get_lines()
        if not str(line.get_label()).startswith("_")
    }


def legend(figure: Figure) -> list[str]:
    """The entries of the legends of a figure and its panels."""
    legends = [*figure.legends, *(panel.get_legend() for panel in figure.axes)]
    return [text.get_text() for one in legends if one for text in one.get_texts()]


def facts(figure: Figure) -> str:
    """The line above the panels: the title of the figure's legend, or of the figure."""
    shown = [one.get_title().get_text() for one in figure.legends]
    return " ".join([*shown, figure.get_suptitle()]).replace("\n", " ").strip()


def marks(panel: Axes) -> list[tuple[float, str]]:
    """The places of a panel's horizontal axis that are marked "not reached" or "not run"."""
    found = [(float(line.get_xdata()[0]), NOT_REACHED) for line in marks_of(panel)]
    texts = [text for text in panel.texts if text.get_text() == NOT_RUN]
    found += [(float(text.xy[0]), NOT_RUN) for text in texts]  # type: ignore[attr-defined]
    return sorted(found)


def titles(figure: Figure) -> list[str]:
    """The title of each panel."""
    return [panel.get_title() for panel in figure.axes]


def ticks(panel: Axes) -> list[str]:
    """The tick labels of a panel's horizontal axis."""
    return [text.get_text() for text in panel.get_xticklabels()]


def bars(panel: Axes) -> dict[str, list[float]]:
    """Heights of a panel's bars from left to right, by series."""
    groups = len(ticks(panel))
    heights = [bar.get_height() for bar in panel.patches if bar.get_gid() != BAND]
    labels = (str(one.get_label()) for one in panel.collections)
    names = [label for label in labels if label and not label.startswith("_")]
    assert len(heights) == groups * len(names)
    return {name: heights[i * groups : (i + 1) * groups] for i, name in enumerate(names)}


def assert_curves(
    panel: Axes,
    runs: Mapping[str, Sequence[Mapping[str, Any]]],
    against: Literal["round", "uplink_mib", "sim_seconds"],
) -> None:
    """Assert that a panel shows the accuracies of these rows, one line per label, with units."""
    assert (panel.get_xlabel(), panel.get_ylabel()) == (AGAINST[against], ACCURACY)
    shown = lines(panel)
    assert shown.keys() == runs.keys()
    for label, rows in runs.items():
        x, y = shown[label]
        assert x == pytest.approx([row[against] for row in rows])
        assert y == pytest.approx([100 * row["accuracy"] for row in rows])
