"""Files of finished runs: complete, read without data, and damaged ones refused."""

import json
import lzma
from contextlib import nullcontext

import pytest

import wirelessfl
from experiments.runs import Planned, Store, make_runs, stored_file
from wirelessfl.base.errors import DataError
from wirelessfl.config import Config
from wirelessfl.results.archive import StoredRun
from wirelessfl.runs.folder import about
from wirelessfl.runs.sweep import SweepError


def config(**flags):
    small = {"clients": 4, "rounds": 2, "local_steps": 1, "threads": 1, "chunk": 2}
    return Config.from_flags("fedavg", **small | flags)


@pytest.fixture(scope="module")
def result(tmp_path_factory):
    folder = tmp_path_factory.mktemp("run") / "out"
    return wirelessfl.run(config().with_run({"out": folder}))


def test_a_stored_run_is_the_run(result, tmp_path):
    """Rows, settings, versions and seconds are stored; reading gives an equal object."""
    run = StoredRun.of(result)
    file = stored_file(config(), tmp_path)
    run.save(file)
    assert StoredRun.load(file) == run
    assert [file] == list(tmp_path.iterdir())
    assert file.name == f"fedavg-{run.about['settings']}.json.xz"
    dropped = {"wall_seconds", "numerics"}
    assert run.rows == [{k: v for k, v in row.items() if k not in dropped} for row in result.rows]
    assert run.about["numerics"] == about.NUMERICS
    assert run.current
    assert run.seed == 1
    assert run.settings["network"]["clients"] == 4
    assert run.settings["uplink"] == {"name": "tdma", "order": "slots"}
    assert run.machine["chunk"] == 2
    assert 0 < run.seconds < 600


def test_rows_with_different_fields_are_stored(result, tmp_path):
    """Rows may have different fields, None and nested values."""
    run = StoredRun.of(result)
    rows = [
        {"round": 0, "a": None},
        {"round": 1, "b": {"1": 0.1}},
        {"round": 2, "a": 0.30000000004},
    ]
    other = StoredRun(run.settings, rows, run.about, run.machine, run.seconds)
    other.save(tmp_path / "x.json.xz")
    assert StoredRun.load(tmp_path / "x.json.xz").rows == rows


NO_SETTINGS = b'{"format": 1, "columns": {}, "fields": [], "kinds": []}'
SHORT = (
    b'{"format": 1, "columns": {"round": [0]}, "fields": [["round"]], "kinds": [0, 0], '
    b'"settings": {}, "about": {}, "machine": {}, "seconds": 1.0}'
)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"nonsense",
        *map(lzma.compress, [b'{"format": 1}', b"[1]", NO_SETTINGS, SHORT, b'{"format": 99}']),
    ],
)
def test_damaged_files_are_named(content, tmp_path):
    file = tmp_path / "fedavg-1.json.xz"
    file.write_bytes(content)
    with pytest.raises(DataError, match=r"fedavg-1\.json\.xz is not a file of a finished run"):
        StoredRun.load(file)


def test_runs_of_an_older_version_are_found_and_made_again(tmp_path, monkeypatch):
    """A run of an older version of the results is read, and missing."""
    store = Store(tmp_path / "rows", tmp_path / "runs")
    planned = [Planned("a", config())]
    store.make(planned)
    assert store.missing(planned) == []
    for module in ("wirelessfl.results.archive", "experiments.runs", "wirelessfl.runs.execution"):
        monkeypatch.setattr(f"{module}.NUMERICS", about.NUMERICS + 1)
    monkeypatch.setattr(about, "NUMERICS", about.NUMERICS + 1)
    (old,) = store.found(config())
    assert not old.current
    assert store.missing(planned) == planned
    store.make(planned)
    (new,) = store.found(config())
    assert new.current
    assert new.rows == old.rows


class HaltError(Exception):
    pass


@pytest.mark.thorough(every=8)
@pytest.mark.parametrize("when", ["in training", "before it is stored"])
def test_an_interrupted_run_goes_on(when, tmp_path, monkeypatch):
    """It goes on from its checkpoint, or is read if it had finished; its folder is removed."""
    rows, small = tmp_path / "rows", config(rounds=4, checkpoint_seconds=0)

    def halt(*arguments):
        if when == "before it is stored" or arguments[1]["round"] == 2:
            raise HaltError

    with monkeypatch.context() as patched:
        if when == "in training":
            patched.setattr("experiments.runs.sweep_progress", lambda *a: nullcontext(halt))
        else:
            patched.setattr(StoredRun, "save", halt)
        with pytest.raises(HaltError):
            make_runs([Planned("a", small)], [rows], tmp_path / "runs")
    assert not rows.exists()
    (folder,) = (tmp_path / "runs").iterdir()
    written = len((folder / "rows.jsonl").read_text().splitlines())
    assert written == (3 if when == "in training" else 5)
    date = json.loads((folder / "about.json").read_text())["date"]
    seen = []
    monkeypatch.setattr(
        "experiments.runs.sweep_progress",
        lambda *a: nullcontext(lambda place, row: seen.append(row["round"])),
    )
    make_runs([Planned("a", small)], [rows], tmp_path / "runs")
    assert not folder.exists()
    run = StoredRun.load(stored_file(small, rows))
    assert [row["round"] for row in run.rows] == [0, 1, 2, 3, 4]
    assert run.about["date"] == date
    assert 0 not in seen, "it goes on from its checkpoint"
    make_runs([Planned("a", small)], [tmp_path / "whole"], tmp_path / "runs")
    assert StoredRun.load(stored_file(small, tmp_path / "whole")).rows == run.rows


def test_a_run_on_data_of_a_function_is_stored(tmp_path, monkeypatch):
    """Studies may name functions of their own, which are trusted when the run is read."""
    (tmp_path / "posts.py").write_text(
        "from wirelessfl.data import load_dataset\n\n"
        "def digits(data_dir=None):\n    return load_dataset('digits', data_dir)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    planned = config(dataset="posts:digits")
    make_runs([Planned("a", planned)], [tmp_path / "rows"], tmp_path / "runs")
    assert len(StoredRun.load(stored_file(planned, tmp_path / "rows")).rows) == 3


def test_a_run_of_two_papers_is_executed_once(tmp_path):
    """It is stored for each paper, and its scratch folder is removed."""
    rows = [tmp_path / "a", tmp_path / "b"]
    make_runs([Planned("a", config()), Planned("b", config())], rows, tmp_path / "runs")
    first, second = (StoredRun.load(stored_file(config(), folder)) for folder in rows)
    assert first == second
    assert not list((tmp_path / "runs").iterdir())


def test_runs_that_ended_before_an_error_leave_no_scratch(tmp_path):
    """A failure of one run removes the folders of the others, which are stored."""
    (tmp_path / "none").write_text("")
    bad = config(dataset="mnist", data_dir=tmp_path / "none")
    rows = [tmp_path / "rows"] * 2
    with pytest.raises(SweepError):
        make_runs([Planned("a", config()), Planned("b", bad)], rows, tmp_path / "runs")
    assert stored_file(config(), rows[0]).is_file()
    assert not [
        folder for folder in (tmp_path / "runs").iterdir() if (folder / "rows.jsonl").exists()
    ]
