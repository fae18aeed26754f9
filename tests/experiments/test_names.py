"""Stored runs are found by the hash of their settings; names that they had earlier are listed."""

from pathlib import Path

import pytest

from experiments import sealed
from experiments.papers import papers
from experiments.runs import EARLIER, Planned, Store, identity, stored_file
from wirelessfl.config import Config
from wirelessfl.config.earlier import MOVED
from wirelessfl.results.archive import StoredRun, effective
from wirelessfl.runs.about import NUMERICS
from wirelessfl.runs.kept import kept_name

PLANNED = {
    "dynamic_clients/lenet5": "fedacg-a61bc97b654a",
    "dynamic_clients/table8": "fedprox-a3ca6c62ddf3",
    "dynamic_clients/table9": "fedprox-210c0855767a",
    "fadamgc/fig3": "fadamgc-ee2f7d0bcef2",
    "fadamgc/fig5": "fadamgc-db918a4174fd",
    "fadamgc/memory": "fa-nt-cdbfe07fb147",
    "fadamgc/news": "fa-nt-076d7bdefd99",
    "fadamgc/table2": "fadamgc-57fafd08ea4a",
    "fedast/comparison": "sync-ucb-st-c57ad005bf3a",
    "ra_fed/coverage": "ram-fed-c0920fc6e62e",
    "ra_fed/masks": "ram-fed-c3992689086b",
    "ra_fed/widths": "ram-fed-94b7309d81ad",
}
"""A run of each study that was unfinished when the hash changed, with its name before."""


@pytest.mark.parametrize("study", PLANNED)
def test_a_run_that_was_planned_earlier_is_found_by_its_name(study, tmp_path):
    """Its rows may be made by an earlier version and copied; no other run gets this name."""
    paper, _, name = study.partition("/")
    algorithm = PLANNED[study].rpartition("-")[0]
    cases = [c for c in papers()[paper].study(name, "small").cases if c["algorithm"] == algorithm]
    configs = [case.config(case.seeds[-1]) for case in cases]
    store = Store(tmp_path / "rows", tmp_path / "runs")
    about = {"numerics": NUMERICS}
    StoredRun({}, [], about, {}, 1.0).save(store.rows / f"{PLANNED[study]}.json.xz")
    missing = store.missing(Planned("", config) for config in configs)
    assert len(missing) == len(configs) - 1


@pytest.mark.parametrize("name", papers())
def test_stored_runs_have_the_settings_of_their_studies(name):
    """A changed default fails here: state the old value in the settings of the studies.

    Settings of the computation, which earlier versions stored with their values, do not count.
    """
    paper = papers()[name]
    store = paper.store("small", Path("results"))
    known, lost = {*store.names()}, []
    for study in paper.studies("small"):
        configs = (case.config(case.seeds[0]) for case in study.cases)
        config = next((one for one in configs if identity(one) in known), None)
        if config is not None:
            assert not [*changed(store.run(identity(config)).settings, effective(config))], (
                study.name
            )
        elif sealed.table(store.rows, study.name):
            lost.append(study.name)
    assert not lost, "finished studies whose runs have other names now"


def changed(then, now):
    """Settings that were stored and are others now; later ones are not stored."""
    for section, table in then.items():
        if section == "tasks":
            for task, settings in table.items():
                yield from changed(settings, now["tasks"][task])
        elif section != "run":
            for key, value in table.items():
                table_now, key_now = MOVED.get((section, key), (section, key))
                if now.get(table_now, {}).get(key_now) != value:
                    yield section, key, value


def test_a_changed_default_is_seen():
    now = effective(Config.from_flags("hist", clients=8))
    assert not [*changed(now, now)]
    then = now | {"network": now["network"] | {"antennas": 3}}
    assert [*changed(then, now)] == [("network", "antennas", 3)]


def test_names_ignore_places_and_threads_and_defaults(tmp_path):
    """Runs of studies use one thread; other settings that differ from their defaults count."""
    name = identity(Config.from_flags("hist", clients=8))
    flags = ({"out": tmp_path}, {"data_dir": tmp_path}, {"threads": 3}, {"antennas": 10})
    assert {identity(Config.from_flags("hist", clients=8, **one)) for one in flags} == {name}
    others = ({"seed": 2}, {"antennas": 9}, {"lr": 0.2}, {"split": "iid"}, {"uplink": "aircomp"})
    names = {identity(Config.from_flags("hist", clients=8, **one)) for one in others}
    assert len({name, *names}) == 1 + len(others)


def test_a_new_run_has_the_name_of_its_folder(tmp_path):
    config = Config.from_flags("hist", clients=8, rounds=7, threads=1)
    assert kept_name(config).rpartition("-")[2] not in EARLIER.read_text(encoding="utf-8")
    assert stored_file(config, tmp_path) == tmp_path / f"{kept_name(config)}.json.xz"
