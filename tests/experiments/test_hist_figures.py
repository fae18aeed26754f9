"""The HIST paper's figures and tables at scale smoke agree with the rows of their runs."""

from dataclasses import replace

import numpy as np
import pytest

from experiments.hist import air, air_tables, partitions, periods, sizes, tables
from experiments.hist.__main__ import EXPERIMENTS, PAPER
from experiments.hist.cells import accuracy_after, cells_table, mean_staleness, schedule_label
from experiments.studies import SCALES, Results
from tests.drawn import assert_curves, finished, legend, lines, marks, ticks, titles
from wirelessfl.base.figures.marks import AtLeast
from wirelessfl.results.archive import StoredRun

pytestmark = pytest.mark.thorough

MIB = 4 / 2**20
E = 2  # edge rounds of most studies at scale smoke
NOT_RUN = {"labels", "steps"}
"""Experiments drawn and printed by functions that others use too: they add nothing to test."""
HFEDAVG = "HFedAvg, AirComp"
RUN = [name for name in EXPERIMENTS if name not in NOT_RUN]


@pytest.fixture(scope="module")
def out(tmp_path_factory):
    return tmp_path_factory.mktemp("hist")


@pytest.fixture(scope="module")
def found(out, figures):
    return PAPER.reproduce(RUN, "smoke", out, make=True)


def test_everything_is_written_and_nothing_is_run_twice(found, out, capsys, figures):
    """Every table and figure is written; repeating a command repeats no run."""
    for name in RUN:
        assert (out / f"{name}.md").read_text().startswith("| ")
    assert set(figures) >= {name for name in RUN if EXPERIMENTS[name].draw is not None}
    assert not list((out / "runs").iterdir())
    before = {p: p.stat().st_mtime_ns for p in (out / "rows").iterdir()}
    assert PAPER.main(["fig6c", "--scale", "smoke", "--out", str(out), "--make"]) == 0
    assert PAPER.main(["cap", "--scale", "smoke", "--out", str(out)]) == 0
    assert {p: p.stat().st_mtime_ns for p in (out / "rows").iterdir()} == before
    assert "drawn: " in capsys.readouterr().out


def rows_of(results, label, **wanted):
    """The rows of the only seed, by label."""
    return {label(case): results.rows(case)[0] for case in results.where(**wanted)}


def to_target(results, field, case, target=0.8):
    """``field`` of the first row with the target accuracy; None if there is none."""
    (rows,) = results.rows(case)
    return next((row[field] for row in rows if row["accuracy"] >= target), None)


def points(results, cases, place, field, target=0.8):
    """Places and costs of the cases that reach the target."""
    found = {place(case): to_target(results, field, case, target) for case in cases}
    known = sorted((at, cost) for at, cost in found.items() if cost is not None)
    return [at for at, _ in known], pytest.approx([cost for _, cost in known])


def test_figure_3_shows_the_rows_of_its_runs(found, figures):
    """One panel per split, with the target and all numbers of cells."""
    splits = {"noniid": "random label shards", "cell-iid": "i.i.d. across cells"}
    assert titles(figures["fig3"]) == [*splits.values()]
    for panel, split in zip(figures["fig3"].axes, splits, strict=True):
        rows = rows_of(found["fig3"], lambda case: case.label, split=split)
        assert_curves(panel, rows, "uplink_mib")
        assert list(panel.get_lines()[-1].get_ydata()) == [80, 80]
    assert set(legend(figures["fig3"])) == set(rows)


