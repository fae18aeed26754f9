"""Sealed tables have the runs of their files to the bit, and are read without configurations."""

import csv
import json
import lzma
import math
from dataclasses import replace

import pytest

from experiments import seal as seal_module
from experiments import sealed
from experiments.__main__ import main
from experiments.papers import papers
from experiments.queue import Entry, stored
from experiments.runs import Store, stored_file
from experiments.seal import check_cases, index_of, resolved, same, seal, unfinished
from experiments.sealed import INDEX, StudyTable
from experiments.studies import Case, Study
from wirelessfl.base.errors import ConfigError, DataError
from wirelessfl.config import Config
from wirelessfl.results.archive import StoredRun, effective
from wirelessfl.runs.folder.about import NUMERICS

ABOUT = {"numerics": NUMERICS, "torch": "2.0", "numpy": "2.1", "device_name": "CPU, fast"}


def case(cells, seeds=(1, 2), **more):
    return Case({"algorithm": "hist", "cells": cells, "clients": 8} | more, seeds, 0)


def fresh(*cases, name="fig1"):
    """A study of cases whose configurations have not been resolved."""
    return Study(name, tuple(replace(one) for one in cases))


FIRST = fresh(case(2), case(4))
OTHER = fresh(case(4), case(4, lr=0.5), name="other")


def put(store, study, **about):
    """Store a run of each seed of a study, with rows as diverged runs and runs of tasks have."""
    for planned in study.planned():
        config, seed = planned.config, planned.config.run.seed
        rows = [
            {"round": 0, "accuracy": 0.1, "loss": None},
            {"loss": math.nan, "round": 1, "accuracy": 1},
            {"round": 2, "accuracy": 1.0, "loss": 1e-320 * seed, "by": {"1": [0.1, seed]}},
        ]
        run = StoredRun(effective(config), rows, ABOUT | about, {"threads": 1}, 7.125 + seed)
        run.save(stored_file(config, store.rows))


@pytest.fixture
def store(tmp_path):
    store = Store(tmp_path / "paper" / "rows", tmp_path / "runs")
    put(store, FIRST)
    put(store, OTHER)
    return store


def by_name(store):
    return {name: store.run(name) for name in store.names()}


def files(store):
    return sorted(file.name for file in store.rows.iterdir())


def seal_both(store):
    return seal(store, {study.name: resolved(study) for study in (FIRST, OTHER)})


def test_a_table_has_every_run_once_and_to_the_bit(store):
    """Six runs in two tables; the two that both studies have lie in the first."""
    before = by_name(store)
    assert len(before) == 6
    assert seal_both(store) == 6
    assert files(store) == ["fig1.json.xz", "index.csv", "other.json.xz"]
    after = by_name(store)
    assert all(same(before[name], after[name]) for name in before)
    assert before.keys() == after.keys()
    one, two = sealed.tables(store.rows).values()
    assert (len(one.runs), len(two.runs)) == (4, 2)
    assert two.elsewhere == dict.fromkeys(dict(two.cases[0][1]).values(), "fig1")
    content = [(store.rows / name).read_bytes() for name in files(store)]
    assert seal_both(store) == 0
    assert content == [(store.rows / name).read_bytes() for name in files(store)]


def test_settings_that_all_runs_share_are_stored_once(store):
    seal_both(store)
    text = json.loads(lzma.decompress((store.rows / "fig1.json.xz").read_bytes()))
    assert text["settings"]["network"]["clients"] == 8
    assert [one["settings"] for one in text["runs"].values()] == [
        {"network": {"cells": cells}, "run": {"seed": seed}} for cells in (2, 4) for seed in (1, 2)
    ]


def test_same_sees_what_equality_does_not():
    """Not-a-number is the same; 1 and 1.0, and another order of fields, are not."""
    run = StoredRun({"a": {"b": 1}}, [{"x": math.nan, "y": 1}], {}, {}, 1.0)
    assert same(run, replace(run, rows=[{"x": float("nan"), "y": 1}]))
    for other in ([{"x": math.nan, "y": 1.0}], [{"y": 1, "x": math.nan}], run.rows * 2):
        assert not same(run, replace(run, rows=other))
    assert not same(run, replace(run, settings={"a": {"b": True}}))
    assert not same(run, replace(run, seconds=1.5))


