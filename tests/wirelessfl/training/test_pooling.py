"""Tests of the pooling that evaluation uses: equal to torch's, and used only where it is."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from wirelessfl.models import LeNet5
from wirelessfl.models.submodels import ParamSpec
from wirelessfl.training import image_layers as pooling
from wirelessfl.training.evaluation import evaluate
from wirelessfl.training.image_layers import FastPooling
from wirelessfl.training.objective import Objective
from wirelessfl.training.recording import record

IMAGES = torch.randn(5, 3, 8, 12, generator=torch.Generator().manual_seed(0))
SAME = [
    nn.MaxPool2d(2),
    nn.MaxPool2d((2, 2), stride=2),
    lambda x: F.max_pool2d(x, [2, 2]),
    lambda x: F.max_pool2d(input=x, kernel_size=2),
]
OTHERS = [
    nn.MaxPool2d(3),
    nn.MaxPool2d((2, 1)),
    nn.MaxPool2d(2, stride=1),
    nn.MaxPool2d(2, padding=1),
    nn.MaxPool2d(2, dilation=2),
    nn.MaxPool2d(2, ceil_mode=True),
    nn.AvgPool2d(2),
]


@pytest.fixture
def replaced(monkeypatch):
    """The shapes of the images that were pooled by maxima."""
    shapes, original = [], pooling.halved
    monkeypatch.setattr(pooling, "halved", lambda x: shapes.append(x.shape) or original(x))
    return shapes


@pytest.mark.parametrize("pool", SAME)
@pytest.mark.parametrize("form", [torch.contiguous_format, torch.channels_last])
def test_maxima_equal_max_pooling(pool, form, replaced):
    images = IMAGES.clone(memory_format=form)
    images[0, 0, 0] = 1.0  # ties
    images[1, 1, 2, 3] = torch.nan
    images[2, 2] = -torch.inf
    with torch.no_grad(), FastPooling():
        found = pool(images)
    assert len(replaced) == 1
    torch.testing.assert_close(found, pool(images), rtol=0, atol=0, equal_nan=True)


@pytest.mark.parametrize("pool", OTHERS)
def test_other_pooling_is_torchs(pool, replaced):
    with torch.no_grad(), FastPooling():
        found = pool(IMAGES)
    assert not replaced
    assert torch.equal(found, pool(IMAGES))


def test_odd_sizes_and_gradients_are_torchs(replaced):
    odd = IMAGES[:, :, 1:]
    with torch.no_grad(), FastPooling():
        assert torch.equal(
            F.max_pool2d(odd, 2), IMAGES[:, :, 1:7].unfold(2, 2, 2).unfold(3, 2, 2).amax((-2, -1))
        )
    tied = torch.ones(1, 1, 2, 2, requires_grad=True)
    with FastPooling():
        F.max_pool2d(tied, 2).sum().backward()
    assert tied.grad.flatten().tolist() == [1, 0, 0, 0]  # maxima would divide it among ties
    assert not replaced


@pytest.mark.parametrize("values", ["random", "ties"])
@pytest.mark.parametrize("form", [torch.contiguous_format, torch.channels_last])
@pytest.mark.parametrize(
    "further", [(), ([2, 2],), (2, 0, 1, False), (1,), (2, 1), (2, 0, 1, True)]
)
def test_indices_are_torchs(values, form, further):
    images = IMAGES.clone(memory_format=form)
    if values == "ties":
        images = images.round().relu()
    for some in (images, images[:, :, 1:], images[0]):
        found = pooling.max_pool2d_with_indices(some, [2, 2], *further)
        expected = torch.ops.aten.max_pool2d_with_indices(some, [2, 2], *further)
        assert all(map(torch.equal, found, expected))


def test_recorded_programs_use_it(monkeypatch):
    used, original = [], pooling._halved_with_indices
    monkeypatch.setattr(
        pooling, "_halved_with_indices", lambda x: used.append(x.shape) or original(x)
    )
    weight = torch.randn(4, 3, 3, 3)

    def gradient(images, weight):
        leaf = weight.detach().requires_grad_()
        loss = F.max_pool2d(F.conv2d(images, leaf, padding=1).relu(), 2).square().sum()
        return list(torch.autograd.grad(loss, leaf))

    program = record(gradient, [IMAGES, weight])
    assert torch.equal(program(IMAGES, weight)[0], gradient(IMAGES, weight)[0])
    assert used == [(5, 4, 8, 12)]


def test_evaluation_uses_it(replaced, monkeypatch):
    module = LeNet5((1, 28, 28), 10)
    objective = Objective(module, ParamSpec.of(module))
    x, y = torch.randn(7, 1, 28, 28), torch.arange(7)
    params = objective.spec.from_module(module)
    found = evaluate(objective, params, x, y)
    assert replaced == [(7, 6, 24, 24), (7, 16, 8, 8)]
    monkeypatch.setattr(pooling, "_of_2x2", lambda *args, **named: False)
    assert evaluate(objective, params, x, y) == found
