"""Stored runs are found by the hash of their settings."""

from pathlib import Path

import pytest

from experiments import sealed
from experiments.papers import papers
from experiments.runs import identity, stored_file
from wirelessfl.config import Config
from wirelessfl.results.archive import effective
from wirelessfl.runs.kept import kept_name


@pytest.mark.parametrize("name", papers())
def test_stored_runs_have_the_settings_of_their_studies(name):
    """A changed default fails here: state the value of the runs in the settings of the studies."""
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
    """Settings that were stored and differ now; those added later are not stored."""
    for section, table in then.items():
        if section == "tasks":
            for task, settings in table.items():
                yield from changed(settings, now["tasks"][task])
        elif section != "run":
            for key, value in table.items():
                if now.get(section, {}).get(key) != value:
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
    assert stored_file(config, tmp_path) == tmp_path / f"{kept_name(config)}.json.xz"
