"""The look of all figures: facts, legends, notes, marks and shared axes."""

import math
from types import SimpleNamespace

import pytest

from experiments.labels import costs_of, seeds_text
from experiments.paper import Experiment, Paper
from experiments.studies import Case, Results, Study
from tests.drawn import facts, legend, lines, marks
from wirelessfl.base.figures.curves import (
    NOT_REACHED,
    NOT_RUN,
    colour_of,
    draw_bars,
    new_figure,
)
from wirelessfl.base.figures.marks import (
    BOUND,
    DIVERGED,
    DOT,
    ONE,
    AtLeast,
    explained,
    finish,
    marks_of,
)
from wirelessfl.results import panels


def results_of(*seeds):
    """Results with these numbers of seeds."""
    cases = [
        Case({"algorithm": label, "lr": i}, (1, 2, 3), 0)
        for i, label in enumerate(("fedavg", "hist", "scaffold", "moon")[: len(seeds)])
    ]
    runs = {i: [SimpleNamespace(rows=[], current=True)] * count for i, count in enumerate(seeds)}
    return Results(Study("by hand", tuple(cases)), runs)


@pytest.mark.parametrize(
    ("seeds", "text"),
    [
        ((1, 1), "1 seed"),
        ((3, 3), "mean of 3 seeds"),
        ((3, 1, 0), "mean of 1 to 3 seeds"),
        ((0,), "1 seed"),
    ],
)
def test_the_number_of_seeds_in_words(seeds, text):
    results = results_of(*seeds)
    assert seeds_text(results, results.study.cases) == text


def test_points_are_means_with_seeds_bounds_and_marks():
    """Where only some seeds reach the target, the mean with the cost at the others' ends.

    The line is interrupted at places without a mean.
    """
    figure, (panel,) = new_figure()
    points = {
        1.0: [2.0, 4.0], 2.0: [AtLeast(9.0), 5.0], 3.0: [None, None], 4.0: None, 5.0: [1.0, None],
        6.0: [*range(6)],
    }  # fmt: skip
    panels.draw_points(panel, points, "A", 0)
    xs, ys = lines(panel)["A"]
    assert xs == [1, 2, 3, 4, 5, 6]
    assert ys == pytest.approx([3, 7, math.nan, math.nan, 1, 2.5], nan_ok=True)
    assert marks(panel) == [(3, NOT_REACHED), (4, NOT_RUN)]
    assert panel.get_xlim()[1] >= 6
    dots = [line for line in panel.get_lines() if line.get_gid() == DOT]
    seeds = [(line.get_xdata()[0], list(line.get_ydata())) for line in dots]
    assert seeds == [(1, [2, 4]), (2, [5]), (5, [1])]
    ranges = [list(line.get_ydata()) for line in panel.get_lines() if line.get_marker() == "_"]
    assert ranges == [[0, 5]]
    assert [text.xy for text in panel.texts if text.get_gid() == BOUND] == [(2, 7), (5, 1)]
    panels.legend(figure, [panel], "digits", "", "2 seeds")
    arrows = (
        "↑ in the band: target not reached; ↑ at a mean: at least, as some seeds do not reach it"
    )
    bars = "bars: range of more than 5 seeds"
    assert facts(figure) == f"digits; 2 seeds; dots: seeds; {bars}; {arrows}"


def test_axes_that_are_linear_around_zero_are_named():
    figure, (panel, other) = new_figure(columns=2)
    panel.set_xscale("symlog", linthresh=3)
    other.set_xscale("symlog", linthresh=3)
    assert explained(figure) == ["axis: linear within ±3, else logarithmic"]
    panel.set_xscale("log")
    other.set_xscale("linear")
    assert explained(figure) == []


def test_diverged_seeds_are_crosses_at_the_bottom_and_in_no_mean():
    _, (points, bars) = new_figure(columns=2)
    panels.draw_points(points, {1: [10, math.nan], 2: [math.nan, math.nan], 3: [30, 40]}, "x", 0)
    draw_bars(bars, {"hist": {"a": [10, math.nan], "b": [math.nan]}}, "accuracy")
    means = lines(points)["x"][1]
    assert means == pytest.approx([10, math.nan, 35], nan_ok=True)
    for panel, at in ((points, [1, 2]), (bars, [0, 1])):
        crosses = marks_of(panel, DIVERGED)
        assert [line.get_xdata()[0] for line in crosses] == at
        assert {line.get_marker() for line in crosses} == {"x"}
        assert not marks_of(panel, NOT_REACHED)
        assert "diverged" in " ".join(explained(panel.figure))
    assert [bar.get_height() for bar in bars.patches[:2]] == [10, 0]


@pytest.mark.parametrize("scale", ["linear", "log"])
def test_targets_not_reached_are_in_a_band_above_the_values(scale):
    """The band is above all values and ticks; the axis does not go below 0, nor another's band."""
    figure, (panel, other, apart) = panels.grid(3)
    for one in (panel, other):
        one.set_yscale(scale)
    panels.draw_points(panel, {1.0: [1.0, 60.0], 2.0: [None]}, "HIST", 0)
    panels.same_limits([panel, other])
    apart.set_ylim(0, 1)
    high = panel.get_ylim()[1]
    for _ in range(2):
        finish(figure)
    assert panel.get_ylim() == other.get_ylim()
    assert panel.get_ylim()[0] >= 0
    assert panel.get_ylim()[1] > high > 60
    assert apart.get_ylim() == (0, 1)
    assert max(panel.get_yticks()) <= high
    (arrow,) = marks_of(panel)
    assert arrow.get_color() == colour_of("hist")
    to_axes = panel.transAxes.inverted().transform
    at = to_axes(arrow.get_transform().transform(arrow.get_xydata()))[0][1]
    edge = to_axes(panel.transData.transform([(1, high)]))[0][1]
    assert edge < at < 1


