"""Stored runs are read as they are: finished, interrupted, damaged, or of a user's code."""

import json
import os
from functools import partial

import pytest
import torch
from torch import nn

import wirelessfl
from tests.wirelessfl.results.conftest import rows_of
from wirelessfl.base.errors import ConfigError
from wirelessfl.results.overview import state_of
from wirelessfl.runs.folder.run_folder import RunFolder


def content(folder):
    """Bytes and times of all files of a folder."""
    files = {file: (file.read_bytes(), file.stat().st_mtime_ns) for file in folder.rglob("*.*")}
    return files, os.stat(folder).st_mtime_ns


def accuracy(module, data):
    with torch.no_grad():
        return (module(data.test_inputs).argmax(1) == data.test_labels).float().mean().item()


class _EndError(Exception):
    pass


def test_an_unfinished_run_is_read_without_changing_it(config, tmp_path):
    """The rows behind the checkpoint and an incomplete line remain; the parameters are older."""
    seen = []

    def stop(row):
        seen.append(row)
        if row["round"] == 2:
            raise _EndError

    run_config = config("fedavg", dataset="digits", rounds=4)
    with pytest.raises(_EndError):
        wirelessfl.run(run_config, on_row=stop)
    folder = run_config.run.out
    later = {**seen[-1], "round": 3}
    with (folder / "rows.jsonl").open("a") as file:
        file.write(json.dumps(later) + "\n" + '{"round": 4, "accu')
    before = content(folder)
    found = wirelessfl.load(folder)
    assert (found.finished, state_of(found), found.ended) == (False, "unfinished", None)
    assert found.rows == [*seen, later]
    module = found.model()
    data = wirelessfl.data.load_dataset("digits")
    assert accuracy(module, data) == pytest.approx(seen[-1]["accuracy"]), "of the checkpoint"
    assert "3 of 4 rounds, unfinished" in repr(found)
    assert content(folder) == before
    assert len(wirelessfl.resume(folder).rows) == 5, "it can still be resumed"


@pytest.mark.parametrize("algorithm", ["hist", "fedbuff"])
def test_a_finished_run_equals_its_result(config, algorithm):
    """Rows, parameters, summary and settings are those that the run returned."""
    rounds = {"rounds": 2} if algorithm == "hist" else {"rounds": 4, "requests": 6, "buffer": 2}
    result = wirelessfl.run(config(algorithm, dataset="digits", target=0.5, **rounds))
    found = wirelessfl.load(result.directory)
    assert found.rows == result.rows
    assert found.params.keys() == result.params.keys()
    assert all(torch.equal(found.params[name], v) for name, v in result.params.items())
    assert found.summary() == result.summary()
    assert found.summaries() == result.summaries()
    assert (found.settings, repr(found)) == (result.settings, repr(result))
    assert found.config.used_tables() == result.config.used_tables()
    assert found.finished
    assert accuracy(found.model(), wirelessfl.data.load_dataset("digits")) == pytest.approx(
        found.rows[-1]["accuracy"]
    )


def test_settings_have_the_names_of_flags(stored):
    """Flags of sections and choices; a clash of names has a prefix; without effect: no entry."""
    run = wirelessfl.load(stored("hist", [0.1], cells=2, clients=6, local="fedprox", mu=0.3))
    settings = run.settings
    assert settings["algorithm"] == "hist"
    assert settings["local"] == "fedprox"
    assert (settings["cells"], settings["mu"], settings["split"]) == (2, 0.3, "noniid")
    assert "alpha" not in settings
    assert settings == run.settings_of(None)
    assert run.config.network.cells == 2


def test_a_run_being_written_is_running(stored):
    """The lock of the process that executes it is seen, not taken."""
    path = stored("fedavg", [0.1], finished=False)
    with RunFolder(path).at_work():
        assert state_of(wirelessfl.load(path)) == "running"
    assert state_of(wirelessfl.load(path)) == "unfinished"


def test_code_of_a_user_is_imported_only_for_the_model(config, tmp_path, monkeypatch):
    """Rows, settings and tables need no import; ``model()`` needs trust."""
    source = tmp_path / "own_model.py"
    source.write_text(
        "from torch import nn\n"
        "def make(s, c): return nn.Sequential(nn.Flatten(), nn.Linear(64, c))\n"
    )
    choice = f"{source}:make"
    result = wirelessfl.run(config("fedavg", dataset="digits", model=choice, rounds=1))
    source.rename(tmp_path / "gone.py")
    found = wirelessfl.load(result.directory)
    assert found.settings["model"] == choice
    assert found.summary() == result.summary()
    assert str(wirelessfl.load_all(result.directory).table()).count("fedavg") == 1
    with pytest.raises(ConfigError, match=r"model is '.*own_model.py:make'.* add --trust"):
        found.model()
    (tmp_path / "gone.py").rename(source)
    module = found.model(trust=True)
    assert torch.equal(module[1].weight, result.params["1.weight"])
    about = json.loads((result.directory / "about.json").read_text())
    about["named"][f"model {choice}"][source.name] = "another"
    del about["checksum"]
    (result.directory / "about.json").write_text(json.dumps(about))
    with pytest.warns(UserWarning, match=r"own_model.py has changed since this run"):
        found.model(trust=True)


