"""FedAST: tables and figures at scale smoke; settings of scale paper."""

import pytest

from experiments.fedast import bars, curves, measures, sweeps, tables, tasks
from experiments.fedast.__main__ import EXPERIMENTS, PAPER
from experiments.fedast.tasks import names, target
from experiments.fedast.timelines import timelines
from experiments.studies import SCALES, Results
from tests.drawn import AGAINST, finished, legend, lines, titles
from wirelessfl.base.figures.marks import AtLeast
from wirelessfl.config import Config
from wirelessfl.results.archive import StoredRun
from wirelessfl.results.selection import NAMES

pytestmark = pytest.mark.thorough

DRAWN = ("comparison", "concurrency", "fig3", "fig5", "fig8", "fig12")
"""Experiments that the tests below use, and one of each other kind of table and figure."""


@pytest.fixture(scope="module")
def out(tmp_path_factory):
    return tmp_path_factory.mktemp("fedast")


@pytest.fixture(scope="module")
def found(out, figures):
    return PAPER.reproduce(DRAWN, "smoke", out, make=True)


def test_the_figure_of_the_comparison_shows_its_rows(found, figures):
    """One panel per task; a bar is the time at which a method's run of the task ends."""
    results = found["comparison"]
    shown_tasks = {"mnist": "digits for MNIST", "fashion-mnist": "digits for Fashion-MNIST"}
    assert titles(figures["comparison"]) == [f"{one}, target 40 %" for one in shown_tasks.values()]
    for panel, task in zip(figures["comparison"].axes, shown_tasks, strict=True):
        assert panel.get_ylabel() == "simulated time to target (s)"
        heights = [bar.get_height() for bar in panel.patches]
        ends = [results.of(case)[0].rows_of(task)[-1]["sim_seconds"] for case in results.where()]
        assert heights == pytest.approx(ends)
        ticks = [text.get_text().replace("\n", " ") for text in panel.get_xticklabels()]
        assert ticks == [tasks.label(case) for case in results.where()]
    assert "digits for MNIST 40 %" in tables.times(results)


@pytest.mark.parametrize(("what", "percent"), [("accuracy", 100), ("loss", 1)])
def test_curves_show_the_rows_of_each_task(found, what, percent):
    results = found["comparison"]
    panels = finished(curves.of_methods(results, what)).axes
    for panel, task in zip(panels, ("mnist", "fashion-mnist"), strict=True):
        assert panel.get_xlabel() == AGAINST["sim_seconds"]
        assert panel.get_ylabel() == ("test accuracy (%)" if percent == 100 else "test loss")
        for case in results.where():
            (run,) = results.of(case)
            x, y = lines(panel)[tasks.label(case)]
            assert x == pytest.approx([row["sim_seconds"] for row in run.rows_of(task)])
            assert y == pytest.approx([percent * row[what] for row in run.rows_of(task)])


@pytest.mark.parametrize("against", ["sync-st", "static"])
def test_different_tasks_are_compared_with_one_method(found, against):
    """The fastest division of Sync-ST's clients, or FedAST (S); ends are those of the rows."""
    results = found["comparison"]
    ours, other = measures.compared(results, against)
    ends = [measures.to_end(results, case)[0] for case in (ours, other)]
    assert tasks.label(ours) == "FedAST (D)"
    if against == "static":
        assert tasks.label(other) == "FedAST (S)"
    else:
        divided = [c for c in results.where(algorithm="sync-st") if c["first"] != 0]
        assert len(divided) == 2
        assert ends[1] == min(measures.to_end(results, case)[0] for case in divided)
    (panel,) = finished(bars.of_tasks(results, against)).axes
    places = [text.get_text() for text in panel.get_xticklabels()]
    assert places == ["digits for MNIST\n40 %", "digits for Fashion-MNIST\n40 %", "all"]
    heights = [bar.get_height() for bar in panel.patches]
    assert heights[2::3] == pytest.approx(ends)
    panels = finished(curves.of_tasks(results, against)).axes
    for panel, task in zip(panels, ("mnist", "fashion-mnist"), strict=True):
        verticals = [x[0] for line in panel.get_lines() if len(set(x := line.get_xdata())) == 1]
        reached = [measures.to_target(results, case, task)[0] for case in (ours, other)]
        assert [x for x in verticals if x in reached] == reached


