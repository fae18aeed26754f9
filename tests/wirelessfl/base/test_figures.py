"""Curves and bars show the values of the rows."""

import math

import pytest
from matplotlib.figure import Figure

from tests.drawn import bars, legend, lines, marks, ticks
from wirelessfl.base.figures.curves import (
    LABELS,
    NOT_REACHED,
    NOT_RUN,
    STYLES,
    draw_bars,
    draw_curves,
    new_figure,
    save_figure,
    style,
    use_style,
)
from wirelessfl.base.figures.marks import BOUND, DOT, AtLeast


def rows(*accuracies, step=1.0):
    return [
        {"round": i, "uplink_mib": 0.5 * step * i, "sim_seconds": 2.0 * step * i,
         "accuracy": accuracy, "loss": 3 - accuracy}
        for i, accuracy in enumerate(accuracies)
    ]  # fmt: skip


RUNS = {"A": [rows(0.1, 0.3, 0.8), rows(0.3, 0.5, 0.6, 0.9, step=2)], "B": [rows(0.2, 0.4)]}


@pytest.mark.parametrize("against", LABELS)
def test_curves_are_means_over_seeds_with_their_range(against):
    """Curves are in percent and end with the shortest run; axes have units, lines have labels.

    The second run of A takes twice the time and traffic per round: halfway through its first round
    and at its end, it is averaged with its last known accuracies.
    """
    _, (panel,) = new_figure()
    draw_curves(panel, RUNS, against, target=0.7, floor=0.15)
    assert (panel.get_xlabel(), panel.get_ylabel()) == (LABELS[against], "test accuracy (%)")
    step = {"round": 1.0, "uplink_mib": 0.5, "sim_seconds": 2.0}[against]
    shown = lines(panel)
    assert list(shown) == ["A", "B"]
    texts = [text.get_text() for text in panel.get_legend().get_texts()]
    assert texts == ["A (n = 2)", "B (n = 1)"]
    assert shown["A"][0] == pytest.approx([0, step, 2 * step])
    means = [20, 40, 70] if against == "round" else [20, 30, 65]
    assert shown["A"][1] == pytest.approx(means)
    assert shown["B"][1] == pytest.approx([20, 40])
    (shade,) = panel.collections  # of the label with two seeds
    (path,) = shade.get_paths()
    heights = path.vertices[:, 1]
    assert (heights.min(), heights.max()) == pytest.approx((10, 80))
    assert [line.get_ydata()[0] for line in panel.get_lines()[2:]] == [70], "the target"
    assert panel.get_ylim()[0] == 15


def test_any_field_can_be_drawn():
    """Short names of fields; costs and own metrics as they are, also if a model has diverged."""
    _, (panel,) = new_figure()
    own = [{**row, "joules": 2.0 * i, "f1": None if i == 1 else 0.5, "loss": None}
           for i, row in enumerate(rows(0.1, 0.2, 0.3))]  # fmt: skip
    draw_curves(panel, {"A": [own]}, "mib", what="joules")
    assert lines(panel)["A"] == (pytest.approx([0, 0.5, 1]), [0, 2, 4])
    assert panel.get_ylabel() == "energy per client (J)"
    _, (panel,) = new_figure()
    whole = [row | {"loss": 1.0} for row in own]
    draw_curves(panel, {"A": [whole]}, "rounds", what="f1")
    assert lines(panel)["A"][1] == pytest.approx([0.5, math.nan, 0.5], nan_ok=True)
    assert panel.get_ylabel() == "f1"


def test_fields_of_some_rows_can_be_drawn():
    """A field that the first rows lack, or that the runs of one label lack."""
    _, (panel,) = new_figure()
    late = [[*rows(0.1), *(row | {"air_error": 0.5 * row["round"]} for row in rows(0, 0, 0)[1:])]]
    draw_curves(panel, {"air": late, "wired": [rows(0.1, 0.2)]}, "round", what="air_error")
    assert lines(panel)["air"] == ([1, 2], [0.5, 1.0])
    assert list(lines(panel)) == ["air", "wired (no air error)"]


def test_seeds_without_common_abscissae_have_no_mean():
    """A seed that ends before the other has a value; a field that falls within a seed."""
    _, (panel,) = new_figure()
    apart = [rows(0.1, 0.2), [row | {"sim_seconds": 9.0} for row in rows(0.3)]]
    draw_curves(panel, {"A": apart}, "sim_seconds", common=True)
    assert list(lines(panel)) == ["A (no common sim seconds)"]
    with pytest.raises(ValueError, match=r"against is 'loss', which falls within the runs of 'A'"):
        draw_curves(panel, RUNS, "loss")


