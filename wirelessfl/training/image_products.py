"""Convolutions of many clients as matrix products of their windows, for GPUs.

A convolution with one group per client runs there at a fraction of the speed of matrix products.
Images are [batch, clients * channels, height, width] in channels-last memory.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

LONG_SUM = 256
"""Least number of windows per product whose results are added up afterwards."""


@dataclass(frozen=True)
class Windows:
    """The windows of a convolution.

    Args:
        clients: number of clients, whose channels lie side by side.
        kernel: height and width of the kernel.
        stride: steps between windows.
        padding: zeros at each side.
        dilation: steps between the pixels of a window.
    """

    clients: int
    kernel: tuple[int, ...]
    stride: tuple[int, ...]
    padding: tuple[int, ...]
    dilation: tuple[int, ...]

    def of(self, x: Tensor) -> Tensor:
        """Pixels of all windows, [clients, windows, kernel height * width * channels]."""
        high, wide = self.padding
        pixels = F.pad(x.permute(0, 2, 3, 1), (0, 0, wide, wide, high, high)).contiguous()
        batch, *size, channels = pixels.shape
        each = channels // self.clients
        down, across = size[1] * channels, channels
        rows, columns = self._counts(size)
        found = pixels.as_strided(
            (self.clients, batch, rows, columns, *self.kernel, each),
            (
                each,
                size[0] * down,
                self.stride[0] * down,
                self.stride[1] * across,
                self.dilation[0] * down,
                self.dilation[1] * across,
                1,
            ),
        )
        return found.reshape(self.clients, batch * rows * columns, -1)

    def added(self, windows: Tensor, shape: torch.Size) -> Tensor:
        """Images of ``shape`` whose pixels are the sums of the windows' pixels there."""
        batch, channels, *inside = shape
        size = [n + 2 * p for n, p in zip(inside, self.padding, strict=True)]
        rows, columns = self._counts(size)
        apart = windows.view(self.clients, batch, rows, columns, *self.kernel, -1)
        total = windows.new_zeros(self.clients, batch, *size, channels // self.clients)
        for i in range(self.kernel[0]):
            for j in range(self.kernel[1]):
                top, left = i * self.dilation[0], j * self.dilation[1]
                total[
                    :,
                    :,
                    top : top + self.stride[0] * (rows - 1) + 1 : self.stride[0],
                    left : left + self.stride[1] * (columns - 1) + 1 : self.stride[1],
                ] += apart[..., i, j, :]
        (high, wide), (height, width) = self.padding, inside
        total = total[:, :, high : high + height, wide : wide + width]
        return total.permute(1, 2, 3, 0, 4).reshape(batch, height, width, -1).permute(0, 3, 1, 2)

    def images(self, values: Tensor, shape: torch.Size) -> Tensor:
        """Images of the windows' values [clients, windows, channels], from inputs of ``shape``."""
        size = [n + 2 * p for n, p in zip(shape[2:], self.padding, strict=True)]
        apart = values.view(self.clients, shape[0], *self._counts(size), -1)
        return apart.permute(1, 2, 3, 0, 4).flatten(3).permute(0, 3, 1, 2)

    def values(self, images: Tensor) -> Tensor:
        """The inverse of ``images``: [clients, windows, channels]."""
        pixels = images.permute(0, 2, 3, 1)
        apart = pixels.reshape(*pixels.shape[:3], self.clients, -1)
        return apart.permute(3, 0, 1, 2, 4).reshape(self.clients, -1, apart.shape[-1])

    def _counts(self, size: list[int]) -> list[int]:
        """Windows per column and per row of padded images of ``size``."""
        return [
            (n - d * (k - 1) - 1) // s + 1
            for n, k, s, d in zip(size, self.kernel, self.stride, self.dilation, strict=True)
        ]


def convolved(
    windows: Windows, x: Tensor, weight: Tensor, bias: Tensor | None
) -> tuple[Tensor, Tensor]:
    """The convolution of images with each client's weights.

    Args:
        windows: the windows.
        x: images.
        weight: [clients, outputs, channels, height, width].
        bias: [clients, outputs], or None.

    Returns:
        The images, and the pixels of all windows, which ``gradients`` needs.
    """
    pixels = windows.of(x)
    matrix = _matrix(weight).transpose(1, 2)
    if bias is None:
        found = torch.bmm(pixels, matrix)
    else:
        found = torch.baddbmm(bias[:, None], pixels, matrix)
    return windows.images(found, x.shape), pixels


def gradients(
    windows: Windows,
    grad: Tensor,
    pixels: Tensor,
    weight: Tensor,
    shape: torch.Size | None,
) -> tuple[Tensor | None, Tensor, Tensor]:
    """Gradients of input, weight and bias.

    Args:
        windows: the windows.
        grad: gradient of the output images.
        pixels: the second result of ``convolved``.
        weight: the weights given to it.
        shape: shape of its input; None if the gradient of the input is not needed.

    Returns:
        The gradients of the input (or None), of the weight, and of the bias.
    """
    values = windows.values(grad)
    clients, outputs, channels, *kernel = weight.shape
    found = _summed_products(values, pixels, len(grad))
    of_weight = found.view(clients, outputs, *kernel, channels).permute(0, 1, 4, 2, 3)
    of_input = None
    if shape is not None:
        of_input = windows.added(torch.bmm(values, _matrix(weight)), shape)
    return of_input, of_weight.contiguous(), values.sum(1)


def _summed_products(values: Tensor, pixels: Tensor, images: int) -> Tensor:
    """Sums over all windows of the products of values and pixels, [clients, outputs, pixels].

    The sum of one client is long and its result small, so it is split into sums over a few images,
    which run in parallel.
    """
    clients, count, outputs = values.shape
    each = min(-(-LONG_SUM // (count // images)), images)
    while images % each:
        each += 1
    parts = images // each
    values, pixels = (one.reshape(clients * parts, count // parts, -1) for one in (values, pixels))
    found = torch.bmm(values.transpose(1, 2), pixels)
    return found.view(clients, parts, outputs, -1).sum(1)


def _matrix(weight: Tensor) -> Tensor:
    """Weights [clients, outputs, height * width * channels]."""
    return weight.permute(0, 1, 3, 4, 2).flatten(2)