def test_curves_of_identical_tasks_have_a_panel_per_number(found):
    results = found["fig5"]
    figure = finished(curves.of_counts(results))
    shown = [text.split(", ")[0] for text in titles(figure)]
    assert shown == [
        f"mean of {count} digits for {kind} tasks"
        for kind in ("CIFAR-10", "MNIST")
        for count in (2, 3)
    ]
    case = results.where(algorithm="fedast")[0]
    (held,) = measures.curves(results, case)
    x, y = lines(figure.axes[0])["FedAST"]
    assert x == pytest.approx([row["sim_seconds"] for row in held])
    assert y == pytest.approx([100 * row["accuracy"] for row in held])


def test_losses_against_active_clients_are_those_of_the_table(found):
    (panel,) = finished(sweeps.active(found["fig3"], "loss")).axes
    assert panel.get_ylabel() == "final loss"
    cases = found["fig3"].where(algorithm="fedast")
    expected = [measures.final(found["fig3"], case, "loss")[0] for case in cases]
    assert lines(panel)["FedAST"][1] == pytest.approx(expected)


def test_a_mean_over_seeds_that_miss_the_target_is_a_bound():
    assert tables.shown([10.0, 20.0, AtLeast(60.0)]) == "at least 30 (2 of 3 seeds)"
    assert tables.shown([10.0, 20.0]) == "15 (10 to 20)"
    assert tables.as_ratio(50.0) == "2.00"


def test_ratios_of_identical_tasks_stand_above_their_bars(found, figures):
    """The time of Sync-ST divided by that of FedAST; no interval with one seed."""
    results = found["fig5"]
    for panel, kind in zip(figures["fig5"].axes, ("cifar10", "mnist"), strict=True):
        expected = []
        for count in (2, 3):
            fedast, sync = (
                next(
                    case
                    for case in results.where(algorithm=name)
                    if tasks.kinds(case) == (kind,) and len(names(case)) == count
                )
                for name in ("fedast", "sync-st")
            )
            (slow,), (fast,) = measures.to_mean(results, sync), measures.to_mean(results, fedast)
            expected.append(f"{slow / fast:.2f}")
        assert [one.get_text() for one in panel.texts] == expected


def test_lines_against_a_setting_are_means_of_the_seeds(found, figures):
    (panel,) = figures["fig3"].axes
    assert panel.get_xlabel() == "active requests / clients"
    assert panel.get_ylabel() == "final accuracy (%)"
    assert list(lines(panel)) == ["FedAST", "FedAST-NoBuffer", "centralised"]
    assert lines(panel)["FedAST"][0] == [3 * 2 / 40, 3 * 8 / 40]
    ends, seconds = figures["fig8"].axes
    assert (ends.get_ylabel(), seconds.get_ylabel()) == (
        "final accuracy (%)", "simulated time to target (s)",
    )  # fmt: skip
    cases = sorted(found["fig8"].where(), key=lambda case: case["buffer"])
    for panel in (ends, seconds):
        assert panel.get_xlabel() == "buffer size b"
    assert all(x == [case["buffer"] for case in cases] for x, _ in lines(ends).values())
    for case in found["fig12"].where():
        (task,) = tasks.names(case)
        (run,) = found["fig12"].of(case)
        row = next(
            (r for r in run.rows_of(task) if r["accuracy"] >= tasks.target(case, task)), None
        )
        for panel, field in zip(figures["fig12"].axes, ("sim_seconds", "version"), strict=False):
            line = panel.get_lines()[0]
            shown = dict(zip(line.get_xdata(), line.get_ydata(), strict=True))
            assert shown.get(case["first"]) == (None if row is None else row[field])