def test_means_of_losses_and_common_ends():
    """Means with their ranges; the axis ends 20 % beyond the shortest curve."""
    _, (panel,) = new_figure()
    three = {"A": [rows(0.1, 0.2), rows(0.2, 0.3), rows(0.9, 0.9)], "B": [rows(0.1, 0.2, 0.3)]}
    draw_curves(panel, three, "round", what="loss", common=True, legend=False)
    assert panel.get_ylabel() == "test loss"
    assert lines(panel)["A"][1] == pytest.approx([2.6, 7.6 / 3])
    (shade,) = panel.collections
    heights = shade.get_paths()[0].vertices[:, 1]
    assert (heights.min(), heights.max()) == pytest.approx((2.1, 2.9))
    assert panel.get_legend() is None
    assert panel.get_xlim() == pytest.approx((0, 1.2))


def test_common_ends_are_beyond_the_target():
    """Curves that reach the target are shown until they do."""
    _, (panel,) = new_figure()
    runs = {"A": [rows(0.1, 0.9)], "B": [rows(0.1, 0.2, 0.3, 0.4, 0.8)], "C": [rows(0.1, 0.2)]}
    draw_curves(panel, runs, "round", target=0.7, common=True)
    assert panel.get_xlim() == pytest.approx((0, 1.05 * 4))


@pytest.mark.parametrize(("against", "count"), [("round", 1), ("uplink_mib", 3)])
def test_a_common_end_at_zero_is_left_to_matplotlib(against, count):
    """A single row at round 0, or rows without traffic, have no end above 0."""
    _, (panel,) = new_figure()
    still = [row | {"uplink_mib": 0.0} for row in rows(*[0.5] * count)]
    draw_curves(panel, {"A": [still]}, against, common=True)
    low, high = panel.get_xlim()
    assert low < 0 < high


@pytest.mark.parametrize(
    ("runs", "flags", "message"),
    [
        ({}, {}, "runs is empty: give at least one curve"),
        ({"A": []}, {}, r"runs\['A'\] has no rows"),
        ({"A": [rows(0.1), []]}, {}, r"runs\['A'\] has no rows: give rows of at least one run"),
        (RUNS, {"what": "loss", "target": 0.5}, "target=0.5 conflicts with what='loss'"),
        (RUNS, {"what": "loss", "floor": 0.1}, "floor=0.1 conflicts with what='loss'"),
        (RUNS, {"target": 90}, r"target is 90: give an accuracy in \[0, 1\], such as 0.9 for 90 %"),
        (RUNS, {"floor": -1}, "floor is -1: give an accuracy"),
        (RUNS, {"smooth": 2}, "smooth is 2: give an odd number of rows, at least 1"),
        (
            RUNS,
            {"what": "acuracy"},
            r"what is 'acuracy', which no row has\. Do you mean 'accuracy'\? Choose rounds, mib,",
        ),
        (
            RUNS,
            {"against": "minutes"},
            "against is 'minutes', which no row has. Choose rounds, mib",
        ),
        (RUNS, {"what": "validation_loss"}, "what is 'validation_loss', which no row has"),
        (RUNS, {"styles": ["B", "C"]}, r"styles is \['B', 'C'\]: it lacks the label 'A'"),
        (rows(0.1), {}, r"runs is \[.*: give the rows of each seed's run by label"),
        ({"A": rows(0.1)}, {}, r"runs\['A'\] is \[.*: give a list of the rows of each run"),
    ],
)
def test_curves_that_cannot_be_drawn_are_refused(runs, flags, message):
    _, (panel,) = new_figure()
    with pytest.raises(ValueError, match=message):
        draw_curves(panel, runs, **({"against": "round"} | flags))
    assert not panel.get_lines()


@pytest.mark.parametrize(("bars", "groups"), [({}, []), ({}, ["x"]), ({"A": {}}, [])])
def test_bars_without_series_or_groups_are_refused(bars, groups):
    _, (panel,) = new_figure()
    with pytest.raises(ValueError, match=r"bars is .*: give at least one series with a group"):
        draw_bars(panel, bars, "seconds", groups)


def test_a_label_has_the_same_style_in_several_panels():
    _, panels = new_figure(columns=2)
    draw_curves(panels[0], {"A": RUNS["A"], "B": RUNS["B"]}, "round", styles=["A", "B"])
    draw_curves(panels[1], {"B": RUNS["B"]}, "round", styles=["A", "B"])
    first, second = panels[0].get_lines()[1], panels[1].get_lines()[0]
    assert first.get_color() == second.get_color() != panels[0].get_lines()[0].get_color()
    assert first.get_linestyle() == second.get_linestyle()


def test_bars_are_means_with_their_seeds():
    """Up to five seeds are dots, more a range; a place without seeds is in the band at the top."""
    figure, (panel,) = new_figure()
    given = {"A": {"x": [1.0, 3.0], "y": []}, "B": {"x": [4.0], "y": [*range(6)]}}
    draw_bars(panel, given, "seconds")
    assert panel.get_ylabel() == "seconds"
    assert ticks(panel) == ["x", "y"]
    assert bars(panel) == {"A": [2, 0], "B": [4, 2.5]}
    assert [text for _, text in marks(panel)] == [NOT_REACHED]
    dots, spread = (line for line in panel.get_lines() if line.get_gid() != NOT_REACHED)
    assert (dots.get_gid(), list(dots.get_ydata())) == (DOT, [1, 3])
    assert list(spread.get_ydata()) == [0, 5]
    assert legend(figure) == ["A", "B"]


