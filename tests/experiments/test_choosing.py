"""The crossed study of docs/results/crossed.md: its cases, prices, choices, figure and commands."""

import importlib
import re
from pathlib import Path

import pytest

import wirelessfl
from experiments.blocks import DOCS, filled
from experiments.codesign import choosing, crossed
from experiments.codesign.__main__ import PAPER
from experiments.codesign.access import ACCESSES, PRICED, access_of, complete
from experiments.codesign.crossed import BUFFERED, ROUNDS, Line, run_name
from experiments.evidence import Evidence
from experiments.priced import over
from experiments.runs import Store
from experiments.studies import SCALES, Results
from tests.drawn import finished
from wirelessfl.cli import main
from wirelessfl.results.archive import StoredRun, effective
from wirelessfl.runs.folder.about import NUMERICS

FILES = re.compile(r"^```toml file=(\S+)\n(.*?)^```", re.MULTILINE | re.DOTALL)


@pytest.mark.thorough(every=8)
@pytest.mark.parametrize("scale", SCALES)
def test_every_run_has_as_many_local_steps(scale):
    """With a merge of b of n clients, or of B of N cells, a client trains b / n (B / N) times."""
    study = PAPER.study("crossed", scale)
    steps = set()
    for case in study.cases:
        merged = (case["buffer"] or 1) / (case["cells"] or case["clients"])
        rounds = case["rounds"] * (merged if case["schedule"] else 1)
        steps.add(rounds * case["local_steps"] * (case["edge_rounds"] or 1))
        assert case["rounds"] % (case["eval_every"] or 1) == 0
        assert case.config(1)
    assert len(steps) == 1
    assert len({repr(case) for case in study.cases}) == len(study.cases) == 27


@pytest.mark.parametrize("name", ACCESSES)
def test_an_access_is_known_by_its_settings(name):
    assert access_of(complete({"access": name, "lr": 0.1}, "small")) == name


def planned(scale="small"):
    """Every combination of the study, without runs."""
    for case in PAPER.study("crossed", scale).cases:
        access = access_of(case.settings)
        place = (case["schedule"] or ROUNDS, run_name(case))
        alike = case["schedule"] is None and case["mask_sizes"] is None
        others = PRICED.get(access, ()) if alike else ()
        for one in (access, *others):
            yield Line(*place, one, case, [], [])


def test_choices_are_combinations_of_the_study():
    keys = {line.key for line in planned()}
    assert len(keys) == 33
    assert {key for one in choosing.CHOICES for key in (one.before, one.after)} <= keys


def test_commands_of_the_page_repeat_the_runs(tmp_path, monkeypatch):
    """With the files of the page, a command has the settings of the stored or priced run."""

    class ReadError(Exception):
        pass

    def read(config, *args, **kwargs):
        raise ReadError(config)

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(importlib.import_module("wirelessfl.runs.run"), "run", read)
    for file, text in FILES.findall((DOCS / "guides" / "choosing.md").read_text(encoding="utf-8")):
        Path(file).write_text(text, encoding="utf-8")
    wanted = {one.after for one in choosing.CHOICES}
    for line in planned():
        if line.key in wanted:
            with pytest.raises(ReadError) as found:
                main(choosing.command(line).split()[1:])
            config = line.case.config(1)
            if line.priced:
                flags = dict(ACCESSES[line.access])
                config = over(config, uplink={"name": flags.pop("uplink"), **flags})
            assert effective(found.value.args[0]) == effective(config), line.key


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """The runs of HIST in synchronous rounds over TDMA, at scale smoke, with its settings."""
    study = PAPER.study("crossed", "smoke")
    case = next(c for c in study.cases if (c["algorithm"], c["uplink"]) == ("hist", "tdma"))
    config = case.config(1).with_run({"out": tmp_path_factory.mktemp("a") / "run"})
    return case, StoredRun.of(wirelessfl.run(config))


def results_of(runs):
    """Results of scale smoke with these runs, by place of their cases."""
    study = PAPER.study("crossed", "smoke")
    return Results(study, {i: runs.get(i, []) for i in range(len(study.cases))})


def test_a_priced_line_has_the_rows_of_a_run_over_its_access(trained, tmp_path, monkeypatch):
    case, run = trained
    place = PAPER.study("crossed", "smoke").cases.index(case)
    found = {line.access: line for line in crossed.lines(results_of({place: [run]}))}
    assert [*found] == ["tdma", "equal", "optimal"]
    assert [line.priced for line in found.values()] == [False, True, True]
    there = case.config(1).changed(uplink="ofdma", allocation="optimal", out=tmp_path / "run")
    direct = wirelessfl.run(there)
    fields = ("round", "accuracy", "sim_seconds", "joules", "uplink_mib")
    (priced,) = found["optimal"].runs
    assert [[r[f] for f in fields] for r in priced.rows] == [
        [r[f] for f in fields] for r in direct.rows
    ]
    target = run.rows[1]["accuracy"]
    monkeypatch.setattr(crossed, "TARGET", target)
    assert [row["round"] for row in crossed.over(run, "equal").rows] == [0, 1]