def test_figures_4_to_6_are_costs_until_80_percent(found, figures):
    """Points of the cases that reach it, arrows for the others."""
    results, axes = found["fig4"], iter(figures["fig4"].axes)
    for split in results.values("split"):
        for field in ("uplink_mib", "sim_seconds", "joules"):
            panel, misses = next(axes), 0
            for algorithm, name in (("hfedavg", "HFedAvg"), ("hist", "HIST")):
                cases = results.where(split=split, algorithm=algorithm)
                shown = points(results, cases, lambda case: case["cells"], field)
                assert lines(panel)[name] == shown
                misses += len(cases) - len(shown[0])
            assert len(marks(panel)) == misses
    results, axes = found["periods"], iter(figures["periods"].axes)
    for varied, fixed in (("edge_rounds", {"local_steps": 2}), ("local_steps", {"edge_rounds": 1})):
        for field in ("round", "sim_seconds", "joules"):
            panel = next(axes)
            cases = results.where(split="noniid", **fixed)
            assert len(cases) == 3
            shown = points(results, cases, lambda case, varied=varied: case[varied], field)
            assert lines(panel)["HIST, random label shards"] == shown
    results = found["fig6c"]
    for panel, field in zip(figures["fig6c"].axes, ("sim_seconds", "joules"), strict=True):
        labels = {sizes.label(case) for case in results.where()}
        assert set(lines(panel)) == labels
        for label in labels:
            cases = [case for case in results.where() if sizes.label(case) == label]
            assert lines(panel)[label] == points(results, cases, lambda case: case["cells"], field)


def test_figures_5_6_and_7a_are_curves_of_all_cases(found, figures):
    """Accuracy against rounds or seconds; both methods over the air are beside OMA."""
    results = found["fig5"]
    for panel, split in zip(figures["fig5"].axes, ("noniid", "cell-iid"), strict=True):
        assert_curves(panel, rows_of(results, periods.period, split=split), "round")
    for name, field in (("fig6a", "round"), ("fig6b", "sim_seconds")):
        (panel,) = figures[name].axes
        assert_curves(panel, rows_of(found[name], sizes.label, cells=4), field)
    results = found["fig7a"]
    benchmark = rows_of(results, air.snr_of, uplink="tdma")
    for panel, masks in zip(figures["fig7a"].axes, ("optimized", None), strict=True):
        noisy = rows_of(results, air.snr_of, uplink="aircomp", mask_sizes=masks)
        assert len(noisy) == 3
        assert_curves(panel, benchmark | noisy, "round")


def test_curves_without_runs_are_named(found):
    results = found["fig5"]
    runs = results.runs | {0: []}
    figure = finished(periods.fig5(Results(results.study, runs)))
    missing = periods.period(results.study.cases[0])
    assert f"{missing} (not run)" in legend(figure)


def test_a_longer_run_of_a_seed_replaces_the_shorter_one(found):
    """Cases that differ only in the length of runs are one; other seeds keep their runs."""
    case = found["fig7a"].study.cases[0]
    more = replace(
        case, settings=case.settings | {"rounds": 9, "target": 0.8, "stop_at_target": True}
    )
    other = replace(case, settings=case.settings | {"lr": 0.5})
    study = replace(found["fig7a"].study, cases=(case, more, other))
    long, short, second, rest = (
        StoredRun({"run": {"seed": seed}}, [{"round": i} for i in range(n)], {}, {}, 0.0)
        for seed, n in ((1, 9), (1, 3), (2, 3), (1, 2))
    )
    merged = air.longest(Results(study, {0: [short, second], 1: [long], 2: [rest]}))
    assert merged.study.cases == (more, other)
    assert air.simulated_seconds(merged.study.cases[0], 1, 20.0, 9) > 0  # all rounds have a price
    assert [merged.of(one) for one in merged.study.cases] == [[long, second], [rest]]


def test_lost_accuracy_is_that_of_equal_seeds(found):
    results = found["cap"]
    lines = sizes.by_slowdown(results)
    ((name, line),) = lines.items()
    assert name == "HIST, slowdown 1"
    assert list(line) == [1.0, 1.5]
    equal, other = line.values()
    lost = results.finals(other)[0] - results.finals(equal)[0]
    assert sizes.losses(results, other, equal) == pytest.approx([lost])
    assert sizes.losses(results, equal, equal) == [0.0]
    assert sizes.losses(results, other, None) is None


