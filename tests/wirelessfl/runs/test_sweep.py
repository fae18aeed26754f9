"""Sweeps: equal runs are executed once, and a failure does not stop the others."""

import json
import re
import sys
import threading
from pathlib import Path

import pytest

import wirelessfl
from tests.wirelessfl.runs.sweeps import bare, configs
from wirelessfl.base.errors import ConfigError
from wirelessfl.cli import main
from wirelessfl.config import Config
from wirelessfl.data.choice import DatasetChoice
from wirelessfl.runs.folder.identity import settings_hash
from wirelessfl.runs.folder.run_folder import RunFolder
from wirelessfl.runs.kept import is_finished, kept_folder, kept_run
from wirelessfl.runs.sweep import Failure, SweepError, sweep


def test_the_hash_depends_on_settings_but_not_on_paths(tmp_path):
    """The hash depends on all settings, but not on paths or on whether they are resolved."""
    base = settings_hash(Config.from_flags("hist"))
    assert base == settings_hash(Config.from_flags("hist", out=tmp_path, data_dir=tmp_path))
    assert base != settings_hash(Config.from_flags("hist", seed=2))
    assert base != settings_hash(Config.from_flags("hfedavg"))
    assert base == settings_hash(Config(algorithm="hist"))


def test_runs_of_a_sweep_read_a_built_in_data_set_once(tmp_path, monkeypatch):
    """They equal single runs; data sets that alternate, and the user's, are read for each run."""
    read, load = [], DatasetChoice.load

    def counted(choice, data_dir):
        read.append(choice.name)
        return load(choice, data_dir)

    monkeypatch.setattr(DatasetChoice, "load", counted)
    settings = configs(rounds=1, dataset="digits")
    results = sweep(settings, tmp_path / "sweep")
    assert read == ["digits"]
    for config, result in zip(settings, results, strict=True):
        alone = wirelessfl.run(config.with_run({"out": tmp_path / str(config.run.seed)}))
        assert bare([alone]) == bare([result])
        assert alone.params.keys() == result.params.keys()
        assert all(alone.params[name].equal(value) for name, value in result.params.items())
    assert read == ["digits"] * 4
    own = tmp_path / "own.py"
    own.write_text("from wirelessfl.data import load_dataset\ndef data(data_dir):\n")
    own.write_text(own.read_text() + "    return load_dataset('digits', data_dir)\n")
    read.clear()
    mine = configs(rounds=1, dataset=f"{own}:data", seeds=(1, 2))
    unit = configs(rounds=1, dataset="digits", pixels="unit", seeds=(4, 5))
    plain = configs(rounds=1, dataset="digits", seeds=(6,))
    sweep([*mine, *unit, *plain, *unit[:1]], tmp_path / "others")
    assert read == [f"{own}:data", f"{own}:data", "digits", "digits"]


def test_equal_tables_give_one_stored_run(tmp_path):
    """``kept_run`` finds the run of a configuration that is made from the same tables again."""
    tables = {
        "algorithm": "hist",
        "network": {"clients": 8},
        "training": {"rounds": 1, "local_steps": 2},
        "run": {"threads": 1, "chunk": 2},
    }
    first = kept_run(Config(**tables), tmp_path)
    assert (first.config.network.cells, first.config.training.edge_rounds) == (4, 5)
    assert bare([kept_run(Config(**tables), tmp_path)]) == bare([first])
    assert kept_run(Config.of(tables), tmp_path).directory == first.directory


def test_a_sweep_waits_for_a_run_of_another_sweep(tmp_path):
    """It reads the run that the other one has finished, or resumes one that it left."""
    (config,) = configs(seeds=(1,))
    folder, whole, found = kept_folder(config, tmp_path), [], []

    def on_row(row):
        if row["round"] == 1:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        kept_run(config, tmp_path, on_row)
    second = threading.Thread(target=lambda: found.append(kept_run(config, tmp_path)))
    with RunFolder(folder).at_work():
        second.start()
        second.join(0.3)
        assert not found
        assert second.is_alive()
    second.join()
    whole = sweep([config], tmp_path / "alone")
    assert bare(found) == bare(whole) == bare(sweep([config], tmp_path))


def test_a_run_that_another_sweep_has_just_started_is_not_an_error(tmp_path, monkeypatch):
    """Between the look at the folder and the start, the other one creates it."""
    (config,) = configs(seeds=(1,))
    looks, holds_run = [], RunFolder.holds_run

    def late(path):
        looks.append(path)
        if len(looks) == 1:
            sweep([config], tmp_path)
            return False
        return holds_run(path)

    monkeypatch.setattr(RunFolder, "holds_run", staticmethod(late))
    assert kept_run(config, tmp_path).directory == kept_folder(config, tmp_path)


