"""Tied parameters train as one parameter in every executor; unsupported ties are refused."""

import copy

import pytest
import torch
from torch import nn
from torch.nn import functional as F

import wirelessfl
from tests.executors import EXECUTORS
from tests.wirelessfl.training.jobs import job_for, plain_loop, training_data, updates
from wirelessfl.base.errors import ConfigError
from wirelessfl.models.submodels import ParamSpec
from wirelessfl.runs.build import build
from wirelessfl.training.objective import Objective


class Chain(nn.Sequential):
    """Linear layers 0, 2 and 4 with ReLU between them."""

    def __init__(self):
        super().__init__(
            nn.Linear(12, 12), nn.ReLU(), nn.Linear(12, 12), nn.ReLU(), nn.Linear(12, 4)
        )
        self.fully_connected = ("0", "2", "4")


def weight():
    module = Chain()
    module[2].weight = module[0].weight
    return module


def bias():
    module = Chain()
    module[2].bias = module[0].bias
    return module


def layer_twice():
    module = Chain()
    module[2] = module[0]
    return module


class Autoencoder(nn.Module):
    """A model with a tied parameter outside any layer, used both plain and transposed."""

    def __init__(self):
        super().__init__()
        self.encode = nn.Parameter(torch.randn(12, 5) / 4)
        self.decode = self.encode
        self.out = nn.Linear(12, 4)

    def forward(self, x):
        return self.out(torch.relu(torch.tanh(x @ self.encode) @ self.decode.T))


TIED = {"weight": weight, "bias": bias, "layer twice": layer_twice, "transposed": Autoencoder}


def made(make):
    torch.manual_seed(3)
    return make()


@pytest.mark.thorough(every=8)
@pytest.mark.parametrize("kind", TIED)
def test_every_executor_equals_torch_on_the_module(kind, path):
    """Updates agree with those of ``plain_loop``, whose copies of the module keep its ties."""
    module = made(TIED[kind])
    data = training_data((12,), [20, 5, 50, 16, 33])
    objective, job = job_for(module, data, lr=0.05)
    assert objective.spec.size == sum(p.numel() for p in module.parameters())
    if path.startswith("stacked"):
        with pytest.raises(
            ConfigError, match=r'"stacked" cannot train .*(tied|twice|inputs other)'
        ):
            EXECUTORS[path](objective, data)
        return
    before = copy.deepcopy(module.state_dict())
    found = updates(EXECUTORS[path](objective, data), job)
    assert torch.allclose(found, plain_loop(module, data, job, lr=0.05), atol=5e-6)
    for name, value in module.state_dict().items():
        assert torch.equal(value, before[name]), name


def fedavg_by_hand(module, data, client_samples, rounds, steps, lr):
    """FedAvg with full-batch steps on copies of the module."""
    server = copy.deepcopy(module)
    for _ in range(rounds):
        clients = []
        for rows in client_samples:
            own = copy.deepcopy(server)
            for _ in range(steps):
                loss = F.cross_entropy(own(data.train_inputs[rows]), data.train_labels[rows])
                leaves = list(own.parameters())
                for leaf, grad in zip(leaves, torch.autograd.grad(loss, leaves), strict=True):
                    leaf.data -= lr * grad
            clients.append(own)
        for merged, *others in zip(*(m.parameters() for m in (server, *clients)), strict=True):
            merged.data = torch.stack([other.data for other in others]).mean(0)
    return server


@pytest.mark.thorough(every=8)
@pytest.mark.parametrize(
    "executor",
    [
        {"executor": "auto"},
        {"executor": "loop"},
        {"executor": "vmap", "chunk": 1, "replay": "off"},
        {"executor": "vmap", "replay": "off"},
        {"executor": "vmap", "replay": "on"},
    ],
    ids=str,
)
@pytest.mark.parametrize("kind", ["weight", "layer twice"])
def test_a_run_returns_tied_parameters_under_both_names(kind, executor, config, toy):
    module = made(TIED[kind])
    settings = config("fedavg", split="iid", batch_size=1000, local_steps=2, rounds=2, **executor)
    client_samples = build(settings, data=toy, model=copy.deepcopy(module)).model.client_samples
    expected = fedavg_by_hand(module, toy, client_samples, 2, 2, 0.1)
    result = wirelessfl.run(settings, data=toy, model=copy.deepcopy(module))
    assert result.params.keys() == module.state_dict().keys()
    module.load_state_dict(result.params, strict=False)
    assert module[2].weight is module[0].weight
    untied = Chain()  # code unaware of the tie gets both parameters
    untied.load_state_dict(result.params)
    for loaded in (module, untied):
        for name, value in expected.state_dict().items():
            assert torch.allclose(loaded.state_dict()[name], value, atol=1e-5), name
    stored = wirelessfl.resume(result.directory).params
    assert stored.keys() == result.params.keys()
    assert all(torch.equal(stored[name], value) for name, value in result.params.items())


