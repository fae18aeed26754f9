"""Own data, splits and networks in runs, from Python and by name, and what resume needs."""

import importlib
import json
import sys
from dataclasses import dataclass, replace

import numpy as np
import pytest
import torch
from torch import nn
from torch.utils.data import Dataset as TorchDataset

import wirelessfl
from channels import Network, Rayleigh, load_network
from wirelessfl.base.errors import ConfigError
from wirelessfl.cli import main
from wirelessfl.config import Config
from wirelessfl.data.partition import ClientPartition
from wirelessfl.data.splits import Split
from wirelessfl.runs.build import build
from wirelessfl.runs.folder.given_files import read_partition

LISTS = [[5, 3, 8, 200], list(range(0, 90, 2)), list(range(1, 60)), [239, 0]]


@dataclass(frozen=True)
class Listed(Split):
    """The same lists as a split of a user."""

    def deal(self, samples, cell_of, stream):
        return [np.sort(mine) for mine in LISTS]


def two_cells(stream):
    return Network(
        np.repeat([0, 1], 3), cpu_hz=stream.generator().uniform(1e9, 4e9, 6), gain_db=-100.0
    )


def one_cell():
    return Network(np.zeros(4, dtype=int), cpu_hz=1e9, gain_db=-100.0, antennas=2)


NAMED = f"{__name__}:two_cells"
STAR = f"{__name__}:one_cell"
PLAIN = {"rounds": 1, "local_steps": 1, "network": True}


def arrays(toy):
    return (
        toy.train_inputs.double().numpy(),
        toy.train_labels.numpy().astype(np.uint8),
        toy.test_inputs.tolist(),
        toy.test_labels.tolist(),
    )


def test_arrays_train_as_the_data_set(config, toy, same):
    one = wirelessfl.run(config("fedavg", rounds=2), data=toy)
    two = wirelessfl.run(config("fedavg", rounds=2), data=arrays(toy))
    same(one, two)
    assert wirelessfl.price(one.config.changed(), data=arrays(toy), rounds=1)


def test_notes_of_own_data_are_said(config, toy):
    notes = []
    data = replace(toy, train_inputs=toy.train_inputs.abs() * 255 / toy.train_inputs.abs().max())
    data = replace(data, notes=("something was changed.",))
    wirelessfl.run(config("fedavg", rounds=1), data=data, on_note=notes.append)
    assert notes[0] == "data set toy: something was changed."
    assert "divide by 255" in notes[1]


class Shaken(TorchDataset):
    """Samples with noise from torch's global generator."""

    def __init__(self, part):
        self.inputs, self.labels = part

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, place):
        x = self.inputs[place]
        return x + 0.1 * torch.randn(x.shape), self.labels[place]


def test_random_samples_are_repeated(config, toy, same, halt_at):
    """Runs of one seed are equal, and a run is resumed with the same object."""
    parts = (toy.train_inputs, toy.train_labels), (toy.test_inputs, toy.test_labels)
    data = tuple(map(Shaken, parts))
    whole = wirelessfl.run(config("fedavg"), data=data)
    assert whole.rows[-1]["loss"] != wirelessfl.run(config("fedavg"), data=toy).rows[-1]["loss"]
    settings = config("fedavg", checkpoint_seconds=0)
    with pytest.raises(KeyboardInterrupt):
        wirelessfl.run(settings, data=data, on_row=halt_at(2))
    same(wirelessfl.resume(settings.run.out, data=data), whole)


def labelled(toy, change):
    return replace(
        toy,
        train_labels=change(toy.train_labels),
        test_labels=change(toy.test_labels),
        classes=None,
    )


UNFIT = {
    "from 1": (lambda y: y + 1, {}, r"return logits .*no sample has the label 0.*subtract 1"),
    "one-hot": (lambda y: torch.eye(4)[y], {}, r"argmax\(1\)\. If not, choose split"),
    "one-hot iid": (lambda y: torch.eye(4)[y], {"split": "iid"}, "argmax.*If not, choose loss"),
    "column": (lambda y: y[:, None].float(), {}, r"labels\[:, 0\] as int64\. If not, choose split"),
    "floats": (lambda y: y.float(), {"split": "iid"}, "labels as int64. If not, choose loss"),
}


@pytest.mark.parametrize("case", UNFIT)
def test_labels_that_do_not_fit_have_a_remedy(toy, case):
    change, flags, message = UNFIT[case]
    settings = Config.from_flags("fedavg", clients=3, **flags)
    with pytest.raises(ConfigError, match=message) as caught:
        build(settings, data=labelled(toy, change), model=nn.Linear(12, 4))
    assert "\n" not in str(caught.value)


