"""Users' models, data functions and constructors: seeds, errors and unregistered tensors."""

import random
from dataclasses import dataclass, fields
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

import wirelessfl
from wirelessfl.air.uplinks.tdma import Tdma
from wirelessfl.base.errors import ConfigError, DataError, TrainingError
from wirelessfl.base.signals import Terminated
from wirelessfl.config.choices import KINDS
from wirelessfl.data import Dataset
from wirelessfl.data.splits.split import Split

SEEN = []


def drawn():
    """One number from each global generator."""
    return random.random(), np.random.rand(), torch.rand(()).item()  # noqa: NPY002


class Linear(nn.Module):
    def __init__(self, input_shape, classes):
        super().__init__()
        self.flatten, self.last = nn.Flatten(), nn.Linear(12, classes)

    def forward(self, x):
        return self.last(self.flatten(x))


class Drawing(Linear):
    """Draws its weights from the global generators."""

    def __init__(self, input_shape, classes):
        super().__init__(input_shape, classes)
        with torch.no_grad():
            self.last.weight.copy_(torch.tensor([drawn() * 4 for _ in range(classes)]))


def points(data_dir):
    """Points that are drawn from the global generators."""
    SEEN.append(data_dir)
    x = torch.tensor([drawn() * 4 for _ in range(60)])
    labels = torch.arange(60) % 4
    return Dataset("points", x[:40], labels[:40], x[40:], labels[40:], 4)


@dataclass(frozen=True)
class Shuffled(Split):
    """Deals by the global generators; its constructor draws as well."""

    def __post_init__(self):
        object.__setattr__(self, "first", int(np.random.randint(20)))  # noqa: NPY002

    def deal(self, samples, cell_of, stream):
        order = np.roll(np.random.permutation(len(samples.labels)), self.first)  # noqa: NPY002
        return np.array_split(order, len(cell_of))


def test_the_seed_covers_constructors_and_data_functions(config):
    """Equal seeds give equal runs, independent of the caller's draws, which remain unchanged."""
    own = {"model": "Drawing", "dataset": "points", "split": "Shuffled"}
    own = {kind: f"{__name__}:{name}" for kind, name in own.items()}
    results = []
    for seed, before in ((1, 3), (1, 4), (2, 3)):
        random.seed(before)
        np.random.seed(before)  # noqa: NPY002
        torch.manual_seed(before)
        results.append(wirelessfl.run(config("fedavg", seed=seed, rounds=1, **own)))
        after = drawn()
        random.seed(before)
        np.random.seed(before)  # noqa: NPY002
        torch.manual_seed(before)
        assert after == drawn()
    same, again, other = (torch.cat([*map(torch.flatten, r.params.values())]) for r in results)
    assert torch.equal(same, again)
    assert not torch.equal(same, other)


def test_a_data_function_gets_the_resolved_folder(config, tmp_path, monkeypatch):
    SEEN.clear()
    other = tmp_path / "other"
    other.mkdir()
    monkeypatch.delenv("WIRELESSFL_DATA", raising=False)
    path = f"{__name__}:points"
    wirelessfl.runs.build.build(config("fedavg", dataset=path))
    monkeypatch.setenv("WIRELESSFL_DATA", str(other))
    wirelessfl.runs.build.build(config("fedavg", dataset=path))
    wirelessfl.runs.build.build(config("fedavg", dataset=path, data_dir=tmp_path))
    assert [None, other, Path(tmp_path)] == SEEN


def failing(data_dir):
    return np.load("/nowhere/points.npy")


class Broken(nn.Module):
    def __init__(self, input_shape, classes):
        super().__init__()
        self.sizes = {}["hidden"]


@dataclass(frozen=True)
class BrokenTdma(Tdma):
    def __post_init__(self):
        return {}["rate"]


@pytest.mark.parametrize(
    ("kind", "name", "error", "text"),
    [
        ("dataset", "failing", DataError, "': FileNotFoundError: .* \\(in failing, test_users_"),
        (
            "model",
            "Broken",
            ConfigError,
            "' cannot be built .*: KeyError: 'hidden' \\(in __init__, test_users_",
        ),
        (
            "uplink",
            "BrokenTdma",
            ConfigError,
            "' cannot be created: KeyError: 'rate' \\(in __post_init__",
        ),
    ],
)
def test_exceptions_of_constructors_become_one_line(config, toy, kind, name, error, text):
    """The line names the object by its path, the exception, and the line of the user's code."""
    given = {} if kind == "dataset" else {"data": toy}
    with pytest.raises(error, match=f"^[a-z ]+ '{__name__}:{name}.*{text}") as caught:
        wirelessfl.run(config("fedavg", **{kind: f"{__name__}:{name}"}), **given)
    assert "\n" not in str(caught.value)
    assert not isinstance(caught.value.__cause__, type(None))