def test_given_modules_must_be_given_again(config, toy):
    """A model without stored code needs ``module=``, which must have the same layers."""
    made = partial(nn.Sequential, nn.Flatten())
    result = wirelessfl.run(config("fedavg", rounds=1), model=made(nn.Linear(12, 4)), data=toy)
    found = wirelessfl.load(result.directory)
    with pytest.raises(ConfigError, match=r"started with model=.*: give a module.*module=\.\.\."):
        found.model()
    module = found.model(module=made(nn.Linear(12, 4)))
    assert accuracy(module, toy) == pytest.approx(result.rows[-1]["accuracy"])
    with pytest.raises(ConfigError, match=r"1\.bias is \[4\] in the run and \[5\] in the module"):
        found.model(module=made(nn.Linear(12, 5)))
    with pytest.raises(ConfigError, match=r"only the module has 2\.bias"):
        found.model(module=made(nn.Linear(12, 4), nn.Linear(4, 4)))
    with pytest.raises(ConfigError, match=r"module is 3: give an nn\.Module"):
        found.model(module=3)
    built = wirelessfl.run(config("fedavg", rounds=1), data=toy)
    with pytest.raises(ConfigError, match=r"started with data=\.\.\."):
        built.model()


def test_tasks_have_models_of_their_own(config):
    """``task`` chooses the model; parameters are those of the task."""
    flags = {"task": ["digits,name=a,rounds=2", "digits,name=b,rounds=2,model=linear"]}
    result = wirelessfl.run(config("fedast", requests=6, buffer=2, **flags))
    found = wirelessfl.load(result.directory)
    data = wirelessfl.data.load_dataset("digits")
    for task in ("a", "b"):
        want = found.rows_of(task)[-1]["accuracy"]
        assert accuracy(found.model(task=task), data) == pytest.approx(want)
    with pytest.raises(ConfigError, match="several models: give task, one of a, b"):
        found.model()
    with pytest.raises(ConfigError, match="task is 'c', which the run does not have"):
        found.model(task="c")
    cases = wirelessfl.load_all(result.directory).cases(["algorithm", "model"])
    assert [(case.task, case.label) for case in cases] == [
        ("a", "fedast, fcnn, a"),
        ("b", "fedast, linear, b"),
    ]
    assert found.total_rounds == 2


def test_what_cannot_be_read_is_one_line(stored, tmp_path):
    """A folder without a run, changed or damaged rows, and a missing checkpoint."""
    path = stored("fedavg", [0.1, 0.2])
    with pytest.raises(ConfigError, match=r"not a run directory.*contains 1 run: .*load_all"):
        wirelessfl.load(path.parent)
    with pytest.raises(ConfigError, match="does not exist"):
        wirelessfl.load_all(tmp_path / "none")
    rows = path / "rows.jsonl"
    text = rows.read_text()
    rows.write_text(text.replace("0.1", "0.3", 1))
    with pytest.raises(ConfigError, match=r"rows.jsonl has been changed since"):
        wirelessfl.load(path)
    rows.write_text("{}\n" + text)
    with pytest.raises(ConfigError, match="line 1 is damaged"):
        wirelessfl.load(path)
    rows.write_text(text)
    (path / "checkpoint.safetensors").unlink()
    found = wirelessfl.load(path)
    assert [row["accuracy"] for row in found.rows] == [0.1, 0.2]
    with pytest.raises(ConfigError, match=r"safetensors is missing, but there is rows"):
        _ = found.params


def test_one_line_and_a_table_for_notebooks(stored):
    """Algorithm, data, rounds, accuracy, seconds and folder; html is escaped."""
    path = stored("hist", [0.1, 0.9123], cells=2)
    run = wirelessfl.load(path)
    assert repr(run) == f"hist on digits: 1 round, accuracy 0.912, 2.0 s simulated, {path}"
    assert "<th style='text-align:left'>run</th>" in run._repr_html_()
    empty = wirelessfl.load(stored("fedavg", [], finished=False))
    assert "no rows yet" in repr(empty)
    with pytest.raises(ValueError, match="has no rows yet"):
        empty.summary()
    diverged = [row | {"loss": None} for row in rows_of([0.1, 0.1])]
    assert "diverged" in repr(wirelessfl.load(stored("fedavg", [], rows=diverged)))


def test_pandas_is_used_or_named(stored, monkeypatch, tmp_path):
    """``to_pandas`` gives the rows to pandas; without it, one line says what to install."""
    run = wirelessfl.load(stored("fedavg", [0.1, 0.2]))
    monkeypatch.setitem(__import__("sys").modules, "pandas", None)
    with pytest.raises(ImportError, match="pandas is not installed: pip install pandas"):
        run.to_pandas()
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "pandas.py").write_text("DataFrame = list\n")
    monkeypatch.delitem(__import__("sys").modules, "pandas")
    assert run.to_pandas() == run.rows
    frame = wirelessfl.load_all(run.directory).to_pandas()
    assert frame[1] == {"folder": str(run.directory), "seed": 1, **run.rows[1]}
    monkeypatch.delitem(__import__("sys").modules, "pandas")


def test_csv_of_a_run(stored, tmp_path):
    run = wirelessfl.load(stored("fedavg", [0.1, 0.2]))
    run.to_csv(tmp_path / "rows.csv")
    head, first, second = (tmp_path / "rows.csv").read_text().splitlines()
    assert head.split(",")[:2] == ["round", "sim_seconds"]
    assert second.split(",")[head.split(",").index("accuracy")] == "0.2"
    assert first.split(",")[0] == "0"
