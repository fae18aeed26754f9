"""Every executor agrees with a plain PyTorch loop (``plain_loop``) on the same batches."""

import re
from dataclasses import dataclass, replace

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F

from tests.executors import EXECUTORS
from tests.wirelessfl.training.jobs import job_for, plain_loop, samples, training_data, updates
from wirelessfl.algorithms.fedavg import FedAvg
from wirelessfl.base.errors import ConfigError, TrainingError
from wirelessfl.models import FCNN, CifarCNN, LeNet5, StreamDropout
from wirelessfl.models.submodels import extract, make_partition
from wirelessfl.training.evaluation import evaluate
from wirelessfl.training.module_executors import LoopExecutor, VmapExecutor
from wirelessfl.training.objective import Objective
from wirelessfl.training.stacked import NotAChainError, StackedExecutor, chain, why_not_stacked
from wirelessfl.training.steps import StepsDone
from wirelessfl.training.trial import check_model, why_not_vmapped


class Residual(nn.Module):
    """A model with a residual connection, which is not a chain of layers."""

    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(9, 9), nn.Linear(9, 4)

    def forward(self, x):
        return self.b(x + torch.tanh(self.a(x)))


class Scaled(nn.Module):
    """A layer with a learned temperature, a parameter without dimensions."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(9, 4)
        self.temperature = nn.Parameter(torch.tensor(0.5))

    def forward(self, x):
        return self.layer(x) * self.temperature


def unusual():
    """A chain with strides, padding, dilation, no biases, varied activations and odd sizes.

    Its dropout layer has p = 0.
    """
    return nn.Sequential(
        nn.Conv2d(2, 4, (3, 2), stride=(1, 2), padding=1, bias=False),
        nn.GELU(),
        nn.MaxPool2d(2),
        nn.ReLU(),
        nn.Conv2d(4, 3, 2, dilation=2),
        nn.AvgPool2d(2, 1),
        nn.Tanh(),
        nn.Identity(),
        nn.Flatten(),
        StreamDropout(0.0),
        nn.Linear(27, 5, bias=False),
        nn.Sigmoid(),
        nn.ReLU(),
        nn.Linear(5, 4),
    )


def shared_memory():
    """A chain in which a ReLU reads the output of an earlier activation through a view."""
    return nn.Sequential(
        nn.Conv2d(1, 3, 3),
        nn.Tanh(),
        nn.Flatten(),
        nn.ReLU(),
        nn.Linear(48, 6),
        nn.Sigmoid(),
        nn.Flatten(),
        nn.ReLU(),
        nn.Linear(6, 4),
    )


MODELS = {
    "fcnn": (lambda: FCNN((9,), 4, hidden=(13, 8)), (9,)),
    "lenet5": (lambda: LeNet5((1, 28, 28), 4), (1, 28, 28)),
    "cifar-cnn": (lambda: CifarCNN((3, 32, 32), 4), (3, 32, 32)),
    "unusual": (unusual, (2, 13, 23)),
    "shared memory": (shared_memory, (1, 6, 6)),
    "residual": (Residual, (9,)),
    "scaled": (Scaled, (9,)),
    "groupnorm": (
        lambda: nn.Sequential(
            nn.Conv2d(1, 4, 3), nn.GroupNorm(2, 4), nn.GELU(), nn.Flatten(), nn.Linear(64, 4)
        ),
        (1, 6, 6),
    ),
}
CHAINS = ["fcnn", "lenet5", "cifar-cnn", "unusual", "shared memory"]


@dataclass(frozen=True)
class Momentum(FedAvg):
    """A rule that is not plain SGD: heavy-ball momentum, and weight decay in ``gradient``."""

    def begin(self, cohort):
        return {"m": torch.zeros_like(cohort.start)}

    def gradient(self, grads, params, cohort):
        return grads + 0.1 * params

    def step(self, params, grads, state, cohort):
        moment = 0.5 * state["m"] + self.gradient(grads, params, cohort)
        return params - self.lr * moment, {"m": moment}


@pytest.mark.thorough(every=8)
@pytest.mark.parametrize("rule", [FedAvg, Momentum])
@pytest.mark.parametrize("name", MODELS)
def test_every_path_equals_the_plain_loop(name, rule):
    """Updates agree to 5e-6 for clients with 5 to 50 samples: padded batches, several passes."""
    torch.manual_seed(0)
    make, shape = MODELS[name]
    module = make()
    data = training_data(shape, [20, 5, 50, 16, 33], batch_size=8)
    steps = 2 if name == "cifar-cnn" else 4  # later, one of 86,000 ReLUs flips due to rounding
    task, job = job_for(module, data, lr=0.01, steps=steps)
    extra = {"momentum": 0.5, "weight_decay": 0.1} if rule is Momentum else {}
    expected = plain_loop(module, data, job, lr=0.01, **extra)
    assert float(expected.abs().max()) > 1e-3
    job = replace(job, rule=rule(lr=0.01))
    for path, make_executor in EXECUTORS.items():
        if path.startswith("stacked") and name not in CHAINS:
            continue
        found = updates(make_executor(task, data), job)
        assert torch.allclose(found, expected, atol=5e-6), path


@pytest.mark.thorough(every=8)
def test_paths_agree_under_dropout(path):
    module = FCNN((9,), 4, hidden=(40, 20), dropout=0.5)
    data = training_data((9,), [20, 5, 50])
    task, job = job_for(module, data)
    dropped = updates(EXECUTORS[path](task, data), job)
    assert torch.allclose(dropped, updates(LoopExecutor(task, data), job), atol=2e-6)
    without = FCNN((9,), 4, hidden=(40, 20))
    without.load_state_dict(module.state_dict(), strict=False)
    other, job = job_for(without, data)
    assert not torch.allclose(dropped, updates(EXECUTORS[path](other, data), job), atol=1e-3)


def test_models_that_are_not_chains_are_refused():
    tied = nn.Sequential(nn.Linear(9, 9), nn.ReLU(), nn.Linear(9, 9), nn.Linear(9, 4))
    tied[2].weight = tied[0].weight
    twice = nn.Linear(9, 9)
    frozen = nn.Sequential(nn.Linear(9, 9), nn.Linear(9, 4))
    frozen[0].weight.requires_grad_(False)
    data = training_data((9,), [20])
    for module, why in (
        (Residual(), "not a module"),
        (nn.Sequential(nn.Linear(9, 4), nn.LayerNorm(4)), "LayerNorm"),
        (tied, "frozen or tied"),
        (nn.Sequential(twice, nn.ReLU(), twice, nn.Linear(9, 4)), "used twice"),
        (frozen, "frozen or tied"),
        (nn.Sequential(nn.Flatten()), "no linear layer"),
    ):
        if any(p.requires_grad for p in module.parameters()):
            with pytest.raises(ConfigError, match=f'"stacked" cannot train .*({why}).*"vmap"'):
                StackedExecutor(Objective.of(module), data, 1)


class Unused(nn.Sequential):
    """A chain with a layer that forward does not use."""

    def __init__(self):
        super().__init__(nn.Linear(9, 9), nn.ReLU(), nn.Linear(9, 4))
        self.unused = nn.Linear(9, 9)

    def forward(self, x):
        return self[2](self[1](self[0](x)))


def weight_norm():
    with pytest.warns(FutureWarning):
        return nn.Sequential(nn.utils.weight_norm(nn.Linear(9, 9)), nn.ReLU(), nn.Linear(9, 4))


@pytest.mark.parametrize(
    ("make", "why"),
    [(Unused, "'unused.bias' is not used by a layer"), (weight_norm, "'0.weight.*' is not")],
)
def test_chains_that_do_not_train_every_parameter_are_refused(make, why):
    """Otherwise the gradients of the other parameters would be uninitialised memory."""
    data = training_data((9,), [20, 5, 50])
    task, job = job_for(make(), data)
    with pytest.raises(NotAChainError, match=why):
        chain(task)
    assert re.search(why, why_not_stacked(task, data))
    expected = updates(LoopExecutor(task, data), job)
    found = updates(VmapExecutor(task, data, 1), job)
    assert torch.allclose(found, expected, atol=2e-6)


def hooked():
    module = nn.Sequential(nn.Linear(9, 9), nn.ReLU(), nn.Linear(9, 4))
    module[0].register_forward_hook(lambda layer, inputs, output: 2 * output)
    return module


def test_chains_whose_stacked_gradients_differ_are_detected():
    """Modules that look like chains but are not are found by comparing gradients."""
    for module, shape, why in (
        (FCNN((9,), 4), (9,), None),
        (hooked(), (9,), "a different gradient"),
        (
            nn.Sequential(nn.Linear(9, 5), nn.LeakyReLU(inplace=True), nn.Linear(5, 4)),
            (9,),
            "cannot be stacked",
        ),
        (
            nn.Sequential(nn.Linear(3, 5), nn.Flatten(), nn.Linear(15, 4)),
            (3, 3),
            "cannot be stacked",
        ),
    ):
        task, data = Objective.of(module), training_data(shape, [20])
        found = why_not_stacked(task, data)
        assert found is None if why is None else why in found, found


@pytest.mark.thorough(every=8)
@pytest.mark.parametrize("recorded", [False, True])
@pytest.mark.parametrize("kind", [VmapExecutor, StackedExecutor])
def test_unequal_widths_train_in_one_batch(kind, recorded):
    """Cells of 1, 4 and 8 neurons have the same updates together as alone; padding stays zero."""
    module = FCNN((9,), 4, hidden=(13,), dropout=0.3)
    data = training_data((9,), [20, 30, 5, 50])
    partition = make_partition(module, Objective.of(module).spec)
    cells = [[neurons] for neurons in np.split(np.arange(13), [1, 5])]
    together = extract(partition, cells)
    node = np.array([0, 0, 1, 2])
    objective, job = job_for(module, data, submodels=together, node=node)
    sent = updates(kind(objective, data, chunk=3, recorded=recorded), job)
    assert sent.shape == (4, (9 + 1 + 4) * 8 + 4)
    assert sent.shape[1] < objective.spec.size
    for client, cell in enumerate(node):
        padding = together.index[cell] < 0
        assert (sent[client][padding] == 0).all()
        alone = extract(partition, [cells[cell]])
        own = replace(
            job.of(slice(client, client + 1)),
            spec=alone.spec,
            servers={"params": alone.gather(objective.spec.from_module(module))},
            node=np.zeros(1, dtype=np.int64),
        )
        found = torch.zeros(objective.spec.size + 1)
        found[together.index[cell]] = sent[client]
        expected = torch.zeros(objective.spec.size + 1)
        expected[alone.index[0]] = updates(kind(objective, data, chunk=1), own)[0]
        assert torch.allclose(found[:-1], expected[:-1], atol=1e-6)


def test_recordings_are_reused_and_their_number_is_bounded():
    """Chunks of equal shape share a recording, at most eight are kept, and results are correct."""
    module = FCNN((9,), 4, hidden=(13,))
    data = training_data((9,), [20] * 12)
    task, job = job_for(module, data)
    executor = StackedExecutor(task, data, 4, recorded=True)
    expected = updates(StackedExecutor(task, data, 4), job)
    assert torch.allclose(updates(executor, job), expected, atol=1e-6)
    assert len(executor._recordings) == 1
    for steps in range(1, 20):
        updates(executor, replace(job, local_steps=steps))
    assert len(executor._recordings) == 8
    executor.close()
    assert not executor._recordings


@pytest.mark.parametrize("kind", [VmapExecutor, StackedExecutor])
def test_memory_is_bounded_by_the_chunk(kind, monkeypatch):
    """The executor's tensors never have more clients than a chunk."""
    data = training_data((9,), [10] * 20)
    task, job = job_for(FCNN((9,), 4, hidden=(13,)), data)
    executor, seen = kind(task, data, chunk=6), []
    real = executor._steps

    def spy(algorithm, spec, cohort, batches):
        seen.append((len(cohort.start), len(batches.index)))
        return real(algorithm, spec, cohort, batches)

    monkeypatch.setattr(executor, "_steps", spy)
    chunks = list(executor.train(job))
    assert seen == [(5, 5)] * 4
    assert [c.payloads["update"].shape[0] for c in chunks] == [5, 5, 5, 5]
    assert [c.part for c in chunks][-1] == slice(15, 20)