def test_noise_is_shown_with_the_accuracy_without_errors(found, figures):
    """A point is the final accuracy; OMA is a horizontal line."""
    results = found["noise"]
    ends = {}
    for case in results.where():
        (rows,) = results.rows(case)
        ends[case["snr_db"] if case["uplink"] == "aircomp" else None] = 100 * np.mean(
            [row["accuracy"] for row in rows[1:][-5:]]
        )
    (panel,) = figures["noise"].axes
    drawn = lines(panel)
    assert drawn.pop("OMA, without errors")[1] == pytest.approx([ends.pop(None)] * 2)
    assert drawn == {air.ALL: ([-20.0, 0.0], [pytest.approx(ends[at]) for at in (-20.0, 0.0)])}
    text = EXPERIMENTS["noise"].table(results)
    assert f"| HIST | -20 | AirComp | 1 | {ends[-20.0]:.1f} | not reached |" in text


def test_runs_between_the_snrs_have_half_of_the_noise(found):
    """A run at -17 dB stands at -20 dB, as the real part gains 3 dB."""
    results = found["noise"]
    cases = tuple(
        replace(case, settings=case.settings | {"snr_db": -17.0}) if case["snr_db"] == 0 else case
        for case in results.study.cases
    )
    changed = Results(replace(results.study, cases=cases), results.runs)
    (panel,) = finished(air.noise(changed)).axes
    assert lines(panel)[air.HALF][0] == lines(panel)[air.ALL][0] == [-20.0]


def test_the_best_step_size_is_that_of_the_highest_final_accuracy(found):
    """Of equally many seeds; the others are only counted."""
    results = found["scale"]
    best = {}
    for case in results.where():
        (rows,) = results.rows(case)
        end = 100 * np.mean([row["accuracy"] for row in rows[1:][-5:]])
        best[case["submodel_scale"]] = max(
            best.get(case["submodel_scale"], (0,)), (end, case["lr"])
        )
    text = EXPERIMENTS["scale"].short(results)
    for scale, (end, lr) in best.items():
        name = {"none": "unscaled", "width": "scaled by width"}[scale]
        row = f"| HIST | {name} | {lr:g} (edge of the grid) | 2 | 1 | {end:.1f} | not reached |"
        assert row in text


def test_lines_without_runs_are_left_out_and_places_without_runs_are_marked(found):
    results = found["scale"]
    some = Results(results.study, {i: runs if i == 0 else [] for i, runs in results.runs.items()})
    figure = finished(EXPERIMENTS["scale"].draw(some))
    (panel,) = figure.axes
    first, second = (case["lr"] for case in results.study.cases[:2])
    assert marks(panel) == [(first, "not reached"), (second, "not run")]
    assert [text for text in legend(figure) if "width" in text] == []


