"""Fused convolutions, compiled by Numba, against plain layers."""

import pytest
import torch
from torch import nn

import wirelessfl
from tests.gate.given import small_images
from tests.wirelessfl.training.jobs import job_for, training_data, updates
from wirelessfl.base.errors import ConfigError
from wirelessfl.models import CifarCNN, LeNet5
from wirelessfl.runs.build import build, executors, trained_model
from wirelessfl.training.batches import Batch
from wirelessfl.training.objective import Objective
from wirelessfl.training.stacked import StackedExecutor, why_not_stacked
from wirelessfl.training.workers.workers_executor import WorkersExecutor

pytest.importorskip("numba")
from wirelessfl.training.fused import FusedExecutor

pytestmark = pytest.mark.extras


def lenet():
    return LeNet5((1, 28, 28), 4)


def unusual():
    """Padding that differs by side, odd sizes, no bias, and 24 channels, computed 8 at a time."""
    return nn.Sequential(
        nn.Conv2d(2, 3, 3, padding=(1, 0), bias=False),
        nn.MaxPool2d(2),
        nn.ReLU(),
        nn.Conv2d(3, 24, 2),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(48, 4),
    )


MODELS = {
    "lenet5": (lenet, (1, 28, 28)),
    "cifar-cnn": (lambda: CifarCNN((3, 32, 32), 4), (3, 32, 32)),
    "unusual": (unusual, (2, 13, 11)),
}


FLAGS = {"model": "lenet5", "clients": 4, "local_steps": 2, "rounds": 2, "checkpoint_seconds": 0}


def both(make, shape, samples=16):
    """The fused executor, parameters of three clients, and a batch for each of them."""
    torch.manual_seed(0)
    module = make()
    data = training_data(shape, [samples] * 3)
    objective = Objective.of(module)
    flat = objective.spec.from_module(module).repeat(3, 1)
    flat += 0.01 * torch.randn_like(flat)
    x, y = (part[: 3 * samples].unflatten(0, (3, samples)) for part in (data.inputs, data.labels))
    weight, keys = torch.full((3, samples), 1 / samples), torch.zeros(3, 2, dtype=torch.int32)
    return FusedExecutor(objective, data, 3), flat, Batch(x, y, weight, keys)


@pytest.mark.parametrize("name", MODELS)
def test_gradients_equal_those_of_double_precision(name):
    executor, flat, batch = both(*MODELS[name])
    objective = executor.objective
    assert len(executor.fused) < len(executor.layers)
    grads = executor.gradients(objective.spec, flat, batch)
    for client in range(3):
        alone = Batch(*(part[client] for part in batch))
        alone = alone._replace(x=alone.x.double(), weight=alone.weight.double())
        expected = objective.gradients(objective.spec.views(flat[client].double()), alone)
        for name, view in objective.spec.views(grads[client]).items():
            error = (view - expected[name]).abs().max() / expected[name].abs().max()
            assert error < 1e-6, name


def test_windows_without_positive_outputs_have_no_gradient():
    executor, flat, batch = both(lenet, (1, 28, 28))
    spec = executor.objective.spec
    spec.views(flat)["features.3.bias"][1] = -100.0
    grads = spec.views(executor.gradients(spec, flat, batch))
    assert [bool(client.any()) for client in grads["features.3.weight"]] == [True, False, True]
    assert [bool(client.any()) for client in grads["features.0.weight"]] == [True, False, True]


def test_not_a_number_stays():
    """As in torch, so that a diverged run is noticed."""
    executor, flat, batch = both(lenet, (1, 28, 28))
    spec = executor.objective.spec
    spec.views(flat)["features.0.weight"][1, 2] = torch.nan
    plain = StackedExecutor(executor.objective, executor.data, 3)
    missing = executor.gradients(spec, flat, batch).isnan()
    assert torch.equal(missing, plain.gradients(spec, flat, batch).isnan())
    assert missing[1].any()
    assert not missing[[0, 2]].any()


def test_updates_equal_those_of_plain_layers_and_do_not_depend_on_workers():
    data = training_data((1, 28, 28), [20, 5, 50, 16, 33], batch_size=8)
    objective, job = job_for(lenet(), data, lr=0.01, steps=4)
    alone = updates(FusedExecutor(objective, data, 2), job)
    plain = updates(StackedExecutor(objective, data, 2), job)
    assert torch.allclose(alone, plain, atol=1e-6)
    assert plain.abs().max() > 1e-3
    assert torch.equal(updates(FusedExecutor(objective, data, 2), job), alone)
    several = WorkersExecutor(FusedExecutor(objective, data, 2), 2)
    try:
        assert torch.equal(updates(several, job), alone)
    finally:
        several.close()


def test_submodels_with_fewer_channels_train_with_plain_layers(config, same):
    flags = FLAGS | {"budget": "width", "capacities": (0.3, 0.5, 0.7, 0.9)}
    fused, stacked = (
        wirelessfl.run(config("ram-fed", **flags, executor=name), data=small_images())
        for name in ("fused", "stacked")
    )
    same(fused, stacked)


@pytest.mark.parametrize(
    "layer",
    [
        nn.Conv2d(1, 6, 5, stride=2),
        nn.Conv2d(1, 6, (5, 3)),
        nn.Conv2d(1, 17, 5),
        nn.Conv2d(1, 6, 21),
    ],
)
def test_layers_without_a_kernel_are_refused(layer):
    module = nn.Sequential(layer, nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.LazyLinear(4))
    module(torch.zeros(1, 1, 28, 28))
    data = training_data((1, 28, 28), [20])
    assert why_not_stacked(Objective.of(module), data) is None
    assert "other layers than" in why_not_stacked(Objective.of(module), data, FusedExecutor)


def test_long_runs_use_it_and_a_resumed_run_needs_it(config, same, monkeypatch, halt_at):
    data = small_images()
    assert wirelessfl.run(config("fedavg", **FLAGS), data=data).config.run.executor == "stacked"
    monkeypatch.setattr(executors, "LONG_SECONDS", 0.0)
    whole = wirelessfl.run(config("fedavg", **FLAGS), data=data)
    assert whole.config.run.executor == "fused"
    settings = config("fedavg", **FLAGS)
    with pytest.raises(KeyboardInterrupt):
        wirelessfl.run(settings, data=data, on_row=halt_at(0))

    with monkeypatch.context() as patched:
        patched.setitem(__import__("sys").modules, "numba", None)
        with pytest.raises(ConfigError, match=r'"fused" .* numba is not .*\[fast\]'):
            wirelessfl.resume(settings.run.out, data=data)
    same(wirelessfl.resume(settings.run.out, data=data), whole)


def test_rounded_training_has_plain_layers(config, monkeypatch):
    monkeypatch.setattr(executors, "LONG_SECONDS", 0.0)
    monkeypatch.setattr(trained_model, "check_precision", lambda *arguments: None)
    flags, data = FLAGS | {"precision": "bf16"}, small_images()
    assert build(config("fedavg", **flags, workers=1), data=data).config.run.executor == "stacked"
    with pytest.raises(ConfigError, match='do not have precision "bf16"'):
        build(config("fedavg", **flags, executor="fused"), data=data)