def test_multi_task_runs_return_tied_parameters_under_both_names(config, toy):
    shared = {"delays": "shifted-exponential", "step_seconds": 0.1}
    result = wirelessfl.run(config("fedast", **shared), data=toy, model=made(weight))
    assert torch.equal(result.params["2.weight"], result.params["0.weight"])
    assert wirelessfl.resume(result.directory).params.keys() == result.params.keys()


@pytest.mark.thorough(every=8)
@pytest.mark.parametrize("algorithm", ["hist", "ra-fed"])
@pytest.mark.parametrize(
    ("make", "names"),
    [
        (weight, r"'(0|2)\.weight' is tied to '(0|2)\.weight'"),
        (bias, r"'(0|2)\.bias' is tied to '(0|2)\.bias'"),
        (layer_twice, r"'(0|2)\.weight' is tied to '(0|2)\.weight'"),
    ],
)
def test_submodels_of_tied_layers_are_refused(algorithm, make, names, config, toy):
    settings = config(algorithm)
    with pytest.raises(ConfigError, match=names) as caught:
        wirelessfl.run(settings, data=toy, model=made(make))
    assert "\n" not in str(caught.value)
    assert not settings.run.out.exists()


def test_partitioned_layers_tied_to_other_layers_are_refused(config, toy):
    settings = config("hist", layers="0,4")
    with pytest.raises(ConfigError, match=r"'0\.weight' is tied to '2\.weight'.*hfedavg"):
        wirelessfl.run(settings, data=toy, model=made(weight))


def with_parameter(layer, name, value, **options):
    module = Chain()
    module.get_submodule(layer).register_parameter(name, nn.Parameter(value(module), **options))
    return module


REFUSED = {
    "copy of one memory": (
        lambda: with_parameter("2", "weight", lambda m: m[0].weight.detach()),
        r"'0\.weight' and '2\.weight' are two tensors of model Chain that share",
    ),
    "transposed": (
        lambda: with_parameter("2", "weight", lambda m: m[0].weight.detach().T),
        r"'0\.weight' and '2\.weight' are two tensors of model Chain that share",
    ),
    "row of another": (
        lambda: with_parameter("2", "bias", lambda m: m[0].weight.detach()[3]),
        r"'0\.weight' and '2\.bias' are two tensors of model Chain that share",
    ),
    "frozen part": (
        lambda: with_parameter("2", "bias", lambda m: m[0].bias.detach(), requires_grad=False),
        r"'0\.bias' and '2\.bias' are two tensors of model Chain that share",
    ),
    "expanded": (
        lambda: with_parameter("2", "bias", lambda m: torch.zeros(1).expand(12)),
        r"'2\.bias' is expanded",
    ),
    "complex": (
        lambda: with_parameter("2", "own", lambda m: torch.zeros(3, dtype=torch.complex64)),
        r"'2\.own' is torch\.complex64.*real and imaginary",
    ),
    "double": (lambda: Chain().double(), r"'0\.weight' is torch\.float64.*\.float\(\)"),
    "lazy": (lambda: nn.Sequential(nn.LazyLinear(4)), r"'0\.weight' has no shape yet.*lazy"),
    "meta": (lambda: nn.Linear(12, 4, device="meta"), "'weight' has no values.*meta"),
    "none": (nn.Flatten, "Flatten has no trainable parameters"),
    "frozen": (lambda: Chain().requires_grad_(False), "Chain has no trainable parameters"),
}


@pytest.mark.filterwarnings("ignore:Lazy modules are a new feature:UserWarning:torch")
@pytest.mark.parametrize("case", REFUSED)
def test_parameters_that_cannot_be_trained_are_refused_at_the_start(case, config, toy):
    make, message = REFUSED[case]
    settings = config("fedavg")
    with pytest.raises(ConfigError, match=message) as caught:
        wirelessfl.run(settings, data=toy, model=make())
    assert "\n" not in str(caught.value)
    assert not settings.run.out.exists()


def test_parameters_may_be_disjoint_views_of_one_tensor():
    """Columns or halves of one tensor (as in cuDNN's RNNs) are not ties.

    A frozen integer parameter is accepted too.
    """
    memory = torch.randn(12, 24)
    module = Chain()
    module[0].weight = nn.Parameter(memory[:, ::2])
    module[2].weight = nn.Parameter(memory[:, 1::2])
    halves = torch.randn(24)
    module[0].bias, module[2].bias = nn.Parameter(halves[:12]), nn.Parameter(halves[12:])
    module.steps = nn.Parameter(torch.zeros(2, dtype=torch.int64), requires_grad=False)
    spec = ParamSpec.of(module)
    assert spec.size == 2 * (144 + 12) + 52
    assert not spec.ties
    assert not Objective.of(module).slots