def test_mean_curves_keep_the_last_values_of_an_ended_task(found):
    results = found["fig5"]
    case = next(c for c in results.where(algorithm="fedast") if len(tasks.names(c)) == 3)
    ((*_, last),) = measures.curves(results, case)
    (run,) = results.of(case)
    ends = [run.rows_of(name)[-1]["accuracy"] for name in tasks.names(case)]
    assert last["accuracy"] == pytest.approx(sum(ends) / 3)
    assert min(ends) >= 0.4
    rows = run.rows_of("cifar10-2")
    (alone,) = measures.curves(results, case, ["cifar10-2"])
    assert [row["accuracy"] for row in alone] == [row["accuracy"] for row in rows]


def test_sustained_accuracy_is_a_mean_of_tests_in_a_row(found):
    """The time is that of the last of five tests whose mean is the target."""
    results = found["concurrency"]
    case = results.where(algorithm="fedast")[0]
    name = names(case)[0]
    goal = target(case, name)
    accuracies = [goal + 0.3, *[goal - 0.1] * 3, goal - 0.05, goal, goal + 0.1, goal + 0.2, goal]
    rows = [{"task": name, "accuracy": a, "sim_seconds": 2.0 * i} for i, a in enumerate(accuracies)]
    runs = [
        StoredRun({"run": {"seed": seed}}, some, {}, {}, 0.0)
        for seed, some in enumerate((rows, rows[1:7]))
    ]
    place = results.study.cases.index(case)
    made = Results(results.study, {**results.runs, place: runs})
    assert measures.to_target(made, case, name) == [0.0, 10.0]
    for missed in ({"tests": 5}, {"goal": {"digits": goal + 0.25}}):
        hit, bound = measures.to_target(made, case, name, **missed)
        assert (hit, bound) == (14.0 if "tests" in missed else 0.0, 12.0)
        assert (type(hit), type(bound)) == (float, AtLeast)
    assert measures.mean([hit, bound]) is None


def test_every_study_loads_at_every_scale():
    numbers = {f"fig{number}" for number in range(2, 27)}
    assert set(EXPERIMENTS) == numbers | {"comparison", "shakespeare", "concurrency"}
    for name in {experiment.study for experiment in EXPERIMENTS.values()}:
        for scale in SCALES:
            study = PAPER.study(name, scale)
            assert study.cases or scale == "small", name
            assert all(NAMES[case["algorithm"]] for case in study.cases)
            for case in {(c["algorithm"], c["first"]): c for c in study.cases}.values():
                case.config(case.seeds[0])  # the other cases differ in numbers only


def test_a_study_without_runs_at_a_scale_names_another(tmp_path, capsys):
    PAPER.reproduce(["fig10"], "small", tmp_path, rows=tmp_path / "none")
    assert "fig10: no runs are defined at scale small; try --scale paper" in capsys.readouterr().out