def stored(case, seed, hit, seconds):
    """A run that reaches the target at test ``hit`` (None: never); a test takes ``seconds``."""
    rows = [
        {
            "round": n,
            "accuracy": 0.1 if hit is None or n < hit else 0.85,
            "loss": 1.0,
            "sim_seconds": n * seconds,
            "joules": 2.0 * n,
            "uplink_mib": 3.0 * n,
        }
        for n in range(6)
    ]
    return StoredRun({"run": {"seed": seed}}, rows, {"numerics": NUMERICS}, {}, 1.0)


def of(algorithm, access, schedule=None):
    """The place of a case."""
    return next(
        i
        for i, case in enumerate(PAPER.study("crossed", "smoke").cases)
        if (case["algorithm"], access_of(case.settings), case["schedule"], case["mask_sizes"])
        == (algorithm, access, schedule, None)
    )


@pytest.fixture
def some(monkeypatch):
    """Two seeds of four combinations; mmse reaches the target with one of them."""
    monkeypatch.setattr(crossed, "PRICED", {})
    cases = PAPER.study("crossed", "smoke").cases

    def runs(place, *seeds):
        return {
            place: [
                stored(cases[place], seed, hit, seconds)
                for seed, (hit, seconds) in enumerate(seeds, start=1)
            ]
        }

    return results_of(
        runs(of("hist", "optimal", BUFFERED), (2, 3.0), (2, 6.0))
        | runs(of("hist", "physical"), (4, 1.0), (4, 2.0))
        | runs(of("hist", "mmse"), (2, 1.0), (None, 2.0))
        | runs(of("fedavg", "tdma"), (None, 1.0), (None, 1.0))
    )


def test_choices_have_ratios_of_equal_seeds_and_commands(some):
    """Seed 1 takes 4 s with physical and 2 s with mmse; seed 2 takes 8 s, and 10 s or more."""
    text = choosing.table(some)
    (row,) = (line for line in text.splitlines() if "minimum MSE" in line)
    cells = row.split(" | ")
    assert cells[2].startswith("at most 1.26 (")  # sqrt(4 / 2 x 8 / 10)
    flags = "--uplink aircomp --convention mmse --lr 0.1"
    assert cells[-1] == f"`wirelessfl run hist --config cells.toml {flags}` |"
    assert text.count("`wirelessfl run") == 1


def test_findings_are_of_combinations_that_reach_the_target(some):
    numbers = choosing.numbers(crossed.lines(some))
    air = "HIST over OFDMA, optimal bandwidth, asynchronous (9 s, 6 MiB, 4 J)"
    assert numbers == {
        "combinations": "2 of 4",
        "soonest": "HIST over AirComp, physical, synchronous rounds (6 s, 12 MiB, 8 J)",
        "soonest without AirComp": air,
        "fewest joules": air,
        "least traffic": air,
        "most accurate": air.partition(" (")[0],
        "highest accuracy": "70.0",
        "certain": "0 of 1",
    }


def test_a_panel_per_schedule_with_hollow_marks(some):
    rounds, merges = finished(crossed.draw(some)).axes
    drawn = [[line for line in panel.lines if len(line.get_xdata())] for panel in (rounds, merges)]
    shown = [[line for line in lines if line.get_marker() != "."] for lines in drawn]
    assert [[line.get_xdata()[0] for line in lines] for lines in shown] == [[6, 6, 6], [9]]
    assert [len(lines) for lines in drawn] == [3 + 3, 1 + 2]  # seeds that reach the target
    assert len(rounds.texts) == 1  # mmse: 2 s, and more than 10 s
    assert [line.get_gid() for line in shown[0]] == [None, None, "partly"]
    assert rounds.get_xscale() == rounds.get_yscale() == "log"


def test_the_page_can_be_filled_with_and_without_runs(some, tmp_path):
    """The table and the figure of all combinations."""
    text = (DOCS / "results" / "crossed.md").read_text(encoding="utf-8")
    evidence = Evidence(PAPER, Store(tmp_path, tmp_path))
    empty = filled(text, evidence)
    assert empty.count("*0 of 81 runs are finished.*") == 2
    evidence.read["crossed"] = some
    full = filled(text, evidence)
    assert full.count("*8 of 27 runs, 2 seeds.") == 2
    assert filled(full, evidence) == full
    assert filled(full, Evidence(PAPER, Store(tmp_path, tmp_path))) == empty
