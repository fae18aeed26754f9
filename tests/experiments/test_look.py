"""The look of all figures: facts, legends, notes, marks and shared axes."""

from types import SimpleNamespace

import pytest

from experiments import look
from experiments.fadamgc.__main__ import PAPER
from experiments.studies import Case, Results, Study
from tests.drawn import facts, legend, lines, marks
from wirelessfl.figures import NOT_REACHED, NOT_RUN, new_figure
from wirelessfl.results import panels


def results_of(*seeds, old=(), labels=("fedavg", "hist", "scaffold", "moon")):
    """Results with these numbers of seeds, of an older version for the cases in ``old``."""
    cases = [
        Case({"algorithm": label, "lr": i}, (1, 2, 3), 0)
        for i, label in enumerate(labels[: len(seeds)])
    ]
    runs = {
        i: [SimpleNamespace(rows=[], current=i not in old)] * count for i, count in enumerate(seeds)
    }
    return Results(Study("by hand", tuple(cases)), runs)


@pytest.mark.parametrize(
    ("seeds", "text"),
    [
        ((1, 1), "1 seed"),
        ((3, 3), "mean and range of 3 seeds"),
        ((3, 1, 0), "mean and range of 1 to 3 seeds"),
        ((0,), "1 seed"),
    ],
)
def test_the_number_of_seeds_in_words(seeds, text):
    results = results_of(*seeds)
    assert look.seeds_text(results, results.study.cases) == text


def test_missing_and_old_runs_are_named_below_the_panels(tmp_path, redrawn):
    """Notes name cases by their labels, or give their number if labels do not distinguish them."""
    look.save(new_figure()[0], results_of(1, 1, 1), tmp_path / "whole")
    look.save(new_figure()[0], results_of(1, 3, 0, old=[0, 1]), tmp_path / "named")
    alike = results_of(1, 1, 0, old=[0], labels=["hist"] * 3)
    look.save(new_figure()[0], alike, tmp_path / "counted")
    assert redrawn["whole"].get_supxlabel() == ""
    assert redrawn["named"].get_supxlabel().split("\n") == [
        "made by an older version: FedAvg; HIST", "not run: SCAFFOLD",
    ]  # fmt: skip
    assert redrawn["counted"].get_supxlabel().split("\n") == [
        "made by an older version: 1 of 3 cases of the study",
        "not run: 1 of 3 cases of the study",
    ]


def test_points_mark_what_is_not_reached_and_not_run():
    """Points are means of the seeds with a value; hollow if some have none."""
    figure, (panel,) = new_figure()
    points = {1.0: [2.0, 4.0], 2.0: [None, 5.0], 3.0: [None, None], 4.0: None}
    panels.draw_points(panel, points, "A", 0)
    assert lines(panel)["A"] == ([1, 2], [3, 5])
    assert marks(panel) == [(3, NOT_REACHED), (4, NOT_RUN)]
    assert panel.get_xlim()[1] >= 4
    ranges = [list(line.get_ydata()) for line in panel.get_lines()[1:] if len(line.get_ydata()) > 1]
    assert ranges == [[2, 4]]
    panels.legend(figure, [panel], "digits", "", "2 seeds")
    assert facts(figure) == "digits; 2 seeds; hollow: not all seeds reach the target"


def test_marks_stand_at_their_ticks_and_side_by_side_at_the_same_one():
    _, (panel,) = new_figure()
    for place, name in enumerate("ABC"):
        panels.draw_points(panel, {1.0: [None], 2.0: None if name == "B" else [1.0]}, name, place)
    shifts = {}
    for text in panel.texts:
        shifts.setdefault(text.xy[0], []).append(text.xyann[0])
    assert shifts[2.0] == [0]
    left, middle, right = shifts[1.0]
    assert left == -right < middle == 0


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


def test_the_flag_for_the_style_changes_width_and_font(tmp_path, redrawn, capsys):
    """``--style screen`` draws larger figures with larger text than the default, ``ieee``."""
    made = ["fig3", "--scale", "smoke", "--rows", str(tmp_path / "rows"), "--make"]
    assert PAPER.main([*made, "--out", str(tmp_path)]) == 0
    first = redrawn.pop("fig3")
    assert PAPER.main([*made, "--out", str(tmp_path), "--style", "screen"]) == 0
    second = redrawn["fig3"]
    sizes = [
        (one.get_figwidth(), one.axes[0].yaxis.label.get_fontsize()) for one in (first, second)
    ]
    assert sizes == [(7.16, 8), (11, 11)]
    assert capsys.readouterr().out.count("drawn: ") == 4
