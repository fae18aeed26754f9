"""Recorded programs give the same results as the functions that they record."""

from dataclasses import replace

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from tests.wirelessfl.training.jobs import job_for, plain_loop, training_data, updates
from wirelessfl.models import FCNN
from wirelessfl.training.batches import BatchSource
from wirelessfl.training.descent import record_descent
from wirelessfl.training.module_executors import VmapExecutor
from wirelessfl.training.objective import Objective
from wirelessfl.training.recording import NotRecordableError, record
from wirelessfl.training.stacked import StackedExecutor

LR = 0.1


def normal(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def by_autograd(loss):
    """Gradients with respect to all inputs but the last, which is the data."""

    def gradients(*tensors):
        leaves = [tensor.detach().requires_grad_() for tensor in tensors[:-1]]
        value = loss(*leaves, tensors[-1])
        return list(torch.autograd.grad(value, leaves, materialize_grads=True))

    return gradients


def product_of_weights(v, w, x):
    """A function whose gradient for each parameter depends on the other parameter."""
    return (x @ v @ w).square().mean()


def weights_first(v, w, x):
    return (x @ (v @ w)).square().mean()


def tied(v, w, x):
    return (torch.tanh(x @ v) @ v.t() @ w).square().mean()


def overwriting(v, w, x):
    """A function that overwrites inputs and outputs of its matrix products in place."""
    hidden = F.relu(x @ v, inplace=True)
    return (hidden @ w).mul_(2.0).add_(1.0).square().mean()


def unused(v, w, x):
    return (x @ v).square().mean()


def shared_memory(v, w, x):
    """A function of slices and expanded views of the weights."""
    return ((x @ v[:, :4].contiguous()) * w[0, :4].expand(len(x), 4)).square().mean()


def of_each_other(v, w, x):
    """A function whose gradient for each parameter is the other parameter, transposed."""
    return (v * w.t()[: len(v)]).sum() + 0.0 * x.sum()


def scalar_views(v, w, x):
    return (x @ v).mean().t() + (x @ w).square().mean()


class FrozenRow(torch.autograd.Function):
    """A matrix product whose backward pass sets a row of the weight gradient to zero."""

    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        return x @ w

    @staticmethod
    def backward(ctx, grad):
        x, w = ctx.saved_tensors
        of_w = x.t() @ grad
        of_w[0].zero_()
        return grad @ w.t(), of_w


def written_gradient(v, w, x):
    return FrozenRow.apply(x @ v, w).square().mean()


LOSSES = [
    product_of_weights,
    weights_first,
    tied,
    overwriting,
    unused,
    shared_memory,
    of_each_other,
    scalar_views,
    written_gradient,
]


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.__name__)
@pytest.mark.parametrize("flipped", [False, True])
def test_a_recorded_step_equals_sgd(loss, flipped):
    """Replays on new values agree with autograd to 1e-5."""
    v = normal(6, 6, seed=1)
    w = normal(6, 6, seed=2)
    if flipped:  # column-major memory
        v, w = v.t(), w.t()
    gradients = by_autograd(loss)
    step = record_descent(gradients, [v, w, normal(9, 6)], 2, LR)
    assert torch.equal(v, (normal(6, 6, seed=1).t() if flipped else normal(6, 6, seed=1)))
    expected = [v.clone(), w.clone()]
    for seed in range(3):
        x = normal(9, 6, seed=10 + seed)
        found = gradients(*expected, x)
        expected = [value - LR * grad for value, grad in zip(expected, found, strict=True)]
        assert list(step(v, w, x)) == []
        assert torch.allclose(v, expected[0], atol=1e-5)
        assert torch.allclose(w, expected[1], atol=1e-5)


def test_updates_are_fused_with_the_products():
    """One fused product updates the weight, without a separate product, scaling or subtraction."""

    def loss(w, b, x):
        return F.linear(x, w, b).relu().square().mean()

    w, b, x = normal(50, 40), normal(50), normal(8, 40)
    step = record_descent(by_autograd(loss), [w, b, x], 2, LR)
    with torch.profiler.profile(record_shapes=True) as profile:
        step(w, b, x)
    wide = [e.name for e in profile.events() if [50, 40] in e.input_shapes]
    assert "aten::addmm_" in wide
    assert not {"aten::sub_", "aten::mul", "aten::mm"} & set(wide)


def test_functions_that_depend_on_values_or_draw_cannot_be_recorded():
    x = normal(4, 4)
    for function in (
        lambda x: [x * x.sum().item()],
        lambda x: [x[x > 0]],
        lambda x: [F.dropout(x)],
        lambda x: [torch.tensor([1.0, 2.0, 3.0, 4.0]).mul_(2.0) * x],  # would grow with each replay
    ):
        with pytest.raises(NotRecordableError):
            record(function, [x])


def test_constants_are_captured_by_reference():
    table = normal(4, 4)
    program = record(lambda x: [x + table, x.t()], [normal(4, 4)])
    x = normal(4, 4, seed=5)
    total, turned = program(x)
    assert torch.equal(total, x + table)
    assert torch.equal(turned, x.t())
    table.zero_()
    assert torch.equal(program(x)[0], x)


