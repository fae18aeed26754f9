"""The stacked executor with convolution, ReLU and 2x2 max-pooling as one layer, compiled by Numba.

At most one of the four outputs in a pooling window has a gradient, and the backward pass visits
only that one: a quarter of the multiplications. (Where an input or weight is infinite, products
with the gradients of 0 that it leaves out would be NaN.) Images are [clients, batch, height, width,
channels], and channels fill the lanes of vectors. One thread computes the clients one after the
other, in a fixed order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import torch
from numba import njit
from torch import Tensor, nn

from wirelessfl.models.submodels import ParamSpec
from wirelessfl.training.executor import TrainingData
from wirelessfl.training.layers import (
    Conv2d,
    Free,
    FromImages,
    Layer,
    Params,
    ReLU,
    Saved,
    Scale,
    ToImages,
    Write,
)
from wirelessfl.training.objective import Objective
from wirelessfl.training.stacked import NotAChainError, StackedExecutor
from wirelessfl.training.vectors import (
    LANES,
    OFF,
    added,
    load,
    lowest,
    matches,
    pooled,
    store,
    up,
    zeros,
)

WINDOW = 24 * LANES
"""Most numbers of a convolution's window: they stay in registers."""
POOLING = str(nn.MaxPool2d(2))


class Kernels(NamedTuple):
    """Compiled functions of flat arrays; in the last ones they write their results.

    Attributes:
        forward: outputs, and positions of the maxima in their windows.
        weights: gradients of weight [clients, outputs, row, column, channel] and bias.
        inputs: gradient of the input.
    """

    forward: Callable[..., None]
    weights: Callable[..., None]
    inputs: Callable[..., None]


def lanes_of(outputs: int) -> int:
    """Output channels that are computed together."""
    return min(up(outputs), LANES if outputs % LANES == 0 or outputs < LANES else 8)


