"""Errors for misspelt and misplaced settings suggest names, in Python, TOML and commands."""

import re
from typing import Annotated, Literal

import pytest
from pydantic import Field
from pydantic.fields import FieldInfo

from channels.streams import Stream
from wirelessfl.base.errors import ConfigError, DataError
from wirelessfl.base.wording import nearest, needed, shown, suggestion
from wirelessfl.cli import main
from wirelessfl.config import Config
from wirelessfl.data import split

LEAKS = re.compile(r"Input should|_parsing|extra_forbidden|valid (integer|number|string)|pydantic")


@pytest.mark.thorough(every=8)
@pytest.mark.parametrize(
    ("tables", "message"),
    [
        ("[training]\nlr = 0.1", "unknown setting 'lr' in [training]. It belongs to [algorithm]."),
        ("[network]\nrounds = 2", "'rounds' in [network]. It belongs to [training]."),
        (
            "[network]\nantenas = 4",
            "unknown setting 'antenas' in [network]. Do you mean 'antennas'",
        ),
        ("[network]\nrouds = 4", "'rouds' in [network]. Do you mean 'rounds', in [training]?"),
        ("[network]\nlocal-steps = 4", "Do you mean 'local_steps', in [training]?"),
        ("[trainng]\nrounds = 2", "unknown table [trainng]. Do you mean 'training'?"),
        (
            "[algorithm]\nrounds = 2",
            "of algorithm 'hist', which has lr",
        ),
        ("[algorithm]\nlearning_rate = 2", "'learning_rate' of algorithm 'hist', which has lr"),
        ("[algorithm]\nmask_size = 2", "Do you mean 'mask_sizes'?"),
        ("[network]\nmu = 2", "'mu' in [network]. It is a setting of algorithm fedprox"),
        ("[uplink]\nname = 'tmda'", "uplink 'tmda' is unknown. Do you mean 'tdma'?"),
        (
            "[split]\nname = 'NonIID'",
            "split 'NonIID' is unknown. Do you mean 'noniid'? Choose cell-iid, cell-shards,",
        ),
        (
            "[data]\nsplit = 'noniid'",
            "unknown setting 'split' in [data]. It is a table: [split] name = \"...\".",
        ),
        (
            "[model]\nmodel = 'mlp'",
            "unknown setting 'model' of model 'fcnn', which has layers, dropout, hidden. It is a "
            'table: [model] name = "...".',
        ),
        (
            "[data]\nalpha = 0.3",
            "unknown setting 'alpha' in [data]. It is a setting of split dirichlet.",
        ),
        (
            "[network]\nrician_k_db = 3.0",
            "unknown setting 'rician_k_db' in [network]. It is a setting of fading rician.",
        ),
        (
            "[network]\ncpu_hz = [1e9]",
            "network.cpu_hz is [1000000000.0]: give two numbers, LOW,HIGH",
        ),
        ("[network]\ncpu_hz = ['a', 1]", "network.cpu_hz[0] is 'a': give two numbers, LOW,HIGH."),
        ("[model]\nhidden = [3, 0]", " hidden[1] is 0: give whole numbers >= 1, separated by"),
        (
            "[split]\nname = 'dirichlet'\nalpha = inf",
            " alpha is inf: give a finite number > 0 and <= 1e+100.",
        ),
        ("[model]\nlayers = [3]", " layers[0] is 3: give names, separated by commas."),
        (
            "[[task]]\nmodle = 'mlp'",
            "unknown setting 'modle' of task 'digits'. Do you mean 'model'?",
        ),
        (
            "[[task]]\nfoo = 3",
            "unknown setting 'foo' of task 'digits'. Choose algorithm, augment, batch_size, ",
        ),
    ],
)
def test_errors_in_toml_name_setting_value_and_suggestion(
    tables, message, tmp_path, capsys, monkeypatch
):
    """The message is one line, the same for ``Config.from_toml`` and for the command."""
    monkeypatch.chdir(tmp_path)
    own = "[algorithm]" in tables
    name = "fedast" if "[[task]]" in tables else "hist"
    file = tmp_path / "run.toml"
    text = tables.replace("[algorithm]", f"[algorithm]\nname = '{name}'")
    file.write_text(text if own else f"[algorithm]\nname = '{name}'\n{text}")
    with pytest.raises(ConfigError) as caught:
        Config.from_toml(file)
    assert message in f" {caught.value}"
    assert "\n" not in str(caught.value)
    assert not LEAKS.search(str(caught.value))
    assert main(["run", "--config", str(file)]) == 2
    assert capsys.readouterr().err == f"ConfigError: {caught.value}\n"
    assert list(tmp_path.iterdir()) == [file]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["rnu"], "unknown command 'rnu'. Do you mean 'run'? Choose run, resume, sweep,"),
        (["fedavg"], "unknown command 'fedavg'. Do you mean 'run fedavg'?"),
        (["run", "hist", "--round", "3"], "unknown flag '--round'. Do you mean '--rounds'?"),
        (["run", "hist", "--data_set=x"], "unknown flag '--data_set'. Do you mean '--dataset'?"),
        (["run", "hist", "fedavg"], "unexpected argument 'fedavg'."),
        (["run", "hist", "--uplink"], "wirelessfl run: error: argument --uplink: expected one"),
        (["sweep", "hist", "--jbos", "2"], "unknown flag '--jbos'. Do you mean '--jobs'?"),
        (["timeline", "fedast", "--second", "2"], "Do you mean '--seconds'?"),
        (["resume", "x", "--jsn"], "unknown flag '--jsn'. Do you mean '--json'?"),
        (["resume", "x", "--uplink"], "unknown flag '--uplink'. The settings of a run"),
        (["resume", "x", "--lr", "0.1"], "its end may change: --rounds, --target and --max-s"),
        (["bench", "engin"], "unknown benchmark 'engin'. Do you mean 'engine'? Choose all,"),
    ],
)
def test_errors_on_the_command_line_suggest_the_nearest_name(
    words, message, capsys, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as stop:
        main(words)
    assert stop.value.code == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ({"algorithm": "hits"}, "algorithm 'hits' is unknown. Do you mean 'hist'? Choose"),
        ({"algorithm": "FedAvg"}, "Do you mean 'fedavg'?"),
        ({"dataset": "fashion_mnst"}, "data set 'fashion_mnst' is unknown. Do you mean 'fashion-"),
        ({"model": "fccn"}, "model 'fccn' is unknown. Do you mean 'fcnn'?"),
        ({"sessions": "2", "warm-start": "propsed"}, "Do you mean 'proposed'?"),
        (
            {"algorithm": "fedavg", "deadline": "1"},
            'or "ram-fed"; assigner is "none" and algorithm is "fedavg": choose one',
        ),
        ({"local": "fedprx"}, "local 'fedprx' is unknown. Do you mean 'fedprox'?"),
        ({"split": "nonid"}, "split 'nonid' is unknown. Do you mean 'noniid'? Choose"),
        ({"fading": "ricean"}, "fading 'ricean' is unknown. Do you mean 'rician'?"),
        ({"lr-schedule": "polly"}, "lr_schedule 'polly' is unknown. Do you mean 'poly'?"),
        (
            {"algorithm": "fedavg", "mask-sizes": "uniform"},
            'mask_sizes=\'uniform\' is a setting of assigner "partition", and of algorithm "hist"; '
            'assigner is "none" and algorithm is "fedavg": choose one of these, or leave '
            "mask_sizes out.",
        ),
        ({"weighting": "sample"}, "training.weighting is 'sample'. Do you mean 'samples'?"),
        ({"layers": "layers.1,layers.3"}, "not an nn.Linear of FCNN. Do you mean 'layers.4'?"),
    ],
)
def test_unknown_names_on_the_command_line_get_suggestions(
    flags, message, capsys, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    algorithm = flags.pop("algorithm", "hist")
    words = [word for flag, value in flags.items() for word in (f"--{flag}", value)]
    assert main(["run", algorithm, *words]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
    assert not list(tmp_path.iterdir())


def test_every_error_is_reported_once():
    with pytest.raises(ConfigError) as caught:
        Config.from_flags("hist", cells=0, clients=-1, cpu_hz=("a", "b"))
    assert str(caught.value) == (
        "network.cells is 0: give a whole number >= 1. "
        "network.clients is -1: give a whole number >= 1 and <= 1e+14. "
        "network.cpu_hz[0] is 'a': give two numbers, LOW,HIGH."
    )
    with pytest.raises(ConfigError) as caught:
        Config.from_flags("hist", hidden=(0, "a"), dropout=2)
    assert str(caught.value) == (
        "dropout is 2: give a number >= 0 and < 1. "
        "hidden[0] is 0: give whole numbers >= 1, separated by commas."
    )


def test_unknown_splits_of_the_data_api_get_suggestions():
    with pytest.raises(DataError, match=r"'dirichelt' is unknown\. Do you mean 'dirichlet'"):
        split([0, 1], 1, kind="dirichelt", stream=Stream(1))


def test_layers_accept_a_string_or_a_list(config):
    both = [config("hist", layers=own).model.layers for own in ("a, b", ["a", "b"], ("a", "b"))]
    assert both == [("a", "b")] * 3
    task = Config.from_flags(
        "fedast", task="digits,hidden=5,6", delays="shifted-exponential", step_seconds=0.1
    )
    assert task.tasks["digits"].model.hidden == (5, 6)


def test_nearest_names_by_hand():
    assert nearest("round", ["rounds", "seed"]) == "rounds"
    assert nearest("Local-Steps", ["local_steps"]) == "local_steps"
    assert nearest("xyz", ["rounds"]) is None
    assert nearest("hex", ["disc", "hexagonal"]) == "hexagonal"
    assert nearest("hex", ["hexagonal", "hexagonal-2"]) is None
    assert nearest("he", ["hexagonal"]) is None
    assert suggestion(3, ["rounds"]) == ""


@pytest.mark.parametrize(
    ("annotation", "words"),
    [
        (Annotated[int, Field(ge=1, le=9)], "give a whole number >= 1 and <= 9."),
        (Annotated[float | None, Field(gt=0, lt=0.5)], "give a number > 0 and < 0.5."),
        (Literal["a", 2], "choose a, 2."),
        (tuple[float, float] | None, "give two numbers, LOW,HIGH."),
        (
            Annotated[tuple[Annotated[int, Field(ge=2)], ...], Field(min_length=1)],
            "give whole numbers >= 2, separated by commas, at least 1.",
        ),
        (bool, "give true or false."),
        (dict, "give another value."),
    ],
    ids=str,
)
def test_accepted_values_are_described_from_the_type(annotation, words):
    assert needed(FieldInfo.from_annotation(annotation)) == words


def test_shown_values_are_short_and_on_one_line():
    assert shown("a\nb") == r"'a\nb'"
    assert len(shown(list(range(1000)))) == 80