def test_the_partition_schemes_are_drawn_from_real_masks(found, figures):
    """``alternate`` puts each weight in one cell; ``all`` puts off-diagonal blocks in none."""
    (half,) = found["fig8"].where(cells=4, partition="alternate")
    (all_layers,) = found["fig8"].where(cells=4, partition="all")
    for layer in partitions.owners(half):
        assert set(np.unique(layer)) == {0, 1, 2, 3}
        assert (np.bincount(layer.ravel()) == layer.size // 4).all()
    first, second, third, last = partitions.owners(all_layers)
    for layer in (second, third):
        assert (layer == -1).sum() == 12 * 12 - 4 * 3 * 3
    assert (first >= 0).all()
    assert (last >= 0).all()
    panels = figures["fig8"].axes
    assert [len(panel.images) for panel in panels] == [len(partitions.owners(half)), 4, 0, 0]
    white = [np.all(image.get_array() == 1, axis=-1).sum() for image in panels[1].images]
    assert white == [0, 12 * 12 - 4 * 3 * 3, 12 * 12 - 4 * 3 * 3, 0], "untrained weights are white"
    assert [text.get_text() for text in panels[1].texts] == [f"layer {n}" for n in (1, 2, 3, 4)]
    rows = {
        f"HIST, {partitions.SHARES[c['partition']]}, N = {c['cells']}": found["fig8"].rows(c)[0]
        for c in found["fig8"].where(algorithm="hist")
    }
    rows |= rows_of(found["fig8"], lambda _: "HFedAvg", algorithm="hfedavg")
    assert_curves(panels[2], rows, "round")
    assert_curves(panels[3], rows, "uplink_mib")
    cells = {f"cell {n}" for n in (1, 2, 3, 4)} | {"no cell", "weight trained by"}
    assert set(legend(figures["fig8"])) == set(rows) | cells
    sent = {
        case["partition"]: found["fig8"].rows(case)[0][1]["uplink_mib"]
        for case in (half, all_layers)
    }
    blocks = {"alternate": 3 * 65 + 12 * 4 + 3 * 13 + 10 * 4 - 1, "all": 3 * 65 + 12 + 12 + 40}
    assert sent["all"] == pytest.approx(E * blocks["all"] * MIB, rel=0.02)
    assert sent["alternate"] > 1.15 * sent["all"]


@pytest.mark.parametrize(
    ("rounds", "cells", "mb"), [(262, 2, 115.30), (320, 4, 76.06), (244, 1, 206.18), (28, 1, 23.66)]
)
def test_the_published_accounting_gives_the_published_numbers(rounds, cells, mb):
    assert tables.published_mb(rounds, cells, 0.169, 2572, 59134) == pytest.approx(mb, rel=0.01)


def test_a_run_that_stops_at_its_target_does_not_miss_a_higher_one(found):
    results = found["table2"]
    rows = [{"round": i, "accuracy": a, "uplink_mib": 1.0 * i} for i, a in enumerate((0.1, 0.5))]
    (case, *_) = results.study.cases
    for stops, high in ((False, "not reached"), (True, "not run")):
        settings = case.settings | {"target": 0.5, "stop_at_target": stops}
        study = replace(results.study, cases=(replace(case, settings=settings),))
        text = tables.targets(Results(study, {0: [StoredRun({}, rows, {}, {}, 0.0)]}))
        assert f"| 1 / {high} | not given | 1.00 / {high} |" in text


def test_missing_runs_are_listed_and_cases_are_ordered(tmp_path, capsys):
    """Tables list missing runs; the core comparison with one seed runs first."""
    for name in {e.study for e in EXPERIMENTS.values()}:
        for scale in SCALES:
            study = PAPER.study(name, scale)
            assert study.cases
    made = []
    study = PAPER.study("fig3", "small")
    for run in sorted(study.planned(), key=lambda run: run.rank):
        made.append((run.config.training.rounds, run.config.run.seed))
    assert {seed for _, seed in made[:6]} == {1}  # the core comparison with one seed runs first
    found = PAPER.reproduce(["fig3"], "small", tmp_path, rows=tmp_path / "none")
    assert "Not run: HFedAvg, N = 2" in (tmp_path / "fig3.md").read_text()
    assert not found["fig3"].where()
    assert "not drawn: no run is stored; --make trains the runs" in capsys.readouterr().out


def test_figure_7_shows_seconds_joules_and_errors(found, figures):
    results = found["fig7c"]
    for panel, field in zip(figures["fig7c"].axes, ("sim_seconds", "joules"), strict=True):
        assert (panel.get_xlabel(), panel.get_yscale()) == ("clients per cell", "log")
        names = {air.label(case) for case in results.where()}
        assert names == {"HIST, AirComp", "HIST, AirComp, equal sizes", "HIST, OMA", HFEDAVG}
        for name in names:
            cases = [case for case in results.where() if air.label(case) == name]
            shown = points(results, cases, lambda c: c["clients"] // c["cells"], field)
            assert lines(panel)[name] == shown
    (panel,) = figures["fig7b"].axes
    results = found["fig7b"]
    for masks, name in (("optimized", "HIST, AirComp"), (None, "HIST, AirComp, equal sizes")):
        cases = results.where(algorithm="hist", uplink="aircomp", mask_sizes=masks)
        assert lines(panel)[name] == points(results, cases, lambda c: c["snr_db"], "sim_seconds")
    results = found["fig7d"]
    (panel,) = figures["fig7d"].axes
    for convention in ("published", "physical"):
        cases = results.where(convention=convention)
        ends = {air.mean_error(results.rows(case)): results.finals(case)[0] for case in cases}
        x, y = lines(panel)[f"HIST, {convention} convention"]
        assert dict(zip(x, y, strict=True)) == pytest.approx(ends)
    assert {text.get_text() for text in panel.texts} >= {"random", "annealing,\nMirror-Prox"}


def test_seconds_of_runs_that_miss_the_target_are_bounds(found):
    """Over OMA at every SNR they are the price of all rounds; over the air, those of the run."""
    results = found["fig7b"]
    for uplink, name in (("tdma", "HIST, OMA"), ("aircomp", "HIST, AirComp")):
        case = results.where(algorithm="hist", uplink=uplink)[0]  # with optimised sizes on the air
        (bound,) = air.latencies(results, 1.1)[name][case["snr_db"]]
        assert isinstance(bound, AtLeast)
        assert bound == pytest.approx(results.rows(case)[0][-1]["sim_seconds"])
    assert "| HIST, OMA | 75 | 1 |" in air_tables.snr_latencies(results)


def test_seconds_over_oma_are_planned_for_every_snr(found):
    """OMA's planned seconds equal those of a run and fall with the SNR; AirComp's are constant."""
    results = found["fig7b"]
    (case,) = results.where(uplink="tdma", algorithm="hist")
    (rows,) = results.rows(case)
    planned = [air.simulated_seconds(case, 1, snr, 3) for snr in (-10.0, 20.0)]
    assert planned[1] == pytest.approx(rows[3]["sim_seconds"], rel=1e-12)
    assert planned[0] > 2 * planned[1]
    ends = {results.rows(c)[0][-1]["sim_seconds"] for c in results.where(uplink="aircomp")}
    assert len(ends) == 3  # HIST with both sizes, and HFedAvg
    assert max(ends) < planned[1]


def test_asynchronous_cells_merge_sooner(found, figures):
    """Slow cells take at least 10 times as long, so merging after B cells saves most time."""
    results = found["cells"]
    order = ["rounds", "B = 4", "B = 2", "B = 2, step 0.25"]
    panel, ends = figures["cells"].axes
    assert ticks(panel) == ticks(ends) == [label.replace(", ", ",\n") for label in order]
    for algorithm, name in (("hist", "HIST"), ("hfedavg", "HFedAvg")):
        line, cases = f"{name}, slow cells: 10 times slower", results.where(algorithm=algorithm)
        place = [order.index(schedule_label(case)) for case in cases]
        shown = points(results, cases, lambda c: order.index(schedule_label(c)), "sim_seconds")
        assert lines(panel)[line] == shown
        assert lines(ends)[line] == (place, [results.finals(case)[0] for case in cases])
    for algorithm in ("hist", "hfedavg"):
        cases = {schedule_label(c): c for c in results.where(algorithm=algorithm)}
        assert set(cases) == {*order[: 4 if algorithm == "hfedavg" else 3]}
        ends = {name: results.rows(case)[0][-1] for name, case in cases.items()}
        assert {row["round"] for row in ends.values()} == {4}
        seconds = [ends[name]["sim_seconds"] for name in ("B = 2", "B = 4", "rounds")]
        assert seconds == sorted(seconds)
        assert seconds[2] > 4 * seconds[1]
        sent = {name: row["uplink_mib"] for name, row in ends.items()}
        assert sent["rounds"] / sent["B = 2"] == pytest.approx(4, rel=0.1)
        assert mean_staleness(results.rows(cases["rounds"])[0]) == 0
        assert mean_staleness(results.rows(cases["B = 2"])[0]) > 0
    text = cells_table(results)
    assert text.count("\n") == 2 + 7
    rows = [{"sim_seconds": s, "accuracy": a} for s, a in ((0, 0.1), (2, 0.5), (3, 0.4))]
    assert [accuracy_after(rows, at) for at in (0, 1.9, 2, 9)] == [0.1, 0.1, 0.5, 0.4]
