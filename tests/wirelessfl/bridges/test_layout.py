"""Flat parameters and the arrays of a state dict, without Flower."""

import sys

import numpy as np
import pytest
import torch
from torch import nn

import wirelessfl
from wirelessfl.base.errors import ConfigError
from wirelessfl.bridges.flower_app import Layout
from wirelessfl.models.submodels import ParamSpec


class Tied(nn.Module):
    """A decoder tied to its encoder, a frozen weight, a buffer, and a parameter without axes."""

    def __init__(self):
        super().__init__()
        self.encoder, self.decoder = nn.Linear(3, 3, bias=False), nn.Linear(3, 3)
        self.decoder.weight = self.encoder.weight
        self.frozen = nn.Parameter(torch.ones(2), requires_grad=False)
        self.scale = nn.Parameter(torch.tensor(2.0))
        self.register_buffer("steps", torch.tensor([3, 4]))


@pytest.fixture
def layout():
    module = Tied()
    return Layout.of(module, ParamSpec.of(module))


def test_arrays_are_the_state_dict_and_come_back(layout):
    """A model that loads the arrays has the parameters, and its state dict gives them again."""
    flat = torch.randn(layout.spec.size)
    module = Tied()
    arrays = {name: torch.from_numpy(value) for name, value in layout.arrays(flat).items()}
    module.load_state_dict(arrays)
    assert [*arrays] == [*module.state_dict()]
    assert torch.equal(layout.spec.from_module(module), flat)
    replied = {name: value.numpy() for name, value in module.state_dict().items()}
    assert torch.equal(layout.flat(replied), flat)
    assert torch.equal(layout.flat(dict(reversed(replied.items()))), flat)


WRONG = {
    "missing": ({"scale": None}, "arrays without 'scale'"),
    "extra": ({"more": np.ones(2)}, "arrays with 'more'"),
    "dtype": ({"scale": np.float64(2)}, r"'scale' as float64 \[\], which .* as float32 \[\]"),
    "shape": ({"decoder.bias": np.ones(4, "f")}, r"'decoder.bias' as float32 \[4\]"),
    "buffer": ({"steps": np.array([3, 5])}, "another value of 'steps', which is no trainable"),
    "buffer's dtype": ({"steps": np.array([3.0, 4.0])}, r"'steps' as float64 \[2\]"),
    "tied": ({"decoder.weight": np.eye(3, dtype="f")}, "different values of 'decoder.weight'"),
}


@pytest.mark.parametrize("name", WRONG)
def test_other_arrays_are_refused_in_one_line(layout, name):
    changes, message = WRONG[name]
    arrays = layout.arrays(torch.zeros(layout.spec.size)) | changes
    arrays = {key: np.asarray(value) for key, value in arrays.items() if value is not None}
    with pytest.raises(ConfigError, match=message) as caught:
        layout.flat(arrays)
    assert "\n" not in str(caught.value)


def test_a_missing_package_is_named(monkeypatch):
    class Absent:
        def find_spec(self, name, path=None, target=None):
            if name == "flwr":
                raise ModuleNotFoundError(name=name)

    for name in [name for name in sys.modules if name.partition(".")[0] == "flwr"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(sys, "meta_path", [Absent(), *sys.meta_path])
    with pytest.raises(ImportError, match=r"flwr is not installed: pip install 'wirelessfl\[fl"):
        wirelessfl.bridges.flower(None)


def test_partitions_need_a_partitioner_and_a_data_set():
    with pytest.raises(ConfigError, match="partitioner is 3: give one of flwr_datasets"):
        wirelessfl.bridges.flower_split(3, None)

    class Partitioner:
        def load_partition(self, number): ...

    with pytest.raises(ConfigError, match=r"dataset is \[1\]: give a datasets.Dataset"):
        wirelessfl.bridges.flower_split(Partitioner(), [1])