def test_bars_of_some_seeds_are_bounds_and_places_of_none_are_marked():
    """Bars of some seeds are pale and have an arrow; others are in the band, or "not run"."""
    _, (panel,) = new_figure()
    given = {"A": {"x": [1.0, AtLeast(8.0), 3.0], "y": [None]}, "B": {"y": [5.0]}}
    draw_bars(panel, given, "seconds", groups=["y", "x"])
    assert ticks(panel) == ["y", "x"]
    assert bars(panel) == {"A": [0, 4], "B": [5, 0]}
    assert [bar.get_alpha() for bar in panel.patches] == [None, 0.5, None, None]
    assert [text.xy[1] for text in panel.texts if text.get_gid() == BOUND] == [4]
    found = marks(panel)
    assert [text for _, text in found] == [NOT_REACHED, NOT_RUN]
    assert [place for place, _ in found] == pytest.approx([-0.2, 1.2])
    _, (panel,) = new_figure()
    draw_bars(panel, {"A": {"x": [None]}}, "seconds")
    assert [text for _, text in marks(panel)] == [NOT_REACHED]
    assert list(panel.get_yticks()) == []


def test_accuracies_of_the_start_are_left_out():
    """The axis begins below the lowest accuracy after the first tenth; ``floor`` chooses it."""
    curve = [rows(0.1, *[0.7 + 0.02 * i for i in range(10)])]
    _, (panel,) = new_figure()
    draw_curves(panel, {"A": curve}, "round", target=0.75)
    assert 65 < panel.get_ylim()[0] < 70
    _, (panel,) = new_figure()
    draw_curves(panel, {"A": curve}, "round", target=0.6)
    assert 55 < panel.get_ylim()[0] < 60
    _, (panel,) = new_figure()
    draw_curves(panel, {"A": curve}, "round", floor=0.0)
    assert panel.get_ylim()[0] == 0


def test_curves_of_one_seed_are_thin_beside_means():
    _, (panel,) = new_figure()
    draw_curves(panel, RUNS, "round")
    mean, single = panel.get_lines()
    assert single.get_linewidth() < mean.get_linewidth()


def test_curves_can_be_smoothed_and_rounds_have_whole_ticks():
    """A point is the mean of the rows around it, of fewer near the ends."""
    _, (panel,) = new_figure()
    draw_curves(panel, {"A": [rows(0.1, 0.4, 0.1, 0.7)]}, "round", smooth=3)
    assert lines(panel)["A"][1] == pytest.approx([10, 20, 40, 70])
    assert all(tick == int(tick) for tick in panel.get_xticks())


def test_many_curves_differ_in_colour_dashes_and_markers():
    _, (panel,) = new_figure()
    draw_curves(panel, {str(i): [rows(0.1, 0.2, 0.3)] for i in range(7)}, "round")
    drawn = panel.get_lines()
    for kind in ("get_color", "get_marker"):
        assert len({getattr(line, kind)() for line in drawn}) == 7
    assert len({str(line._unscaled_dash_pattern) for line in drawn}) == 7


@pytest.mark.parametrize("name", STYLES)
def test_a_style_sets_sizes_and_fonts(name):
    """Text has the size of the style, in figures of the width of one or of two columns."""
    form = STYLES[name]
    with use_style(name):
        assert style() == form
        one, (panel,) = new_figure()
        two, _ = new_figure(columns=2, rows=2)
        draw_curves(panel, RUNS, "round")
        draw_bars(two.axes[0], {"A": {"x": []}}, "seconds")
    assert style() == STYLES["ieee"]
    assert (one.get_figwidth(), two.get_figwidth()) == (form.column, form.wide)
    assert one.get_figheight() == pytest.approx(2.6 * form.stretch)
    assert two.get_figheight() == pytest.approx(2 * 2.6 * form.stretch)
    assert len(two.axes) == 4
    assert panel.xaxis.label.get_fontsize() == panel.title.get_fontsize() == form.text
    small = [*panel.get_legend().get_texts(), *panel.get_xticklabels(), *two.axes[0].texts]
    assert {text.get_fontsize() for text in small} == {form.small}
    assert form.small >= 7


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


def test_a_figure_is_not_saved_under_another_suffix(tmp_path):
    figure, _ = new_figure()
    for name in ("curves.jpg", "curves-0.5"):
        with pytest.raises(
            ValueError, match=r"is saved as \.png and \.pdf\. Name one of them, or "
        ):
            save_figure(figure, tmp_path / "new" / name)
    assert not any(tmp_path.iterdir())
    assert [file.name for file in save_figure(figure, tmp_path / "a.pdf")] == ["a.png", "a.pdf"]
