"""Arguments of the wrong type give a one-line error that names the argument, before any work."""

import numpy as np
import pytest
import torch
from torch import nn

import wirelessfl
from channels.streams import Stream
from wirelessfl import Config, ConfigError, DataError
from wirelessfl.algorithms.fedavg import FedAvg
from wirelessfl.data import Dataset, load_dataset, split
from wirelessfl.models import build_model
from wirelessfl.runs.build import build
from wirelessfl.runs.timeline import timeline


@pytest.fixture(autouse=True)
def nothing_is_written(tmp_path, monkeypatch):
    """Run each test in an empty folder, and check that it stays empty."""
    monkeypatch.chdir(tmp_path)
    yield
    assert not list(tmp_path.iterdir())


def told(call, kind, *parts):
    """Assert that ``call`` raises ``kind`` with a one-line message that contains all ``parts``."""
    with pytest.raises(kind) as caught:
        call()
    text = str(caught.value)
    assert "\n" not in text
    for part in parts:
        assert part in text, text


OBJECTS = {
    "model": ["fcnn", nn.Linear, 3, lambda x: x],
    "data": [(torch.zeros(2, 3), torch.zeros(2)), "digits", Dataset],
    "network": [4, "hist"],
    "on_row": ["x", 3],
    "on_note": ["x"],
    "shards": [2, None],
    "observers": ["bar", 3],
}
CASES = [(name, thing) for name, things in OBJECTS.items() for thing in things]


@pytest.mark.parametrize(("name", "thing"), CASES)
def test_wrong_objects_given_to_run_resume_and_build(name, thing):
    settings = Config.from_flags("fedavg", clients=4, rounds=1)
    if name not in ("on_row", "on_note", "observers"):
        told(lambda: build(settings, **{name: thing}), ConfigError, f"{name} is ", "give ")
    for call in (
        lambda: wirelessfl.run(settings, **{name: thing}),
        lambda: wirelessfl.resume("here", **{name: thing}),
    ):
        told(call, ConfigError, f"{name} is ", "give ")


@pytest.mark.parametrize("thing", [None, 42, ["hist"], b"hist", FedAvg, torch.zeros(3, 3)])
def test_wrong_settings_and_folders(thing):
    told(lambda: wirelessfl.run(thing), ConfigError, "config is ", "TOML file")
    told(lambda: build(thing), ConfigError, "config is ", "TOML file")
    told(lambda: timeline(thing, 1.0), ConfigError, "config is ", "TOML file")
    if not isinstance(thing, int):
        settings = Config.from_flags("fedast", clients=4)
        told(lambda: timeline(settings, thing), ConfigError, "seconds is ", "finite number > 0")
    told(lambda: wirelessfl.resume(thing), ConfigError, "path is ", "run directory")
    told(lambda: Config.of(thing), ConfigError, "settings are ", "tables by name")
    if thing != ["hist"]:
        told(lambda: Config.from_flags(thing), ConfigError, "algorithm is ", "give a name")
    if not isinstance(thing, bytes):
        told(lambda: Config.from_toml(thing), ConfigError, "configuration is ", "TOML file")


@pytest.mark.parametrize(
    ("tables", "message"),
    [
        ({"algorithm": FedAvg}, '"wirelessfl.algorithms.fedavg:FedAvg"'),
        ({"algorithm": FedAvg()}, "algorithm is FedAvg(lr="),
        ({"algorithm": {"name": FedAvg}}, '"wirelessfl.algorithms.fedavg:FedAvg"'),
        ({"algorithm": "hist", "uplink": object}, "uplink is <class 'object'>: give a name"),
        ({"algorithm": "hist", 3: {}}, "settings are {'algorithm': 'hist', 3: {}}: give tables"),
        (
            {"algorithm": "hist", "training": {"rounds": [1]}},
            "rounds is [1]: give a whole",
        ),
        ({"algorithm": "hist", "model": {"name": nn.Flatten()}}, "model is {'name': Flatten("),
        ({"algorithm": "hist", "model": nn.Flatten()}, "model is Flatten(start_dim=1"),
        ({"algorithm": "hist", "split": 3}, "split is 3: give a name"),
        (
            {"algorithm": "hist", "split": {"name": "dirichlet", "alpha": [1]}},
            "alpha is [1]: give a number > 0 and <= 1e+100.",
        ),
        (
            {"algorithm": "hist", "training": {"rounds": np.zeros((2, 2))}},
            "rounds is array([[0",
        ),
        ({"algorithm": "fedast", "task": 3}, "task is 3: give a list of tables"),
        ({"algorithm": "fedast", "task": [3]}, "task[0] is 3: give a table"),
    ],
)
def test_wrong_objects_in_tables(tables, message):
    told(lambda: Config.of(tables), ConfigError, message)