def test_legends_give_the_number_of_seeds_where_lines_differ_in_it():
    figure, (panel,) = new_figure()
    panels.draw_points(panel, {1.0: [1.0, 2.0], 2.0: [1.0]}, "A", 0)
    panels.draw_points(panel, {1.0: [1.0, 2.0], 2.0: [1.0, 2.0]}, "B", 1)
    panels.legend(figure, [panel], "digits")
    assert legend(figure) == ["A (n = 1 to 2)", "B (n = 2)"]
    assert facts(figure) == "digits; dots: seeds; n: seeds; open: one seed"
    alike, (panel,) = new_figure()
    panels.draw_points(panel, {1.0: [1.0]}, "A", 0)
    panels.draw_points(panel, {1.0: [1.0]}, "B", 1)
    panels.legend(alike, [panel], "digits")
    assert (legend(alike), facts(alike)) == (["A", "B"], "digits")
    assert not any(line.get_visible() for line in panel.get_lines() if line.get_gid() == ONE)


def test_legends_of_bars_are_opaque_also_if_the_first_bar_is_a_bound():
    figure, (panel,) = new_figure()
    draw_bars(panel, {"A": {"x": [AtLeast(2.0), 1.0]}, "B": {"x": [1.0]}}, "seconds")
    panels.legend(figure, [panel])
    assert [bar.get_alpha() for bar in panel.patches] == [0.5, None]
    (shown,) = figure.legends
    assert [patch.get_facecolor()[3] for patch in shown.get_patches()] == [1, 1]


def test_costs_of_runs_that_end_before_the_target_are_bounds():
    rows = [{"round": i, "accuracy": i / 10} for i in range(4)]
    case = Case({"algorithm": "hist"}, (1,), 0)
    runs = {0: [SimpleNamespace(rows=rows, current=True)]}
    results = Results(Study("by hand", (case,)), runs)
    assert costs_of(results, case, "round", 0.2) == [2.0]
    (bound,) = costs_of(results, case, "round", 0.9)
    assert isinstance(bound, AtLeast)
    assert bound == 3


def test_marks_stand_at_their_ticks_and_side_by_side_at_the_same_one():
    _, (panel,) = new_figure()
    for place, name in enumerate("ABC"):
        panels.draw_points(panel, {1.0: [None], 2.0: None if name == "B" else [1.0]}, name, place)
    panel.set_xlim(0, 3)
    at = [line.get_transform().transform(line.get_xydata())[0] for line in marks_of(panel)]
    left, middle, right = (x for x, _ in at)
    assert middle - left == pytest.approx(right - middle)
    assert middle - left > 1
    assert middle == pytest.approx(panel.transData.transform((1, 0))[0])
    (text,) = panel.texts
    assert (text.xy[0], text.xyann[0]) == (2, 0)


def test_facts_that_need_several_lines_are_of_about_equal_length():
    figure, (panel,) = new_figure()
    text = "targets: MNIST 93 %, Fashion-MNIST 82 %; mean and range of 3 seeds"
    panels.legend(figure, [panel], text)
    first, second = figure.get_suptitle().split("\n")
    assert abs(len(first) - len(second)) < 8
    assert f"{first} {second}" == text


def test_one_legend_for_all_panels_and_equal_axes():
    figure, drawn = panels.grid(4)
    assert figure.get_figheight() == pytest.approx(2 * 2.6)
    for i, panel in enumerate(drawn):
        panels.draw_points(panel, {0.0: [i], 1.0: [2 * i]}, "even" if i % 2 == 0 else "odd", i % 2)
    panels.same_limits(drawn)
    panels.legend(figure, drawn, "digits")
    assert len({panel.get_ylim() for panel in drawn}) == 1
    assert legend(figure) == ["even", "odd"]
    assert len(panels.grid(5)[1]) == 5
    assert len(panels.grid(3)[0].axes) == 3


def test_the_flag_for_the_style_changes_width_and_font(tmp_path, redrawn, monkeypatch, capsys):
    """``--style screen`` draws larger figures with larger text than the default, ``ieee``."""

    def draw(results):
        return new_figure(2)[0]

    (tmp_path / "one.toml").write_text('[[grid]]\nalgorithm = "hist"\nseeds = [1]\n')
    monkeypatch.setattr(Study, "results", lambda study, store: results_of(1))
    paper = Paper("by hand", tmp_path, {"one": Experiment("one", lambda results: "", draw)})
    assert paper.main(["one", "--out", str(tmp_path / "out")]) == 0
    first = redrawn.pop("one")
    assert paper.main(["one", "--out", str(tmp_path / "out"), "--style", "screen"]) == 0
    sizes = [
        (one.get_figwidth(), one.axes[0].yaxis.label.get_fontsize())
        for one in (first, redrawn["one"])
    ]
    assert sizes == [(7.16, 8), (11, 11)]
    assert capsys.readouterr().out.count("drawn: ") == 4