def test_indexing_and_attention_are_recorded():
    rows = torch.tensor([2, 0])
    x = normal(3, 2, 5, 4)
    program = record(lambda x: [x[rows], F.scaled_dot_product_attention(x, x, x)], [x])
    picked, attended = program(2 * x)
    assert torch.equal(picked, 2 * x[rows])
    expected = F.scaled_dot_product_attention(2 * x, 2 * x, 2 * x)
    assert torch.allclose(attended, expected, atol=1e-6)


class Padded(nn.Module):
    """A model of tokens whose embedding of the padding token is not trained."""

    def __init__(self):
        super().__init__()
        self.table, self.layer = nn.Embedding(6, 8, padding_idx=0), nn.Linear(8, 4)

    def forward(self, x):
        return self.layer(self.table((3 * x).abs().long().clamp(0, 5)).mean(1))


@pytest.mark.thorough(every=8)
@pytest.mark.parametrize("chunk", [1, 3])
@pytest.mark.parametrize("flat", [False, True])
def test_the_padding_embedding_is_not_trained(chunk, flat):
    torch.manual_seed(0)
    data = training_data((9,), [20, 30, 40])
    module = Padded()
    task, job = job_for(module, data)
    found = updates(VmapExecutor(task, data, chunk, flat=flat), job)
    assert torch.allclose(found, plain_loop(module, data, job, 0.1), atol=1e-6)
    assert not found[:, :8].any()


def test_a_shape_that_cannot_be_recorded_does_not_affect_other_shapes():
    class Picky(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(9, 4)

        def forward(self, x):
            alone = torch._C._functorch.maybe_current_level() is None  # outside vmap
            return -self.layer(x) if alone and float(x.sum()) > 1e9 else self.layer(x)

    data = training_data((9,), [20, 30, 40, 25])
    task, job = job_for(Picky(), data)
    fresh, used = (VmapExecutor(task, data, 4, flat=True) for _ in range(2))
    updates(used, job.of(slice(0, 1)))
    assert torch.equal(updates(fresh, job), updates(used, job))


class Looking(nn.Module):
    """A module that cannot be recorded, because it branches on its input."""

    def __init__(self):
        super().__init__()
        self.layer, self.spare = nn.Linear(9, 4), nn.Linear(2, 2)

    def forward(self, x):
        return self.layer(x) if float(x.sum()) > 1e9 else self.layer(2 * x)


def test_models_that_cannot_be_recorded_train_without_recording():
    module = Looking()
    data = training_data((9,), [20, 30])
    objective, job = job_for(module, data)
    found = updates(VmapExecutor(objective, data, 1, flat=True), job)
    assert torch.equal(found, updates(VmapExecutor(objective, data, 1), job))
    assert found[:, : objective.spec.offsets["spare.weight"]].abs().min() > 0
    assert not found[:, objective.spec.offsets["spare.weight"] :].any()  # unused


def test_frozen_parameters_and_buffers_are_part_of_the_program():
    class Scaled(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.last = nn.Linear(9, 5), nn.Linear(5, 4)
            self.first.weight.requires_grad_(False)
            self.register_buffer("scale", torch.tensor([3.0]))

        def forward(self, x):
            return self.last(torch.tanh(self.first(x) * self.scale))

    module = Scaled()
    data = training_data((9,), [20, 30, 40])
    objective, job = job_for(module, data)
    for chunk in (1, 3):
        plain = updates(VmapExecutor(objective, data, chunk), job)
        flat = VmapExecutor(objective, data, chunk, flat=True)
        assert torch.allclose(updates(flat, job), plain, atol=1e-6)
    assert Objective.of(module).spec.shapes.keys() == objective.spec.shapes.keys()


@pytest.mark.parametrize("chunk", [2, 5])
def test_batches_drawn_ahead_are_those_of_the_next_round(chunk, monkeypatch):
    """Draws while a GPU works give equal updates, also when clients or their steps change.

    If the same clients train every time, only their first two trainings wait for a draw.
    """
    module = FCNN((9,), 4, hidden=(13,))
    data = training_data((9,), [20, 5, 50, 16, 33], batch_size=8)
    task, job = job_for(module, data, steps=3)
    executor, plain = (StackedExecutor(task, data, chunk, recorded=r) for r in (True, False))
    rounds = [(slice(0, 5), 3 * number, 3) for number in range(5)]
    rounds += [(slice(0, 5), 15, 2), (slice(0, 5), 30, 3), (slice(1, 4), 33, 3)]
    waits, drawn = [], BatchSource.draw
    in_advance = executor._draw_ahead

    def ahead(job):
        with monkeypatch.context() as patch:
            patch.setattr(BatchSource, "draw", drawn)
            in_advance(job)

    def draw(source, *arguments):
        waits.append(arguments)
        return drawn(source, *arguments)

    monkeypatch.setattr(executor, "_draw_ahead", ahead)
    for number, (part, first, steps) in enumerate(rounds):
        cohort = job.of(part)
        cohort = replace(cohort, first_steps=cohort.first_steps + first, local_steps=steps)
        expected = updates(plain, cohort)
        before = len(waits)
        with monkeypatch.context() as patch:
            patch.setattr(BatchSource, "draw", draw)
            assert torch.equal(updates(executor, cohort), expected)
        if chunk == 5:
            assert len(waits) - before == (number not in (2, 3, 4))