def test_the_constructor_raises_the_same_errors():
    told(Config, ConfigError, "no algorithm: name one")
    told(lambda: Config(algorithm="hist", trainng={}), ConfigError, "Do you mean 'training'?")
    assert Config.of(Config(algorithm="hist").given_tables()) == Config.from_flags("hist")


X, Y = torch.rand(8, 3), torch.arange(8) % 4


@pytest.mark.parametrize(
    ("change", "parts"),
    [
        ({"name": None}, ["name is None", "give a string"]),
        ({"train_inputs": X.numpy()}, ["train_inputs is a numpy.ndarray", "torch tensors"]),
        ({"test_inputs": [1]}, ["test_inputs is a builtins.list"]),
        ({"train_inputs": X[0]}, ["train_inputs is torch.float32 [3]", "give float32"]),
        ({"train_inputs": X.double()}, ["train_inputs is torch.float64", "give float32"]),
        ({"train_labels": Y.double()}, ["train_labels is torch.float64 [8]", "give int64 [n]"]),
        ({"train_labels": Y.float()}, ["training labels torch.float32 [8]", "same dtype"]),
        ({"train_labels": Y[:, None]}, ["training labels torch.int64 [8, 1]", "same dtype"]),
        ({"train_labels": Y[:5]}, ["8 inputs and 5 labels"]),
        ({"classes": "4"}, ["classes is '4'", "number of labels"]),
        ({"classes": X}, ["classes is tensor(", "number of labels"]),
        ({"groups": "x"}, ["groups is", "one integer"]),
        ({"pad_id": "x"}, ["pad_id is 'x'", "an integer"]),
    ],
)
def test_wrong_data_sets(change, parts):
    given = {"train_inputs": X, "train_labels": Y, "test_inputs": X, "test_labels": Y}
    told(lambda: Dataset(**({"name": "own", "classes": 4} | given | change)), DataError, *parts)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"alpha": "x"}, "alpha is 'x': give a number"),
        ({"kind": 3}, "kind is 3: give a string"),
        ({"stream": None}, "stream is None: give a channels.Stream"),
        ({"clients": "x"}, "clients is 'x': give a number"),
        ({"labels": [[1], [1, 2]]}, "labels is [[1], [1, 2]]: give numbers"),
    ],
)
def test_wrong_arguments_of_splits(change, message):
    given = {"labels": [0, 1, 0, 1], "clients": 2, "kind": "dirichlet", "stream": Stream(1)}
    given |= change
    told(lambda: split(given.pop("labels"), given.pop("clients"), **given), DataError, message)


def test_wrong_arguments_of_other_functions():
    told(lambda: wirelessfl.load(3), ConfigError, "path is 3: give the path")
    told(lambda: wirelessfl.load_all(3), ConfigError, "paths is 3")
    told(lambda: wirelessfl.price(3), ConfigError, "run is 3: give a run or its folder")
    told(lambda: wirelessfl.pilot("hist"), ConfigError, "config is 'hist': give")
    told(
        lambda: wirelessfl.run({"algorithm": "hist"}, loss=3),
        ConfigError,
        "loss is 3: give a function",
    )
    told(lambda: load_dataset(3), ConfigError, "data set is 3")
    told(lambda: load_dataset("mnist", 3), ConfigError, "data_dir is 3")
    told(
        lambda: wirelessfl.model_mask_sizes(None, 3),
        ConfigError,
        "module is None",
        "torch.nn.Module",
    )
    told(
        lambda: wirelessfl.model_mask_sizes(nn.Linear(2, 2), 3), ConfigError, "draw is 3", "Channel"
    )
    call = {"dropout": 0.0, "stream": Stream(1)}
    told(lambda: build_model(nn.Linear, (3,), 4, **call), ConfigError, "model is <class", "a name")