def test_errors_of_the_loop_name_client_step_and_samples():
    data = training_data((9,), [20, 20])
    data.inputs[27] = float("nan")
    task, job = job_for(FCNN((9,), 4, hidden=(13,)), data)
    with pytest.raises(
        TrainingError, match=r"client 1, round 1, local step \d: the loss is nan.*27"
    ):
        updates(LoopExecutor(task, data), job)


def test_modules_that_use_the_global_generator_are_reproducible_in_the_loop():
    module = nn.Sequential(nn.Linear(9, 30), nn.ReLU(), nn.Dropout(0.5), nn.Linear(30, 4))
    data = training_data((9,), [20, 20])
    x, y = data.inputs[:4], data.labels[:4]
    task, job = job_for(module, data)
    assert "global generator" in check_model(task, x, y, 4)
    by_stream = Objective.of(FCNN((9,), 4, dropout=0.5))
    assert check_model(by_stream, x, y, 4) is None
    assert why_not_vmapped(by_stream, x, y) is None
    before = torch.random.get_rng_state()
    first = updates(LoopExecutor(task, data, seed=1), job)
    assert torch.equal(first, updates(LoopExecutor(task, data, seed=1), job))
    assert not torch.equal(first, updates(LoopExecutor(task, data, seed=2), job))
    assert torch.equal(before, torch.random.get_rng_state())