BROKEN = """
from dataclasses import dataclass
from wirelessfl.extend import FedAvg

@dataclass(frozen=True)
class Broken(FedAvg):
    def initial(self, start):
        raise ZeroDivisionError("of the user")
"""


@pytest.mark.thorough(every=8)
@pytest.mark.parametrize("jobs", [1, 2])
def test_other_runs_finish_if_some_fail(tmp_path, jobs, monkeypatch):
    """Errors of this package and of a user's class are reported once per reason."""
    wanted = configs()
    bad = configs(seeds=(7, 8), dataset="mnist", data_dir=tmp_path / "nowhere")
    (tmp_path / "nowhere").write_text("a file where the data should be")
    (tmp_path / "broken.py").write_text(BROKEN)
    monkeypatch.syspath_prepend(tmp_path)
    own = Config.from_flags("broken:Broken", rounds=1, clients=2, seed=9)
    runs = [wanted[0], bad[0], own, bad[1], wanted[1]]
    ended = []
    with pytest.raises(SweepError, match=r"3 of the runs failed.*, seed 7") as caught:
        sweep(runs, tmp_path / "runs", jobs=jobs, on_end=ended.append)
    assert sorted(ended) == [0, 4]
    failures = caught.value.failures
    assert sorted(failure.config.run.seed for failure in failures) == [7, 8, 9]
    assert str(caught.value).count(next(f.reason for f in failures if f.config.run.seed == 7)) == 1
    assert "ZeroDivisionError: of the user" in str(caught.value)
    assert is_finished(wanted[0], tmp_path / "runs")
    assert is_finished(wanted[1], tmp_path / "runs")


def test_failures_for_the_same_reason_are_counted_after_the_first_few():
    failed = [Failure(config, "no data") for config in configs(seeds=(1, 2, 3, 4, 5))]
    message = str(SweepError(failed))
    assert message.startswith(f"all {len(failed)} runs failed. ")
    assert message.endswith(f"and {len(failed) - 3} more: no data")
    assert message.count("(") == 3


@pytest.mark.parametrize("jobs", [1, 2])
def test_an_error_in_on_row_is_not_a_failed_run(tmp_path, jobs):
    """An error raised by ``on_row`` is not reported as a failed run."""

    def on_row(place, row):
        raise KeyError("of the caller")

    with pytest.raises(KeyError, match="of the caller"):
        sweep(configs(), tmp_path, jobs=jobs, on_row=on_row)


def test_invalid_arguments_are_refused(tmp_path, monkeypatch):
    """A root below a file, torchrun, jobs=0 and a missing Ray are refused."""
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match="is not a folder"):
        sweep(configs(), tmp_path / "file" / "runs")
    monkeypatch.setenv("RANK", "0")
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(ConfigError, match="torchrun"):
        sweep(configs(), tmp_path)
    monkeypatch.delenv("RANK")
    with pytest.raises(ConfigError, match="jobs is 0"):
        sweep(configs(), tmp_path, jobs=0)
    with pytest.raises(ConfigError, match=r"configs\[1\] is 'hist': give a list of Config objects"):
        sweep([*configs(seeds=(1,)), "hist"], tmp_path)
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(ConfigError, match=r"pip install 'wirelessfl\[ray\]'"):
        sweep(configs(), tmp_path, ray="local")


@pytest.mark.thorough(every=8)
def test_the_folder_of_a_sweep_is_that_of_its_settings(tmp_path, monkeypatch, capsys):
    """``out`` of the configurations, or of the base file; a folder that is given has priority."""
    monkeypatch.chdir(tmp_path)
    first = configs(rounds=1, seeds=(1,), out="one")
    assert sweep(first)[0].directory.parent == Path("one")
    assert sweep(first, "two")[0].directory.parent == Path("two")
    with pytest.raises(ConfigError, match="out is one and three: a sweep has one folder"):
        sweep([*first, *configs(rounds=1, seeds=(2,), out="three")])
    Path("base.toml").write_text(first[0].to_toml())
    assert main(["sweep", "--config", "base.toml", "--quiet"]) == 0
    assert capsys.readouterr().out.endswith("runs: one\n")
    assert not Path("runs").exists()


COMMAND = ["sweep", "hist", "--clients", "8", "--local-steps", "2", "--rounds", "1"]


