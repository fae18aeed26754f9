"""New joules of stored runs over the air: those of the runs, and nothing else changes."""

from dataclasses import replace

import pytest

import wirelessfl
from experiments.repriced import MARK, over_air, reprice, repriced
from experiments.runs import stored_file
from wirelessfl.config import Config
from wirelessfl.errors import ConfigError
from wirelessfl.results.archive import StoredRun

SMALL = {"dataset": "digits", "rounds": 2, "local_steps": 1, "hidden": (8,), "uplink": "aircomp"}
CELLS = ("hfedavg", {"cells": 2, "clients": 4, "eval_every": 2})
SESSIONS = (
    "fedavg",
    {"clients": 4, "sessions": 3, "warm_start": "proposed", "presence": "labels"},
)


def stored(tmp_path, algorithm, **flags):
    config = Config.from_flags(algorithm, **SMALL | flags, threads=1, out=tmp_path / algorithm)
    return StoredRun.of(wirelessfl.run(config)), config


def with_joules(run, joules):
    return replace(run, rows=[row | {"joules": joules} for row in run.rows])


@pytest.mark.parametrize(("algorithm", "flags"), [CELLS, SESSIONS], ids=["cells", "sessions"])
def test_joules_are_those_of_the_run(algorithm, flags, tmp_path):
    """Of a run with wrong joules, all rows become those of the run; sessions have trial rounds."""
    run, _ = stored(tmp_path, algorithm, **flags)
    found = repriced(with_joules(run, 7.0))
    assert found.run.rows == run.rows
    assert found.factor == run.rows[-1]["joules"] / 7
    assert found.difference == 0
    assert found.run == replace(run, about=run.about | {MARK: found.run.about[MARK]})


def test_files_are_repriced_once(tmp_path, capsys):
    """Files over the air change, others and those with other seconds do not."""
    run, config = stored(tmp_path, *CELLS[:1], **CELLS[1])
    rows = tmp_path / "paper" / "rows"
    file, other, wrong = stored_file(config, rows), rows / "b-1.json.xz", rows / "c-1.json.xz"
    with_joules(run, 7.0).save(file)
    wired = replace(with_joules(run, 7.0), settings=run.settings | {"uplink": {"name": "tdma"}})
    wired.save(other)
    late = [row | {"sim_seconds": 2 * row["sim_seconds"]} for row in run.rows]
    replace(run, rows=late).save(wrong)
    before = other.read_bytes(), wrong.read_bytes()
    (left,) = reprice(tmp_path)
    assert "paper/c-1: sim_seconds after round" in left
    assert "1 runs have new joules" in capsys.readouterr().out
    assert StoredRun.load(file).rows == run.rows
    assert (other.read_bytes(), wrong.read_bytes()) == before
    content = file.read_bytes()
    reprice(tmp_path)
    assert file.read_bytes() == content


def test_runs_without_a_price_are_refused(tmp_path):
    """Requests have no price without training."""
    run, _ = stored(tmp_path, *CELLS[:1], **CELLS[1])
    tables = Config.from_flags("fedasync", clients=4, dataset="digits").given_tables()
    with pytest.raises(ConfigError, match="without training"):
        repriced(replace(run, settings=tables))


def test_tasks_over_the_air_are_found(tmp_path):
    run, _ = stored(tmp_path, *CELLS[:1], **CELLS[1])
    task = {"uplink": {"name": "aircomp"}}
    settings = {"uplink": {"name": "tdma"}}
    assert over_air(run)
    assert not over_air(replace(run, settings=settings))
    assert over_air(replace(run, settings=settings | {"tasks": {"a": task}}))