def test_evaluation_does_not_depend_on_the_batch_size():
    module = FCNN((9,), 4, hidden=(13,), dropout=0.5)
    x, y = samples((9,))
    objective = Objective.of(module)
    flat = objective.spec.from_module(module)
    accuracy, loss = evaluate(objective, flat, x, y)
    logits = module.eval()(x).detach()
    assert accuracy == float((logits.argmax(1) == y).double().mean())
    assert loss == pytest.approx(float(F.cross_entropy(logits, y)), rel=1e-6)
    small = evaluate(objective, flat, x, y, batch=7)
    assert small == pytest.approx((accuracy, loss), rel=1e-6)


def test_payloads_must_be_declared():
    @dataclass(frozen=True)
    class Talkative(FedAvg):
        def send(self, params, state, cohort):
            return super().send(params, state, cohort) | {"gossip": params}

    data = training_data((9,), [20, 5])
    task, job = job_for(FCNN((9,), 4, hidden=(13,)), data)
    with pytest.raises(ConfigError, match="gossip"):
        updates(VmapExecutor(task, data, chunk=2), replace(job, rule=Talkative()))


@pytest.mark.parametrize("wrong", [lambda p: torch.cat([p, p], 1), lambda p: p.numpy()])
def test_payloads_must_have_their_shape(wrong):
    @dataclass(frozen=True)
    class Long(FedAvg):
        def send(self, params, state, cohort):
            return {"update": wrong(params)}

    data = training_data((9,), [20, 5])
    task, job = job_for(FCNN((9,), 4, hidden=(13,)), data)
    with pytest.raises(
        ConfigError, match=r"send returned .* for 'update'. Return a tensor of shape \[\d, "
    ):
        updates(VmapExecutor(task, data, chunk=2), replace(job, rule=Long()))


def test_steps_are_counted_copied_and_restored():
    steps = StepsDone()
    steps.add(np.array([5, 2]), 3)
    before = steps.copy()
    steps.add(np.array([2]), 4)
    assert steps.of(np.array([2, 3, 5])).tolist() == [7, 0, 3]
    assert before.of(np.array([2, 3, 5])).tolist() == [3, 0, 3]
    assert len(steps) == 2, "clients without steps are not stored"
    again = StepsDone.restored({**steps.tensors(), "other": torch.zeros(1)})
    assert again == steps
    assert StepsDone.restored(StepsDone().tensors()).of(np.array([1])).tolist() == [0]