@cache
def kernels(channels: int, outputs: int, kernel: int, height: int, width: int) -> Kernels:
    """Kernels for images of one shape, which include the padding.

    They are compiled when they are first called, in a second each, and stored on disk by Numba.

    Args:
        channels, outputs: of the convolution.
        kernel: height and width of its kernel.
        height, width: of its input.
    """
    row, line, image = kernel * channels, width * channels, height * width * channels
    wide = (width - kernel + 1) // 2
    pixels = (height - kernel + 1) // 2 * wide
    lanes = lanes_of(outputs)
    padded, used = up(outputs, lanes), min(lanes, outputs)

    def forward(x, weight, bias, out, index, clients, batch):  # type: ignore[no-untyped-def]
        for client in range(clients):
            for first in range(0, outputs, lanes):
                start = load(bias, client * padded + first, 0, 1, lanes)
                for n in range(client * batch, (client + 1) * batch):
                    for p in range(0, pixels, 2):
                        q = min(p + 1, pixels - 1)
                        s = n * image + p // wide * 2 * line + p % wide * 2 * channels
                        t = n * image + q // wide * 2 * line + q % wide * 2 * channels
                        a0 = a1 = a2 = a3 = b0 = b1 = b2 = b3 = start
                        at = client * kernel * row * padded + first
                        for _ in range(kernel):
                            for j in range(row):
                                v = load(weight, at, 0, 1, lanes)
                                at += padded
                                a0 = added(a0, x[np.uint64(s + j)], v)
                                a1 = added(a1, x[np.uint64(s + j + channels)], v)
                                a2 = added(a2, x[np.uint64(s + j + line)], v)
                                a3 = added(a3, x[np.uint64(s + j + line + channels)], v)
                                b0 = added(b0, x[np.uint64(t + j)], v)
                                b1 = added(b1, x[np.uint64(t + j + channels)], v)
                                b2 = added(b2, x[np.uint64(t + j + line)], v)
                                b3 = added(b3, x[np.uint64(t + j + line + channels)], v)
                            s += line
                            t += line
                        pooled(out, index, (n * pixels + p) * outputs + first, a0, a1, a2, a3, used)
                        pooled(out, index, (n * pixels + q) * outputs + first, b0, b1, b2, b3, used)

    def weights(x, grad, index, of_weight, of_bias, clients, batch, pixel, channel):  # type: ignore[no-untyped-def]
        for client in range(clients):
            here, numbers = client * outputs, kernel * row
            for i in range(here * numbers, (here + outputs) * numbers):
                of_weight[np.uint64(i)] = np.float32(0.0)
            for o in range(here, here + outputs):
                of_bias[np.uint64(o)] = np.float32(0.0)
            for n in range(client * batch, (client + 1) * batch):
                for o in range(outputs):
                    total, amount = zeros(kernel, row), np.float32(0.0)
                    for p in range(pixels):
                        which = np.int64(index[np.uint64((n * pixels + p) * outputs + o)])
                        if which < OFF:
                            g = grad[np.uint64(n * pixels * outputs + p * pixel + o * channel)]
                            amount += g
                            at = n * image + (p // wide * 2 + (which >> 1)) * line
                            at += (p % wide * 2 + (which & 1)) * channels
                            total = added(total, g, load(x, at, line, kernel, row))
                    place = (here + o) * numbers
                    before = load(of_weight, place, row, kernel, row)
                    store(of_weight, place, row, added(before, np.float32(1.0), total), row)
                    of_bias[np.uint64(here + o)] += amount

    def inputs(weight, grad, index, of_input, clients, batch, pixel, channel):  # type: ignore[no-untyped-def]
        for client in range(clients):
            for n in range(client * batch, (client + 1) * batch):
                for i in range(n * image, (n + 1) * image):
                    of_input[np.uint64(i)] = np.float32(0.0)
                for p in range(pixels):
                    corner = n * image + p // wide * 2 * line + p % wide * 2 * channels
                    for which in range(OFF):
                        total, some = zeros(kernel, row), False
                        for first in range(0, outputs, lanes):
                            start = (n * pixels + p) * outputs + first
                            bits = matches(index, start, np.uint8(which), used)
                            some |= bits != 0
                            while bits:
                                o = first + lowest(bits)
                                bits &= bits - 1
                                g = grad[np.uint64(n * pixels * outputs + p * pixel + o * channel)]
                                place = (client * outputs + o) * kernel * row
                                total = added(total, g, load(weight, place, row, kernel, row))
                        if some:
                            at = corner + (which >> 1) * line + (which & 1) * channels
                            before = load(of_input, at, line, kernel, row)
                            store(of_input, at, line, added(before, np.float32(1.0), total), row)

    compiled = njit(cache=True, nogil=True, error_model="numpy")
    return Kernels(compiled(forward), compiled(weights), compiled(inputs))


@dataclass(frozen=True)
class FusedConv2d(Layer):
    """nn.Conv2d, ReLU and nn.MaxPool2d(2) on images [clients, batch, height, width, channels].

    Args:
        conv: the convolution.
        outputs: its output channels.
        kernel: height and width of its kernel.
        shape: height, width and channels of its input, without padding.
        last: whether the output is flat, [clients, batch, channels * height * width].
    """

    conv: Conv2d
    outputs: int
    kernel: int
    shape: tuple[int, int, int]
    last: bool
    trainable = True

    @classmethod
    def of(
        cls, layers: Sequence[Layer], spec: ParamSpec, shape: tuple[int, int, int], *, last: bool
    ) -> FusedConv2d:
        """The layer that replaces ``layers``.

        Raises:
            NotAChainError: there is no such layer.
        """
        match layers:
            case [Conv2d() as conv, Free(nn.MaxPool2d() as pool), ReLU()]:
                outputs, channels, kernel, other = spec.shapes[conv.weight]
                fits = up(kernel * channels, LANES) * kernel <= WINDOW
                fits &= (outputs <= LANES or outputs % 8 == 0) and kernel == other
                fits &= conv.stride == conv.dilation == (1, 1) and str(pool) == POOLING
                if fits:
                    return cls(conv, outputs, kernel, shape, last)
        raise NotAChainError("it has other layers than convolution, ReLU and max-pooling")

    @property
    def pooled(self) -> tuple[int, int]:
        """Height and width of the output."""
        height, width = (
            (size + 2 * padding - self.kernel + 1) // 2
            for size, padding in zip(self.shape[:2], self.conv.padding, strict=True)
        )
        return height, width

    @property
    def _kernels(self) -> Kernels:
        height, width, channels = self.shape
        high, wide = self.conv.padding
        return kernels(channels, self.outputs, self.kernel, height + 2 * high, width + 2 * wide)

    def forward(self, x: Tensor, params: Params, keys: Tensor) -> tuple[Tensor, Saved]:
        """Compute the output; save the padded input and the position of each maximum."""
        clients, batch = x.shape[:2]
        high, wide = self.conv.padding
        x = x.view(clients, batch, *self.shape)
        if high or wide:
            x = nn.functional.pad(x, (0, 0, wide, wide, high, high))
        weight = params[self.conv.weight].permute(0, 3, 4, 2, 1)
        lanes = up(self.outputs, lanes_of(self.outputs))
        filled = x.new_zeros(*weight.shape[:-1], lanes)
        filled[..., : self.outputs] = weight
        bias = x.new_zeros(clients, lanes)
        if self.conv.bias is not None:
            bias[:, : self.outputs] = params[self.conv.bias]
        out = x.new_empty(clients, batch, *self.pooled, self.outputs)
        index = torch.empty_like(out, dtype=torch.uint8)
        self._kernels.forward(*map(_flat, (x, filled, bias, out, index)), clients, batch)
        if self.last:
            out = out.flatten(2, 3).transpose(2, 3)
        return out.flatten(2), (x, index)

    def backward(
        self, grad: Tensor, saved: Saved, params: Params, write: Write, inputs: bool
    ) -> Tensor:
        """Compute gradients from those outputs that are maxima of their windows."""
        x, index = saved
        clients, batch = x.shape[:2]
        pixels = self.pooled[0] * self.pooled[1]
        at = (1, pixels) if self.last else (self.outputs, 1)
        flat, positions = _flat(grad), _flat(index)
        weight = params[self.conv.weight]
        of_weight = x.new_empty(clients, self.outputs, self.kernel, self.kernel, x.shape[-1])
        of_bias = x.new_empty(clients, self.outputs)
        self._kernels.weights(
            _flat(x), flat, positions, _flat(of_weight), _flat(of_bias), clients, batch, *at
        )
        if inputs:
            by_row, down = _flat(weight.permute(0, 1, 3, 4, 2)), torch.empty_like(x)
            self._kernels.inputs(by_row, flat, positions, _flat(down), clients, batch, *at)
            high, wide = self.conv.padding
            down = down[:, :, high : x.shape[2] - high, wide : x.shape[3] - wide]
            grad = down.flatten(2)
        write.add(self.conv.weight, of_weight.permute(0, 1, 4, 2, 3))
        if self.conv.bias is not None:
            write.add(self.conv.bias, of_bias)
        return grad


def _flat(tensor: Tensor) -> Any:
    """The numbers of a contiguous tensor, or of a copy, as an array."""
    return tensor.reshape(-1).numpy()


class ToPixels(Layer):
    """Convert [clients, batch, channels, height, width] to channels last, [clients, batch, ...]."""

    def forward(self, x: Tensor, params: Params, keys: Tensor) -> tuple[Tensor, Saved]:
        """Convert the samples; save nothing."""
        return x.permute(0, 1, 3, 4, 2).flatten(2), ()

    def backward(
        self, grad: Tensor, saved: Saved, params: Params, write: Write, inputs: bool
    ) -> Tensor:
        """Return ``grad``: this is the first layer, whose input gradient is not used."""
        return grad


def with_fused(layers: Sequence[Layer], objective: Objective, data: TrainingData) -> list[Layer]:
    """The layers with each convolution, pooling and ReLU as one layer.

    Raises:
        NotAChainError: one of them has no kernel; the message says why.
    """
    if not isinstance(layers[0], ToImages):
        raise NotAChainError("it does not begin with a convolution")
    end = next(i for i, layer in enumerate(layers) if isinstance(layer, FromImages))
    images, fused = list(layers[1:end]), list[Layer]([ToPixels()])
    channels, height, width = data.inputs.shape[1:]
    while images:
        if isinstance(images[0], Scale):
            fused.append(Scale(images[0].weight, images=False))
            del images[0]
        block, images = images[:3], images[3:]
        layer = FusedConv2d.of(block, objective.spec, (height, width, channels), last=not images)
        fused.append(layer)
        height, width, channels = *layer.pooled, layer.outputs
    return [*fused, *layers[end + 1 :]]


class FusedExecutor(StackedExecutor):
    """The stacked executor with fused convolutions.

    Submodels that leave channels out train with the stacked layers: kernels are compiled for the
    shapes of the full model.
    """

    name = "fused"

    def __init__(
        self,
        objective: Objective,
        data: TrainingData,
        chunk: int,
        *,
        layers: list[Layer] | None = None,
    ) -> None:
        super().__init__(objective, data, chunk, layers=layers)
        self.fused = with_fused(self.layers, objective, data)

    def _layers(self, params: Params) -> list[Layer]:
        """The fused layers, if ``params`` have all channels."""
        full = all(
            params[layer.conv.weight].shape[1:] == self.objective.spec.shapes[layer.conv.weight]
            for layer in self.fused
            if isinstance(layer, FusedConv2d)
        )
        return self.fused if full else self.layers
