"""Convolutions as matrix products equal those of torch, with one group per client."""

import pytest
import torch
from torch.nn import functional as F

from wirelessfl.training.image_layers import LONG_SUM, Windows, convolved, gradients

SIDE_BY_SIDE = {"memory_format": torch.channels_last}


def randn(*shape):
    return torch.randn(*shape, dtype=torch.float64, requires_grad=True)


@pytest.mark.thorough(every=8)
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize(
    ("size", "kernel", "stride", "padding", "dilation"),
    [
        ((9, 8), (3, 3), (1, 1), (1, 1), (1, 1)),
        ((28, 28), (5, 5), (1, 1), (0, 0), (1, 1)),
        ((11, 12), (3, 2), (2, 1), (1, 2), (2, 1)),
        ((7, 7), (3, 3), (2, 2), (0, 0), (1, 1)),
        ((3, 4), (1, 1), (1, 1), (0, 0), (1, 1)),
    ],
)
@pytest.mark.parametrize(("clients", "batch"), [(1, 1), (3, 6), (2, 7)])
def test_equal_to_a_grouped_convolution(
    clients, batch, size, kernel, stride, padding, dilation, bias
):
    """Outputs and gradients of input, weight and bias agree in double precision."""
    torch.manual_seed(0)
    x = randn(batch, clients * 2, *size)
    weight, shift = randn(clients, 5, 2, *kernel), randn(clients, 5)
    images = x.contiguous(**SIDE_BY_SIDE)
    given = shift.flatten() if bias else None
    expected = F.conv2d(images, weight.flatten(0, 1), given, stride, padding, dilation, clients)
    grad = torch.randn_like(expected).contiguous(**SIDE_BY_SIDE)
    windows = Windows(clients, kernel, stride, padding, dilation)
    with torch.no_grad():
        found, pixels = convolved(windows, images, weight, shift if bias else None)
        back = gradients(windows, grad, pixels, weight, x.shape)
        assert gradients(windows, grad, pixels, weight, None)[0] is None
    assert found.is_contiguous(**SIDE_BY_SIDE)
    torch.testing.assert_close(found, expected)
    leaves = (x, weight, shift) if bias else (x, weight)
    for mine, theirs in zip(back, torch.autograd.grad(expected, leaves, grad), strict=False):
        torch.testing.assert_close(mine, theirs)


def test_long_sums_are_split(monkeypatch):
    """The sums over windows of one client become several products of at least LONG_SUM windows."""
    counts = []
    bmm = torch.bmm
    monkeypatch.setattr(torch, "bmm", lambda a, b: (counts.append(tuple(a.shape)), bmm(a, b))[1])
    windows = Windows(2, (1, 1), (1, 1), (0, 0), (1, 1))
    pixels, weight = torch.randn(2, 12 * 100, 3), torch.randn(2, 4, 3, 1, 1)
    grad = torch.randn(12, 2 * 4, 10, 10).contiguous(**SIDE_BY_SIDE)
    gradients(windows, grad, pixels, weight, None)
    (shape,) = counts
    assert LONG_SUM <= shape[-1] < 2 * LONG_SUM
    assert shape[0] * shape[-1] == 2 * 12 * 100
