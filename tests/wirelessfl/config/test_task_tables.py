"""Tables of tasks: equal settings from tables, flags and TOML; one-line errors."""

import re

import pytest

import wirelessfl
from wirelessfl.base.errors import ConfigError
from wirelessfl.cli import main
from wirelessfl.config import Config
from wirelessfl.config.choices import ENDLESS
from wirelessfl.runs.folder.identity import settings_hash
from wirelessfl.runs.kept import kept_run

TWO = {
    "task": [
        "digits,requests=7,step_seconds=0.1",
        "digits,model=mlp,lr=0.05,requests=5,step_seconds=0.3,name=slow",
    ],
    "clients": 9,
    "lr": 0.1,
    "batch_size": 6,
    "rounds": 2,
    "delays": "shifted-exponential",
}


def test_equal_tables_have_the_same_hash(tmp_path):
    """Tables as strings or numbers, from flags or TOML, with or without defaults, are equal."""
    shared = {k: v for k, v in TWO.items() if k != "task"}
    one = Config.from_flags(
        "fedast", **shared, task=["digits,lr=0.05,hidden=30,20,name=a,step_seconds=0.1"]
    )
    table = {"dataset": "digits", "lr": 0.05, "hidden": [30, 20], "name": "a", "batch_size": 6}
    table["step_seconds"] = "1e-1"
    two = Config.from_flags("fedast", **shared, task=[table])
    assert settings_hash(one) == settings_hash(two)
    (tmp_path / "config.toml").write_text(one.to_toml(), encoding="utf-8")
    assert settings_hash(Config.from_toml(tmp_path / "config.toml")) == settings_hash(one)
    other = Config.from_flags(
        "fedast", **shared, task=["digits,lr=0.06,hidden=30,20,name=a,step_seconds=0.1"]
    )
    assert settings_hash(other) != settings_hash(one)
    for _ in range(2):  # executed, then read from disk
        found = kept_run(one, tmp_path / "kept")
    assert found.rows


def test_merges_are_unlimited_with_a_time_limit_or_targets():
    table = "digits,step_seconds=0.1"
    shared = {"delays": "shifted-exponential", "task": [table]}
    assert Config.from_flags("fedast", **shared).training.rounds == 600  # 30 n / b
    assert Config.from_flags("fedast", **shared, max_seconds=9).training.rounds == ENDLESS
    assert Config.from_flags("fedast", **shared, max_seconds=9, rounds=7).training.rounds == 7
    shared["task"] = [table + ",target=0.9"]
    assert Config.from_flags("fedast", **shared).training.rounds == ENDLESS
    assert Config.from_flags("fedavg", max_seconds=9).training.rounds == 30


def test_tables_flags_and_toml_give_the_same_tasks(tmp_path):
    by_flags = Config.from_flags("fedast", **TWO)
    file = tmp_path / "config.toml"
    file.write_text(by_flags.to_toml(), encoding="utf-8")
    assert Config.from_toml(file).to_toml() == by_flags.to_toml()
    own = by_flags.tasks["slow"]
    assert own.named("model") == "mlp"
    assert own.algorithm.lr == 0.05
    assert own.schedule.requests == 5
    assert by_flags.tasks["digits"].algorithm.lr == 0.1


@pytest.mark.parametrize(
    ("algorithm", "more", "words"),
    [
        ("fedavg", {"delays": None}, 'trains one model of algorithm "fedavg"'),
        ("fedast", {"uplink": "aircomp"}, "clients send at the same time"),
        ("fedast", {"task": ["digits,seed=3"]}, "a setting of the whole run"),
        ("fedast", {"task": ["digits,option=D"]}, "a setting of the whole run"),
        ("sync-bayes-st", {"task": ["digits,fairness=2"]}, "a setting of the whole run"),
        ("sync-ucb-st", {"task": ["digits,first=2"]}, "a setting of the whole run"),
        ("fedast", {"task": ["digits,modle=mlp"]}, "Do you mean 'model'"),
        ("fedast", {"task": ["digits,lr=0"]}, "task 'digits': lr is"),
        ("fedast", {"task": ["digits,lr="]}, "give DATASET,setting=value"),
        ("fedast", {"task": ["digits,lr=1,lr=2"]}, "sets lr twice"),
        ("fedast", {"task": ["digits,"]}, "give DATASET,setting=value"),
        ("fedast", {"task": [{"dataset": 3}]}, "dataset of a task is 3"),
        ("fedast", {"task": [{"name": ""}]}, "name of a task is ''"),
        ("fedast", {"busy_clients": 10}, "busy_clients=10 exceeds the 9 clients"),
        ("fedast", {"task": ["digits"]}, "has no published step time"),
        ("fedast", {"task": ["digits,name=a", "digits,name=a"]}, "two tasks are called 'a'"),
        ("sync-st", {"availability": 0.2, "clients_per_round": 5, "task": []}, "are available"),
    ],
)
def test_conflicts_are_refused_in_one_line(algorithm, more, words, tmp_path):
    settings = TWO | {"out": tmp_path / "run"} | more
    if settings["task"] == []:
        settings |= {"dataset": "digits", "step_seconds": 0.1}
        del settings["task"]
    with pytest.raises(ConfigError, match=re.escape(words)) as caught:
        wirelessfl.run(Config.from_flags(algorithm, **settings))
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("said", ['[task]\ndataset = "digits"', "task = []"])
def test_tasks_that_are_not_a_list_of_tables_are_explained(tmp_path, said):
    file = tmp_path / "config.toml"
    file.write_text(f'algorithm = "fedast"\n{said}\n', encoding="utf-8")
    with pytest.raises(ConfigError, match=r"\[\[task\]\]"):
        Config.from_toml(file)


def test_sweeps_without_effect_and_invalid_timelines_are_refused(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    words = ["sweep", "fedast", "--delays", "shifted-exponential", "--requests", "4,8"]
    assert main([*words, "--task", "digits,step_seconds=0.1,requests=5"]) == 2
    assert "every task sets its own" in capsys.readouterr().err
    for more, said in (
        (["--task", "nosuch,step_seconds=0.1"], "data set 'nosuch' is unknown"),
        (["--task", "digits,step_seconds=0.1", "--picture", "a.txt"], "picture is a.txt"),
        (["--task", "digits,step_seconds=0.1", "--out", "b"], "out=b conflicts with timeline"),
        (["--task", "digits,step_seconds=0.1", "--seconds", "-1"], "seconds is -1.0"),
    ):
        assert main(["timeline", "fedast", "--delays", "shifted-exponential", *more]) == 2
        assert said in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_a_picture_that_cannot_be_written_is_refused(tmp_path, capsys, monkeypatch):
    """The folder is checked before the simulation; other errors of writing are one line too."""
    words = ["timeline", "fedast", "--delays", "shifted-exponential", "--step-seconds", "0.1"]
    words += ["--seconds", "1", "--json", "--picture"]
    (tmp_path / "a.png").mkdir()
    assert main([*words, str(tmp_path / "a.png")]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert f"picture is {tmp_path}/a.png: Is a directory. Choose another file." in err
    (tmp_path / "file").write_text("")
    monkeypatch.setattr("wirelessfl.runs.timeline.timeline", None)  # must not be called
    assert main([*words, str(tmp_path / "file/b.png")]) == 2
    assert f"picture is {tmp_path}/file: {tmp_path}/file is not a folder" in capsys.readouterr().err


def test_given_data_conflict_with_task_tables(toy, tmp_path):
    with pytest.raises(ConfigError, match="name it in their tables"):
        wirelessfl.run(Config.from_flags("fedast", **TWO, out=tmp_path / "run"), data=toy)
