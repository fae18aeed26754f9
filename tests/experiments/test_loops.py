"""Redesigned runs against designs made once: stored numbers are those of the rows."""

import math
import statistics

import pytest

from experiments.codesign import loop_tables, loops
from experiments.codesign.__main__ import evidence
from experiments.codesign.networks import NETWORKS
from experiments.codesign.sweep import TARGETS, first_round
from tests.drawn import recorded
from wirelessfl.results.archive import SUFFIX, StoredRun


@pytest.fixture(scope="module")
def found():
    return loops.load()


def files():
    return [file for file in loops.FOLDER.glob(f"*{SUFFIX}") if not file.name.startswith("once")]


def file_of(one):
    return loops.FOLDER / ("-".join(map(str, one.place)) + SUFFIX)


def test_all_samples_are_stored(found):
    assert [one.place for one in found] == [*loops.places()]
    assert len(found) == 3 * len(loops.DATASETS) * len(loops.SEEDS) * len(NETWORKS)
    assert {one.trainings for one in found} == {(9, 9)}


def test_runs_that_redesigns_change_are_stored_and_others_are_those_without(found):
    """The first rounds, which have no redesign yet, and the whole run if nothing changes."""
    by_file = {file_of(one): one for one in found}
    assert {file for file, one in by_file.items() if file.is_file()} == {*files()}
    for one in found:
        if not file_of(one).is_file():
            assert (one.changes, one.redesigned) == ((), one.once)


def test_stored_numbers_are_those_of_the_rows(found):
    by_file = {file_of(one): one for one in found}
    for file in files():
        one, run = by_file[file], StoredRun.load(file)
        training = run.settings["training"]
        assert one.pair == (training["local_steps"], training["edge_rounds"])
        assert (run.seed, run.settings["data"]["dataset"]) == (one.seed, one.dataset)
        hit = first_round(run.rows, TARGETS[one.dataset])
        if hit is None:
            assert one.redesigned is None
            assert run.rows[-1]["round"] == loops.ROUNDS
        else:
            row = run.rows[-1]
            assert row["round"] == hit
            wanted = [hit, row["sim_seconds"], row["joules"]]
            assert one.redesigned == pytest.approx(wanted, rel=1e-5)
        assert all((number - 1) % loops.EVERY == 0 for number, *_ in one.changes)
        rounds = {row["round"]: row for row in run.rows}
        for number, steps, edges in one.changes:
            assert (rounds[number]["local_steps"], rounds[number]["edge_rounds"]) == (steps, edges)


def test_redesigns_that_are_asked_about_rows_are_those_of_the_run(found):
    """The first change by the rows of a run without redesigns, and that of the trained run."""
    designs = loops.Designs(evidence())
    digits = [one for one in found if one.dataset == "digits" and one.case != loops.SEED]
    one = next(one for one in digits if one.changes and one.seed == 1)
    config, loop = designs.planned(one.place)
    rows = designs.once(one.place, config, loops.FOLDER).rows
    assert loops.first_change(config, loop, rows) == one.changes[0][0] - 1


def test_designs_are_made_for_what_the_case_says():
    assert loops.planned_for(loops.OWN, "disc", 2) == ("disc", 2)
    assert loops.planned_for(loops.SEED, "disc", 1) == ("disc", 3)
    assert loops.planned_for(loops.NETWORK, "disc", 1) == ("section-vi-c", 1)


def test_the_file_is_read_as_it_is_written(found, tmp_path):
    loops.save(found, tmp_path / "a.json")
    assert loops.load(tmp_path / "a.json") == found
    assert loops.load(tmp_path / "none.json") == []


def test_medians_and_verdicts_follow_from_the_numbers(found):
    text = loop_tables.table(found)
    for case, name in loop_tables.SHORT.items():
        mine = [one for one in found if one.case == case]
        ratios = [
            (math.inf if one.redesigned is None else one.redesigned[1])
            / (math.inf if one.once is None else one.once[1])
            for one in mine
        ]
        assert not any(map(math.isnan, ratios))
        row = next(line for line in text.splitlines() if line.startswith(f"| {name} | all |"))
        assert f"| {statistics.median(ratios):.3g} |" in row
        stated = loops.STATED[case]
        below, most = stated.get("below", 0), stated.get("at_most", 0)
        holds = statistics.median(ratios) < below or statistics.median(ratios) <= most
        assert row.endswith(": yes |" if holds else ": no |")


def test_a_run_that_misses_the_target_is_infinitely_late(found):
    one = found[0]
    assert loop_tables.ratio(one._replace(redesigned=None)) == math.inf
    assert loop_tables.ratio(one._replace(once=None, redesigned=None)) == 1
    assert loop_tables.ratio(one._replace(once=None)) == 0


def test_the_figure_shows_all_runs(found, tmp_path):
    with recorded() as drawn:
        loop_tables.draw(found, tmp_path / "loop.png")
    (panel,) = drawn["loop"].axes
    shown = [len(line.get_xdata()) for line in panel.get_lines()[: len(loops.DATASETS)]]
    assert sum(shown) == len(found)
    assert loop_tables.draw([], tmp_path / "none.png") == []