def test_settings_of_scale_paper_are_the_published_ones():
    """Four tasks with targets at three levels, as in Section 5.1, Appendix C and Tables 1 and 3."""
    for study, targets in (
        ("heterogeneous", (0.93, 0.82, 0.63, 0.42)),
        ("higher", (0.96, 0.85, 0.66, 0.45)),
        ("lower", (0.83, 0.72, 0.53, 0.32)),
    ):
        cases = PAPER.study(study, "paper").cases
        assert [tasks.label(c) for c in cases] == [
            "FedAST (D)", "FedAST (S)", "Sync-ST (100/84/48/68)",
        ]  # fmt: skip
        for case in cases:
            assert case.seeds == (1, 2, 3)
            configs = list(case.config(1).tasks.values())
            sync = case["algorithm"] == "sync-st"
            rules = [config.algorithm for config in configs]
            schedules = [config.schedule for config in configs]
            assert tuple(config.evaluation.target for config in configs) == targets
            assert [config.named("model") for config in configs] == [
                "mlp", "lenet5", "fedast-cnn", "lstm",
            ]  # fmt: skip
            assert [r.lr for r in rules] == [0.2 if sync else 0.1, 0.06, 0.1, 7.0]
            decays = [3e-4, 3e-4, 3e-4 if sync else 7e-4, 1e-5]
            assert [r.weight_decay for r in rules] == decays
            assert {r.server_lr for r in rules} == {1.0 if sync else 0.1}
            assert [config.training.batch_size for config in configs] == [32, 32, 32, 64]
            assert {config.training.local_steps for config in configs} == {27}
            assert {config.network.clients for config in configs} == {1000}
            assert [config.named("split") for config in configs] == ["dirichlet"] * 3 + ["natural"]
            assert [getattr(config.dataset, "pixels", None) for config in configs] == [
                "standard"
            ] * 3 + [None]
            assert [getattr(config.split, "samples_per_client", None) for config in configs] == [
                300
            ] * 3 + [None]
            assert {(c.split.alpha, c.split.reuse) for c in configs[:3]} == {(0.1, True)}
            if sync:
                assert schedules[0].awaited == 30
                assert configs[0].network.availability == 0.3
                assert [c.training.clients_per_round for c in configs] == [100, 84, 48, 68]
            else:
                assert [(s.active, s.merged) for s in schedules] == [(96, 3)] * 3 + [(96, 6)]


def test_settings_of_the_other_figures():
    for fedast, count in zip(PAPER.study("fig16", "paper").cases[::2], (2, 4, 6), strict=True):
        configs = list(fedast.config(1).tasks.values())
        assert len(configs) == count
        assert {c.training.local_steps for c in configs} == {5}
        assert {(c.named("model"), c.split.alpha, c.evaluation.target) for c in configs} == {
            ("resnet18", 1.0, 0.5)
        }
        assert {c.algorithm.lr for c in configs} == {0.06}
    methods = [tasks.label(case) for case in PAPER.study("fig2", "paper").cases]
    assert methods == [
        "FedAST", "Sync-ST", "Sync-Bayes-ST", "Sync-UCB-ST", "Sync-ST without mitigation",
    ]  # fmt: skip
    for name, requests in (("fig8", 175), ("fig9", 105)):
        assert {case["requests"] for case in PAPER.study(name, "paper").cases} == {requests}
    for case in PAPER.study("fig3", "paper").cases:
        if case["algorithm"] == "fedast":
            assert case["requests"] == 32 * case["buffer"]
        elif not tasks.is_central(case):
            made = case.config(1).tasks.values()
            assert {(c.schedule.merged, c.algorithm.server_lr) for c in made} == {(1, 0.038)}


def test_a_case_prints_the_command_that_repeats_it():
    """The printed command has flags that give the same tasks as the case's configuration."""
    case = PAPER.study("heterogeneous", "paper").cases[2]
    words = case.command.split()[3:]
    flags = {}
    for name, value in zip(words[::2], words[1::2], strict=True):
        flags.setdefault(name.removeprefix("--").replace("-", "_"), []).append(value)
    flags = {name: given if name == "task" else given[0] for name, given in flags.items()}
    parsed = Config.from_flags("sync-st", **flags)
    assert parsed.tasks == case.config(1).tasks


def test_both_timelines(tmp_path, capsys, figures):
    """Both methods are drawn over one minute, and their merges are printed."""
    files = timelines(tmp_path)
    assert [file.name for file in files if file.suffix == ".png"] == [
        "timeline-fedast.png", "timeline-sync-st.png",
    ]  # fmt: skip
    for method in ("fedast", "sync-st"):
        (panel,) = figures[f"timeline-{method}"].axes
        assert panel.get_xlabel() == "simulated time (s)"
        assert panel.get_xlim() == (0, 60)
        assert "MNIST" in " ".join(legend(figures[f"timeline-{method}"])).upper()
    assert capsys.readouterr().out.count("merges in 60 simulated seconds") == 2
