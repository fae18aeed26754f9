"""Curves and bars show the values of the rows."""

import pytest
from matplotlib.figure import Figure

from tests.drawn import bars, legend, lines, ticks
from wirelessfl.figures import LABELS, draw_bars, draw_curves, new_figure, save_figure


def rows(*accuracies, step=1.0):
    return [
        {"round": i, "uplink_mib": 0.5 * step * i, "sim_seconds": 2.0 * step * i,
         "accuracy": accuracy, "loss": 3 - accuracy}
        for i, accuracy in enumerate(accuracies)
    ]  # fmt: skip


RUNS = {"A": [rows(0.1, 0.3, 0.8), rows(0.3, 0.5, 0.6, 0.9, step=2)], "B": [rows(0.2, 0.4)]}


@pytest.mark.parametrize("against", LABELS)
def test_curves_are_means_over_seeds_with_their_range(against):
    """Curves are in percent and end with the shortest run; axes have units, lines have labels."""
    _, (panel,) = new_figure()
    draw_curves(panel, RUNS, against, target=0.7, floor=0.15)
    assert (panel.get_xlabel(), panel.get_ylabel()) == (LABELS[against], "test accuracy (%)")
    step = {"round": 1.0, "uplink_mib": 0.75, "sim_seconds": 3.0}[against]
    shown = lines(panel)
    assert list(shown) == [text.get_text() for text in panel.get_legend().get_texts()] == ["A", "B"]
    assert shown["A"][0] == pytest.approx([0, step, 2 * step])
    assert shown["A"][1] == pytest.approx([20, 40, 70])
    assert shown["B"][1] == pytest.approx([20, 40])
    (shade,) = panel.collections  # of the label with two seeds
    (path,) = shade.get_paths()
    heights = path.vertices[:, 1]
    assert (heights.min(), heights.max()) == pytest.approx((10, 80))
    assert [line.get_ydata()[0] for line in panel.get_lines()[2:]] == [70], "the target"
    assert panel.get_ylim()[0] == 15


def test_medians_losses_and_common_ends():
    """Medians have no shaded range; the axis ends 20 % beyond the shortest curve."""
    _, (panel,) = new_figure()
    three = {"A": [rows(0.1, 0.2), rows(0.2, 0.3), rows(0.9, 0.9)], "B": [rows(0.1, 0.2, 0.3)]}
    draw_curves(panel, three, "round", median=True, what="loss", common=True, legend=False)
    assert panel.get_ylabel() == "test loss"
    assert lines(panel)["A"][1] == pytest.approx([2.8, 2.7])
    assert not panel.collections
    assert panel.get_legend() is None
    assert panel.get_xlim() == pytest.approx((0, 1.2))


def test_a_label_has_the_same_style_in_several_panels():
    _, panels = new_figure(columns=2)
    draw_curves(panels[0], {"A": RUNS["A"], "B": RUNS["B"]}, "round", styles=["A", "B"])
    draw_curves(panels[1], {"B": RUNS["B"]}, "round", styles=["A", "B"])
    first, second = panels[0].get_lines()[1], panels[1].get_lines()[0]
    assert first.get_color() == second.get_color() != panels[0].get_lines()[0].get_color()
    assert first.get_linestyle() == second.get_linestyle()


def test_bars_are_means_with_a_range_and_empty_ones_are_labelled():
    figure, (panel,) = new_figure()
    given = {"A": {"x": [1.0, 3.0], "y": []}, "B": {"x": [4.0], "y": [5.0]}}
    draw_bars(panel, given, "seconds")
    assert panel.get_ylabel() == "seconds"
    assert ticks(panel) == ["x", "y"]
    assert bars(panel) == {"A": [2, 0], "B": [4, 5]}
    assert [text.get_text() for text in panel.texts] == ["not\nreached"]
    (spread,) = panel.get_lines()
    assert list(spread.get_ydata()) == [1, 3]
    assert legend(figure) == ["A", "B"]


def test_a_figure_is_saved_as_png_and_pdf(tmp_path):
    figure, (panel,) = new_figure()
    draw_curves(panel, RUNS, "round")
    files = save_figure(figure, tmp_path / "new" / "curves")
    assert files == [tmp_path / "new" / f"curves{suffix}" for suffix in (".png", ".pdf")]
    contents = [file.read_bytes() for file in files]
    assert contents[0].startswith(b"\x89PNG")
    assert contents[1].startswith(b"%PDF")
    width = int.from_bytes(contents[0][16:20], "big")
    assert width == round(200 * figure.get_figwidth()), "200 dots per inch"
    assert isinstance(figure, Figure)