def test_labels_without_samples_and_probabilities_are_noted(toy):
    """Gaps of labels, and a model that ends in a softmax; not in a log-softmax."""
    small = Config.from_flags("fedavg", clients=3)
    notes = build(small, data=labelled(toy, lambda y: 10 * y)).notes
    assert any("no sample has the labels 1..9, 11..19, 21..29" in note for note in notes)
    for last, layer in (
        (nn.Softmax(1), "softmax"), (nn.Sigmoid(), "sigmoid"),
        (nn.LogSoftmax(1), None), (nn.ReLU(), None),
    ):  # fmt: skip
        notes = build(small, data=toy, model=nn.Sequential(nn.Linear(12, 4), last)).notes
        found = [note for note in notes if "returns probabilities" in note]
        assert len(found) == (layer is not None)
        assert all(note.endswith(f"remove its last {layer}.") for note in found)


def test_a_sigmoid_before_binary_cross_entropy_is_noted(toy):
    """It has one itself."""
    data = labelled(toy, lambda y: torch.stack([y % 2, y // 2], 1).float())
    small = Config.from_flags("fedavg", clients=3, split="iid", loss="binary-cross-entropy")
    for layers, noted in (([nn.Sigmoid()], True), ([], False), ([nn.ReLU()], False)):
        notes = build(small, data=data, model=nn.Sequential(nn.Linear(12, 2), *layers)).notes
        assert any("remove its last sigmoid" in note for note in notes) == noted


class HiddenSigmoid(nn.Module):
    """Logits that happen to be within 0 and 1; its last module is between its layers."""

    def __init__(self):
        super().__init__()
        self.first, self.second, self.activation = nn.Linear(12, 3), nn.Linear(3, 4), nn.Sigmoid()
        nn.init.uniform_(self.second.weight, 0.0, 0.1)
        nn.init.constant_(self.second.bias, 0.1)

    def forward(self, x):
        return self.second(self.activation(self.first(x)))


def test_a_sigmoid_between_layers_is_not_noted(toy):
    notes = build(Config.from_flags("fedavg", clients=3), data=toy, model=HiddenSigmoid()).notes
    assert not [note for note in notes if "probabilities" in note]


def test_test_samples_that_are_those_of_training_are_noted(toy):
    small = Config.from_flags("fedavg", clients=3)
    same_samples = replace(toy, test_inputs=toy.train_inputs, test_labels=toy.train_labels)
    other_order = replace(toy, test_inputs=toy.train_inputs.flip(0))
    for data, noted in ((same_samples, True), (toy, False), (other_order, False)):
        notes = build(small, data=data).notes
        assert any("are the training samples" in note for note in notes) == noted


def test_lists_train_as_a_split_that_deals_them(config, toy, same):
    """Also from an array, a mapping and a stored partition; there is a client for each list."""
    flags = PLAIN | {"network": False, "clients": 4}
    own = wirelessfl.run(config("fedavg", **flags, split=f"{__name__}:Listed"), data=toy)
    given = wirelessfl.run(config("fedavg", **PLAIN), data=toy, split=LISTS)
    assert given.config.network.clients == 4
    same(own, given)
    again = wirelessfl.run(config("fedavg", **flags), data=toy, split=dict(enumerate(LISTS)))
    same(given, again)
    stored = read_partition(given.directory)
    same(given, wirelessfl.run(config("fedavg", **PLAIN), data=toy, split=stored))


WRONG = {
    "mask": ([np.arange(240) % 2 == 0, [1]], r"split\[0\] is a mask of bool \[240\]: give indices"),
    "negative": ([[0], [-1, 2]], r"split\[1\] has the index -1"),
    "large": ([[0], [240]], r"split\[1\] has the index 240, but there are 240 training samples"),
    "floats": ([[0.0], [1]], r"split\[0\] is float64 \[1\]: give integers"),
    "empty client": ([[0], []], r"split\[1\] is empty"),
    "twice": ([[0, 1, 0], [2]], r"split\[0\] has the index 0 twice"),
    "nested": ([[[0], [1]], [2]], r"split\[0\] is int64 \[2, 1\]: give one list"),
    "ragged": ([[[0], [1, 2]], [2]], r"split\[0\] is .*: give one list"),
    "flat": ([0, 1, 2], r"split\[0\] is 0: give one list"),
    "none": ([], "split has no clients"),
    "number": (3, "split is 3: give one list"),
    "name": ("iid", "split is 'iid': give one list"),
    "keys": ({1: [0], 2: [1]}, r"split has the keys 1, 2, \.\.\.: number the clients"),
    "words": ([["a"], [1]], r"split\[0\] is .*: give integers"),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_lists_are_refused_before_anything_is_written(config, toy, case):
    lists, message = WRONG[case]
    settings = config("fedavg", **PLAIN)
    with pytest.raises(ConfigError, match=message) as caught:
        wirelessfl.run(settings, data=toy, split=lists)
    assert "\n" not in str(caught.value)
    assert not settings.run.out.exists()


def test_lists_conflict_with_other_splits_and_sizes(config, toy, network_of):
    def refused(message, given=None, **flags):
        settings = config("fedavg", **(PLAIN | flags))
        with pytest.raises(ConfigError, match=message):
            wirelessfl.run(settings, data=toy, split=LISTS, network=given)

    refused("has samples of 4 clients, but clients is 6: give", network=False, clients=6)
    refused("of 4 clients, but the network has 3", network_of([0, 0, 0]))
    refused("replaces split=dirichlet, alpha=0.1: leave", split="dirichlet", alpha=0.1)
    refused("validation_fraction=0.1 conflicts with split", validation_fraction=0.1)
    refused("presence='labels' conflicts with split", sessions=2)
    with pytest.raises(ConfigError, match=r"split=\.\.\. conflicts with the tables of tasks"):
        wirelessfl.run(
            Config.from_flags("fedast", task=["digits,name=a", "digits,name=b"], clients=4),
            split=LISTS,
        )
    result = wirelessfl.run(
        config("fedavg", **PLAIN, sessions=2, presence="arrivals", arrival_rate=1.0, mean_stay=3.0,
               initially_present=2),
        data=toy, split=LISTS,
    )  # fmt: skip
    assert result.rows[-1]["session"] == 1


def test_a_named_network_is_the_given_one(config, toy, same):
    """Its randomness is that of the run's seed; the settings name it, and the size follows."""
    named = wirelessfl.run(config("hfedavg", **PLAIN | {"network": NAMED}), data=toy)
    network = build(named.config, data=toy).network
    same(named, wirelessfl.run(config("hfedavg", **PLAIN), data=toy, network=network))
    same(named, wirelessfl.run(config("hfedavg", **PLAIN), data=toy, network=NAMED))
    assert (named.config.network.cells, named.config.network.clients) == (2, 6)
    other = build(named.config.changed(seed=7), data=toy).network
    assert not np.array_equal(network.cpu_hz, other.cpu_hz)
    file = named.directory / "config.toml"
    assert f'network = "{NAMED}"' in file.read_text()
    assert "clients = " not in file.read_text()
    with pytest.raises(ConfigError, match=r"network is .* add --trust"):
        Config.from_toml(file)
    assert Config.from_toml(file, trust=True) == named.config
    priced = wirelessfl.price(config("hfedavg", **PLAIN), 1, data=toy, network=NAMED)
    assert priced.rows[-1]["sim_seconds"] == named.rows[-1]["sim_seconds"]


def takes_two(first, second):
    return one_cell()


def returns_none():
    return None


def fails(stream):
    return {}["nothing"]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("takes_two", "takes the arguments first, second: define it as f"),
        ("returns_none", "returned None: return a channels"),
        ("fails", r"KeyError: 'nothing' \(in fails, test_own_objects.py"),
        ("nothing", "has no 'nothing'"),
        ("LISTS", r"is .*: give a function of a stream"),
        ("two_cells", "has one server, but the network has 2 cells"),
    ],
)
def test_wrong_networks_give_one_line(name, message):
    with pytest.raises(ConfigError, match=message) as caught:
        Config.from_flags("fedavg", network=f"{__name__}:{name}")
    assert "\n" not in str(caught.value)


def test_settings_that_a_named_network_replaces_are_refused(config):
    for flags in ({"clients": 4}, {"fading": "rician"}, {"antennas": 10}, {"snr_db": 3.0}):
        with pytest.raises(ConfigError, match=r"conflicts with network=.*:one_cell, which"):
            Config.from_flags("fedavg", network=STAR, **flags)
    with pytest.raises(ConfigError, match=r"network is .*two_cells.* but the settings name"):
        wirelessfl.run(Config.from_flags("fedavg", network=STAR), network=NAMED)
    with pytest.raises(ConfigError, match="network is 'nonsense': give the import path"):
        Config.from_flags("fedavg", network="nonsense")


def test_commands_take_a_named_network(capsys):
    assert main(["budget", "fedavg", "--network", STAR, "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["clients"]) == 4


def halted(settings, halt_at, **given):
    """The folder of a run that was interrupted after two rows."""
    with pytest.raises(KeyboardInterrupt):
        wirelessfl.run(settings, **given, on_row=halt_at(2))
    return settings.run.out


LONG = PLAIN | {"rounds": 4, "checkpoint_seconds": 0}


def test_a_resumed_run_needs_neither_network_nor_split(config, toy, same, halt_at):
    """The folder keeps them; if they are given, they must be equal."""
    network = one_cell()
    given = {"data": toy, "network": network, "split": LISTS}
    whole = wirelessfl.run(config("fedavg", **LONG), **given)
    folder = halted(config("fedavg", **LONG), halt_at, **given)
    assert np.array_equal(load_network(folder / "network.npz").gain_db, network.gain_db)
    with pytest.raises(ConfigError, match="the network has changed"):
        wirelessfl.resume(folder, data=toy, network=replace(network, cpu_hz=2e9))
    with pytest.raises(ConfigError, match=r"the data \(samples, split\) has changed"):
        wirelessfl.resume(folder, data=toy, split=[*LISTS[:3], [239, 1]])
    with pytest.raises(ConfigError, match=r"resume got model=\.\.\."):
        wirelessfl.resume(folder, data=toy, model=nn.Linear(2, 2))
    same(wirelessfl.resume(folder, data=toy), whole)


@dataclass(frozen=True)
class OwnFading:
    def draw(self, stream, index, clients, root):
        return Rayleigh().draw(stream, index, clients, root)


def test_a_network_with_own_fading_must_be_given_again(config, toy, same, halt_at):
    network, notes = replace(one_cell(), fading=OwnFading()), []
    with pytest.raises(KeyboardInterrupt):
        wirelessfl.run(
            config("fedavg", **LONG), data=toy, network=network, on_row=halt_at(2),
            on_note=notes.append,
        )  # fmt: skip
    settings = config("fedavg", **LONG)
    folder = settings.run.out.with_name("run1")
    assert "is not stored in the run's folder: its fading model" in notes[0]
    with pytest.raises(ConfigError, match=r"give network=\.\.\. again"):
        wirelessfl.resume(folder, data=toy)
    whole = wirelessfl.run(settings, data=toy, network=network)
    same(wirelessfl.resume(folder, data=toy, network=network), whole)


def test_the_partition_of_each_task_is_kept(tmp_path):
    flags = {"clients": 4, "rounds": 1, "threads": 1, "out": tmp_path / "run", "local_steps": 1}
    tasks = ["digits,name=a,split=iid", "digits,name=b"]
    result = wirelessfl.run(Config.from_flags("fedast", task=tasks, **flags))
    found, setup = read_partition(result.directory), build(result.config)
    assert list(found) == ["a", "b"]
    for partition, model in zip(found.values(), setup.models, strict=True):
        assert isinstance(partition, ClientPartition)
        assert [list(mine) for mine in partition] == [list(mine) for mine in model.client_samples]
    setup.close()
    with pytest.raises(ConfigError, match=r"has no partition\.npz: give the folder of a run"):
        read_partition(tmp_path)


MODEL = """
from torch import nn
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(12, 4)
    def forward(self, inputs):
        return 1.0 * self.layer(inputs)
"""


def own_net(folder, monkeypatch, text):
    """A model of a module that is imported anew, as in a new process."""
    (folder / "own_net_module.py").write_text(text)
    monkeypatch.syspath_prepend(folder)
    monkeypatch.delitem(sys.modules, "own_net_module", raising=False)
    torch.manual_seed(1)
    return importlib.import_module("own_net_module").Net()


def test_edited_code_of_a_given_model_is_noticed(config, toy, halt_at, tmp_path, monkeypatch):
    """Any edit of the file of its classes counts."""
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    net = own_net(tmp_path, monkeypatch, MODEL)
    folder = halted(config("fedavg", **LONG), halt_at, data=toy, model=net, network=one_cell())
    hashes = json.loads((folder / "about.json").read_text())["hashes"]
    model, data = "the model (layers, frozen parameters, buffers)", "the data (samples, split)"
    assert hashes.keys() == {"the code or a value of model=...", "the network", model, data}
    assert {len(value) for value in hashes.values()} == {16}
    for text in (MODEL.replace("1.0 *", "2.0 *"), MODEL + "\nOTHER = 3\n"):
        edited = own_net(tmp_path, monkeypatch, text)
        with pytest.raises(ConfigError, match=r"the code or a value of model=\.\.\. has changed"):
            wirelessfl.resume(folder, data=toy, model=edited)
    same_code = own_net(tmp_path, monkeypatch, MODEL)
    assert wirelessfl.resume(folder, data=toy, model=same_code).rows[-1]["round"] == 4