class Ended(nn.Module):
    def __init__(self, input_shape, classes):
        super().__init__()
        raise Terminated(143)


def test_a_signal_during_a_constructor_is_no_error(config, toy):
    with pytest.raises(Terminated):
        wirelessfl.run(config("fedavg", model=f"{__name__}:Ended"), data=toy)


class FailsInTests(Linear):
    """Supports few samples only in evaluation."""

    def forward(self, x):
        if not self.training and len(x) > 100:
            x = x.view(100, -1)
        return super().forward(x)


class LosesSamples(Linear):
    def forward(self, x):
        return super().forward(x[:1] if len(x) > 100 else x)


def test_exceptions_in_evaluation_become_one_line(config, toy):
    settings = config("fedavg", executor="loop")
    line = r"^model FailsInTests, evaluation of 240 samples: RuntimeError: .* \(in forward, test_us"
    with pytest.raises(TrainingError, match=line) as caught:
        wirelessfl.run(settings, data=toy, model=FailsInTests((12,), 4))
    assert isinstance(caught.value.__cause__, RuntimeError)
    assert not settings.run.out.exists()
    with pytest.raises(ConfigError, match=r"LosesSamples returns torch.float32 .1, 4. for 240"):
        wirelessfl.run(settings, data=toy, model=LosesSamples((12,), 4))


class InList(Linear):
    def __init__(self, hidden):
        super().__init__((12,), 4)
        self.hidden = hidden

    def forward(self, x):
        for layer in self.hidden:
            x = layer(x)
        return super().forward(x)


class InDict(Linear):
    def __init__(self):
        super().__init__((12,), 4)
        self.scales = {"all": torch.ones(12, requires_grad=True)}

    def forward(self, x):
        return super().forward(x * self.scales["all"])


class Attribute(Linear):
    def __init__(self):
        super().__init__((12,), 4)
        self.scale = torch.ones(12, requires_grad=True)

    def forward(self, x):
        return super().forward(x * self.scale)


SCALE = torch.ones(12, requires_grad=True)


class OfModule(Linear):
    def forward(self, x):
        return super().forward(x * SCALE)


@pytest.mark.thorough(every=8)
@pytest.mark.parametrize("settings", [{}, {"chunk": 1}, {"executor": "loop"}, {"replay": "on"}])
@pytest.mark.parametrize(
    ("module", "text"),
    [
        (lambda: InList([nn.Linear(12, 12)]), r"the layer 'hidden\[0\]' .* nn.ModuleList"),
        (
            lambda: InList((torch.relu, nn.Linear(12, 12))),
            r"the layer 'hidden\[1\]' .* nn.ModuleList",
        ),
        (lambda: InDict(), r"\"scales\['all'\]\" .* nn.ParameterDict"),
        (lambda: Attribute(), "'scale' .* nn.Parameter,"),
        (lambda: nn.Sequential(nn.Flatten(), Attribute()), "'1.scale' .* nn.Parameter,"),
        (lambda: OfModule((12,), 4), r"a trainable tensor of shape \[12\] .* nn.Parameter"),
    ],
)
def test_tensors_that_are_not_registered_are_refused(config, toy, module, text, settings):
    """With every executor: clients would never train them."""
    with pytest.raises(ConfigError, match=f"does not register {text}"):
        wirelessfl.run(config("fedavg", **settings), data=toy, model=module())


class Constant(Linear):
    """Requires gradients of its input, and has constants in a list."""

    def __init__(self):
        super().__init__((12,), 4)
        self.constants = [torch.ones(12)]

    def forward(self, x):
        leaf = (x * self.constants[0]).detach().requires_grad_()
        return super().forward(leaf)


def test_constants_and_tensors_of_one_pass_are_accepted(config, toy):
    result = wirelessfl.run(config("fedavg", executor="loop"), data=toy, model=Constant())
    assert result.rows[-1]["loss"] < result.rows[0]["loss"]


def test_data_with_a_graph_are_refused(toy):
    """The message names the data, not the model."""
    values = {f.name: getattr(toy, f.name) for f in fields(toy)}
    inputs = toy.train_inputs.clone().requires_grad_()
    with pytest.raises(DataError, match=r"^toy: train_inputs requires gradients"):
        Dataset(**values | {"train_inputs": inputs})


def test_built_in_choices_are_not_guarded():
    """They pay nothing: no function of a class of this project is wrapped."""
    seen = 0
    for kind in KINDS.values():
        for cls in kind.classes().values():
            for base in cls.__mro__:
                for value in vars(base).values():
                    function = getattr(value, "fget", value)
                    assert not hasattr(function, "guarded")
                    seen += hasattr(function, "returned")
    assert seen > 20