@pytest.fixture
def resolutions(monkeypatch):
    """Counts the configurations that studies resolve."""
    seen = []
    make = Config.from_flags

    def counted(*words, **flags):
        seen.append(flags)
        return make(*words, **flags)

    monkeypatch.setattr(Config, "from_flags", counted)
    return seen


def test_sealed_studies_are_read_without_configurations(store, resolutions, tmp_path):
    """Nothing is resolved, wherever the data are; of an extended study, only the new case is."""
    seal_both(store)
    resolutions.clear()
    here = case(4, data_dir=tmp_path)
    results = fresh(case(2, (2,)), here, name="fig1").results(store)
    assert [run.seed for run in results.of(here)] == [1, 2]
    assert [len(runs) for runs in results.runs.values()] == [1, 2]
    assert len(fresh(case(4), name="other").results(store).of(case(4))) == 2
    assert not resolutions
    later = fresh(case(2), case(4, (1, 2, 3)), case(4, (1,), lr=0.5)).results(store)
    assert [len(runs) for runs in later.runs.values()] == [2, 2, 1]
    assert [(one["cells"], one.get("lr")) for one in resolutions] == [(4, None), (4, 0.5)]


def test_a_study_that_was_extended_is_sealed_again(store):
    """It is unfinished until its new runs, single files, are there and sealed; none is lost."""
    seal_both(store)
    study = fresh(case(4, (1, 3)))
    before = by_name(store)
    assert unfinished(resolved(study), store) == 1
    assert [run.config.run.seed for run in store.missing(study.planned())] == [3]
    put(store, fresh(case(4, (3,))))
    assert len(files(store)) == 4
    assert unfinished(resolved(study), store) == 0
    assert seal(store, {"fig1": resolved(study)}) == 1
    assert len(files(store)) == 3
    assert [run.seed for run in study.results(store).of(case(4, (1, 3)))] == [1, 3]
    after = by_name(store)
    assert len(after) == 7
    assert all(same(before[name], after[name]) for name in before)


def test_a_newer_file_replaces_the_sealed_run(store):
    """It counts at once; sealing any study with this run puts it into the table that has it."""
    seal_both(store)
    put(store, fresh(case(4, (1,))), commit="new")
    (single,) = store.rows.glob(sealed.SINGLE)
    name = single.name.partition(".")[0]
    assert store.run(name).about["commit"] == "new"
    assert seal(store, {"other": resolved(OTHER)}) == 1
    assert sealed.table(store.rows, "fig1").run(name).about["commit"] == "new"
    assert sealed.table(store.rows, "other").elsewhere[name] == "fig1"


def test_outdated_runs_are_made_again(store, monkeypatch):
    """A sealed run of an older version of the results is missing, and replaced when sealed."""
    seal_both(store)
    monkeypatch.setattr("wirelessfl.results.archive.NUMERICS", NUMERICS + 1)
    assert len(store.missing(FIRST.planned())) == unfinished(resolved(FIRST), store) == 4
    put(store, FIRST, numerics=NUMERICS + 1)
    assert store.missing(FIRST.planned()) == []
    seal(store, {"fig1": resolved(FIRST)})
    assert store.missing(FIRST.planned()) == []


def test_a_table_that_differs_from_the_files_is_refused(store, monkeypatch):
    """Nothing is written or removed if one value of what was written differs."""
    before = files(store)
    write = seal_module.write_compressed

    def wrong(file, content):
        last = list(content["runs"].values())[-1]
        last["columns"]["accuracy"][-1] = 1
        write(file, content)

    monkeypatch.setattr(seal_module, "write_compressed", wrong)
    with pytest.raises(DataError, match="differs from its sealed copy: nothing was removed"):
        seal(store, {"fig1": resolved(FIRST)})
    assert files(store) == before