def test_the_command_runs_the_product_of_its_lists(tmp_path, capsys):
    """The command runs all combinations of the listed values."""
    words = [*COMMAND, "--cells", "2,4", "--seed", "1,2", "--cpu-hz", "1e9,2e9"]
    assert main([*words, "--out", str(tmp_path), "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [(row["cells"], row["seed"]) for row in rows] == [(2, 1), (2, 2), (4, 1), (4, 2)]
    assert len({row["directory"] for row in rows}) == 4
    assert "cpu_hz" not in rows[0]  # one value, which is a pair
    places = ["--out", str(tmp_path), "--data-dir", str(tmp_path)]  # one value each
    assert main([*words, *places, "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == rows
    assert main([*words, "--out", str(tmp_path)]) == 0
    assert "cells" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--cells", "2,9"], "cells=9 exceeds clients=8"),
        (["--cpu-hz", "1e9,2e9;1e9"], "cpu_hz"),
        (["--jobs", "0"], "jobs is 0"),
    ],
)
def test_all_settings_are_checked_before_the_first_run(tmp_path, capsys, words, message):
    out = tmp_path / "out"
    assert main([*COMMAND, *words, "--out", str(out)]) == 2
    assert message in capsys.readouterr().err
    assert not out.exists()


def test_the_hash_contains_only_non_default_settings():
    """Only settings that differ from defaults change the hash, so new settings can be added."""
    plain = Config.from_flags("hist", clients=8)
    assert settings_hash(plain) == settings_hash(Config.from_flags("hist", clients=8, rounds=30))
    others = (
        {"clients": 9},
        {"clients": 8, "seed": 2},
        {"clients": 8, "lr": 0.02},
        {"clients": 8, "local": "fadamgc"},
        {"clients": 8, "local": "local-adam"},
        {"clients": 8, "uplink": "ofdma"},
        {"clients": 8, "uplink": "aircomp", "convention": "physical"},
        {"clients": 8, "uplink": "aircomp"},
        {"clients": 8, "chunk": 3},
    )
    hashes = [settings_hash(Config.from_flags("hist", **flags)) for flags in others]
    assert len({settings_hash(plain), *hashes}) == 1 + len(others)
    assert settings_hash(Config.from_flags("hfedavg", clients=8)) != settings_hash(plain)
    assert settings_hash(Config.from_flags("hist", clients=8, out="x")) == settings_hash(plain)


def test_the_hash_ignores_task_settings_equal_to_the_runs():
    """Values equal to the run's do not change the hash; naming an algorithm always does."""
    run = {"split": "dirichlet", "alpha": 0.5, "lr": 0.1, "clients": 8, "requests": 4}

    def hash_of(words):
        return settings_hash(Config.from_flags("fedast", **run, task=["digits", words]))

    plain = hash_of("mnist")
    assert plain == hash_of("mnist,split=dirichlet,alpha=0.5,lr=0.1,requests=4,model=fcnn")
    others = [
        "mnist,alpha=0.4",
        "mnist,split=natural",
        "mnist,requests=3",
        "mnist,algorithm=fedast",
        "mnist,algorithm=fedast,lr=0.1",
        "mnist,algorithm=fedavg,lr=0.1",
        "mnist,algorithm=fedavg",
    ]
    assert len({plain, *map(hash_of, others)}) == 1 + len(others)


def test_a_finished_run_with_another_trace_is_not_reused(tmp_path):
    """A run with an edited trace has a folder of its own; the first one can still be read."""
    trace = tmp_path / "trace.csv"
    trace.write_text("client,join,leave\n0,0,\n1,0,\n")
    small = {"clients": 4, "rounds": 1, "local_steps": 1, "threads": 1}
    config = Config.from_flags("fedavg", sessions=2, presence="trace", trace=trace, **small)
    first = kept_run(config, tmp_path / "runs")
    assert kept_run(config, tmp_path / "runs").rows == first.rows
    assert is_finished(config, tmp_path / "runs")
    trace.write_text("client,join,leave\n0,0,\n2,0,\n")
    assert not is_finished(config, tmp_path / "runs")
    (second,) = sweep([config], tmp_path / "runs")
    assert second.directory != first.directory
    assert bare([second]) != bare([first])
    notes = []
    assert wirelessfl.resume(first.directory, on_note=notes.append).rows == first.rows
    (note,) = notes
    assert note.startswith(f"trace {trace}: trace.csv has changed since this run")
    trace.unlink()
    assert wirelessfl.resume(first.directory).rows == first.rows


def test_a_run_killed_while_its_settings_were_written_is_started_again(tmp_path):
    """An unfinished file does not block the folder; other files do."""
    (config,) = configs(rounds=1, seeds=(1,))
    folder = kept_folder(config, tmp_path)
    folder.mkdir()
    draft = folder / ".0123456789abcdef.part"
    draft.write_text("[algor")
    (result,) = sweep([config], tmp_path)
    assert result.directory == folder
    assert not draft.exists()
    assert is_finished(config, tmp_path)
    (tmp_path / "other").mkdir()
    (tmp_path / "other/notes.part").write_text("")
    with pytest.raises(ConfigError, match="it is not an empty folder"):
        wirelessfl.run(config.with_run({"out": tmp_path / "other"}))


def test_the_folder_of_a_run_is_no_folder_for_a_sweep(tmp_path):
    (config,) = configs(rounds=1, seeds=(1,))
    folder = wirelessfl.run(config.with_run({"out": tmp_path / "run"})).directory
    before = sorted(folder.iterdir())
    with pytest.raises(ConfigError, match=r"out is .*, which contains a run, and a sweep needs"):
        sweep([config], folder)
    assert sorted(folder.iterdir()) == before


def test_a_run_with_other_defaults_is_not_reused(tmp_path):
    """A stored run with the same hash is refused if changed defaults gave it other settings."""
    config = Config.from_flags("fedavg", clients=4, rounds=1, local_steps=1, threads=1)
    folder = kept_run(config, tmp_path).directory
    assert is_finished(config, tmp_path)
    directory = RunFolder(folder)
    settings = directory.config_file.read_text()

    def store(line):
        """As if the run had been started with these settings."""
        assert "server_lr = 1.0\n" in settings
        directory.config_file.write_text(settings.replace("server_lr = 1.0\n", line))
        tensors, state = directory.load()
        state["fingerprint"] = directory.fingerprint()
        directory.save(tensors, state)

    store("")
    assert is_finished(config, tmp_path), "as if stored before the setting existed"
    store("server_lr = 0.5\n")
    assert not is_finished(config, tmp_path)
    with pytest.raises(ConfigError, match="contains a run made with other default settings"):
        kept_run(config, tmp_path)


def test_failed_runs_are_named_by_the_settings_that_vary(tmp_path):
    """Not by others, even if they are given."""
    flags = {"dataset": "mnist", "data_dir": tmp_path, "clients": 8}
    runs = [
        Config.from_flags("hfedavg", edge_rounds=edge, local_steps=steps, **flags)
        for edge in (1, 4)
        for steps in (5, 20)
    ]
    with pytest.raises(SweepError) as caught:
        sweep(runs, tmp_path / "runs")
    named = re.findall(r"hfedavg \(\w{16}, ([^)]*)\)", str(caught.value))
    assert named == [
        "local_steps 5, edge_rounds 1",
        "local_steps 20, edge_rounds 1",
        "local_steps 5, edge_rounds 4",
    ]


def test_json_has_the_finished_and_the_failed_runs(tmp_path, capsys):
    """In the order of the values; the exit status tells of the failure."""
    words = "sweep fedavg --clients 4 --rounds 1 --local-steps 1 --split noniid,cell-shards".split()
    words += ["--shards", "1,2000", "--json", "--out", str(tmp_path / "runs")]
    assert main(words) == 2
    output = capsys.readouterr()
    entries = json.loads(output.out)
    failed = [entry["shards"] for entry in entries if "error" in entry]
    assert [entry["shards"] for entry in entries] == [1, 2000, 1, 2000]
    assert failed == [2000, 2000]
    assert all("cannot be cut" in entry["error"] for entry in entries if entry["shards"] == 2000)
    assert all(entry["round"] == 1 for entry in entries if entry["shards"] == 1)
    assert output.err.splitlines()[-1].startswith("TrainingError: 2 of the runs failed")
    assert main([word for word in words if word != "--json"]) == 2
    assert capsys.readouterr().out.count("\n│ noniid") == 1


def test_a_damaged_run_does_not_hide_the_others(tmp_path):
    """A finished run whose rows were edited fails with the name of its file; nothing trains."""
    wanted = configs(rounds=1)
    whole = sweep(wanted, tmp_path)
    rows = whole[1].directory / "rows.jsonl"
    rows.write_text(rows.read_text().replace('"round": 1', '"round": 2'))
    trained = []
    with pytest.raises(SweepError, match="has been changed since the checkpoint") as caught:
        sweep([*wanted, wanted[1]], tmp_path, on_row=lambda place, row: trained.append(row))
    outcomes = caught.value.outcomes
    assert [isinstance(outcome, Failure) for outcome in outcomes] == [False, True, False, True]
    assert bare([outcomes[0], outcomes[2]]) == bare([whole[0], whole[2]])
    assert len(caught.value.failures) == 1, "equal settings fail once"
    assert not trained