def test_an_interrupted_seal_goes_on(store, monkeypatch):
    """Tables without an index are read, next to single files; the next seal removes these."""
    with monkeypatch.context() as patch:
        patch.setattr(seal_module, "_write_index", lambda rows: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            seal_both(store)
    assert len(files(store)) == 8
    assert len(store.names()) == 6
    assert seal_both(store) == 6


@pytest.mark.thorough(every=8)
@pytest.mark.parametrize("content", [b"", b"x", lzma.compress(b"[1]"), lzma.compress(b"{}")])
def test_a_damaged_table_is_one_error(content, store):
    """Figures and the queue stop; the runs do not count as missing."""
    seal_both(store)
    file = store.rows / "fig1.json.xz"
    file.write_bytes(content)
    with pytest.raises(DataError, match=r"fig1\.json\.xz is not a sealed table of a study: rest"):
        fresh(*FIRST.cases).results(store)
    with pytest.raises(DataError, match="is not a sealed table"):
        stored(Entry("hist", "fig1", FIRST.planned()[0], store))
    file.unlink()
    with pytest.raises(DataError, match=r"fig1\.json\.xz lacks the run hist-"):
        store.missing(FIRST.planned())


def test_a_table_with_other_names_is_refused(store):
    seal_both(store)
    table = sealed.table(store.rows, "fig1")
    check_cases(table, resolved(FIRST))
    settings, names = table.cases[1]
    wrong = replace(table, cases=[table.cases[0], (settings, names | {2: "hist-0"})])
    with pytest.raises(DataError, match=r"has hist-0 with seed 2, and its settings .* give hist-"):
        check_cases(wrong, resolved(FIRST))


def test_names_of_runs_are_not_those_of_studies(store):
    """Studies have no hyphen, by which files of runs are told from tables."""
    with pytest.raises(ConfigError, match="study is 'fig-1': its name has a hyphen"):
        seal(store, {"fig-1": resolved(FIRST)})
    names = {file.stem for one in papers().values() for file in one.settings.glob("*.toml")}
    assert not [name for name in names if "-" in name]


def test_the_index_lists_each_study_with_its_runs(store):
    seal_both(store)
    with (store.rows / INDEX).open(encoding="utf-8") as text:
        lines = list(csv.DictReader(text))
    assert [(one["study"], one["settings"], one["seed"], one["file"]) for one in lines] == [
        *(("fig1", f"cells={cells}", f"{s}", "fig1.json.xz") for cells in (2, 4) for s in (1, 2)),
        *(("other", "", seed, "fig1.json.xz") for seed in "12"),
        *(("other", "lr=0.5", seed, "other.json.xz") for seed in "12"),
    ]
    assert {one["hardware"] for one in lines} == {"CPU, fast"}
    assert {(one["numerics"], one["torch"], one["numpy"]) for one in lines} == {
        (f"{NUMERICS}", "2.0", "2.1")
    }
    assert [float(one["seconds"]) for one in lines[:2]] == [8.125, 9.125]


@pytest.mark.thorough(every=8)
@pytest.mark.parametrize("name", papers())
def test_the_tables_of_the_repository(name):
    """The index is that of the tables, and names of a sample are those of the settings.

    If this fails after new rows: ``python -m experiments seal`` writes index and tables.
    """
    paper = papers()[name]
    rows = paper.folder / "rows"
    tables = sealed.tables(rows)
    assert bool(tables) == (rows / INDEX).is_file()
    if tables:
        assert (rows / INDEX).read_text(encoding="utf-8") == index_of(tables)
        study, table = list(tables.items())[len(name) % len(tables)]
        study = paper.study(study, "small")
        check_cases(table, resolved(replace(study, cases=study.cases[-2:])))


def test_the_command_names_what_is_missing(tmp_path, monkeypatch, capsys):
    """A study without all of its runs is refused if it is named, and left otherwise."""
    hist = replace(papers()["hist"], experiments={"fig6c": papers()["hist"].experiments["fig6c"]})
    store = Store(tmp_path / "rows", tmp_path)
    monkeypatch.setattr(seal_module, "papers", lambda: {"hist": hist})
    monkeypatch.setattr(type(hist), "store", lambda *_: store)
    assert main(["seal", "hist/fig66"]) == 2
    assert "study is 'hist/fig66', which has no runs in the queue" in capsys.readouterr().err
    assert main(["seal", "hist/fig6"]) == 2
    assert "make them with `python -m experiments queue --study hist/fig6`" in (
        capsys.readouterr().err
    )
    assert main(["seal"]) == 0
    assert "runs are missing" in capsys.readouterr().out
    put(store, hist.study("fig6", "small"))
    assert main(["seal", "hist/fig6"]) == 0
    assert "hist/fig6: sealed" in capsys.readouterr().out
    assert files(store) == ["fig6.json.xz", "index.csv"]


def test_an_empty_table_is_read(tmp_path):
    """A study may have all of its runs in the tables of others."""
    table = StudyTable("a", [({"cells": 2}, {1: "hist-0"})], {}, {"hist-0": "b"})
    seal_module.write_compressed(tmp_path / "a.json.xz", table.content())
    assert StudyTable.load(tmp_path / "a.json.xz") == table
