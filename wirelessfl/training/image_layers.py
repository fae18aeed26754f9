"""Fast image layers with torch's results: convolutions on GPUs and max-pooling on CPUs.

Convolutions of many clients are matrix products of their windows: on GPUs a convolution with one
group per client runs at a fraction of their speed. Images are [batch, clients * channels, height,
width] in channels-last memory. For max-pooling of 2x2 windows torch takes 3 to 5 ns per input on
one thread if channels are not the last dimension; element-wise maxima take 0.2 to 0.3 ns, and 1.3
ns with the positions of the maxima, which training needs. Only the position of the maximum of a
window with NaN may differ.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F
from torch.overrides import TorchFunctionMode

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
        pixels = x.permute(0, 2, 3, 1)
        if high or wide:  # otherwise it would copy the images
            pixels = F.pad(pixels, (0, 0, wide, wide, high, high))
        pixels = pixels.contiguous()
        batch, *size, channels = pixels.shape
        width = channels // self.clients
        down, across = size[1] * channels, channels
        rows, columns = self._counts(size)
        strided = pixels.as_strided(
            (self.clients, batch, rows, columns, *self.kernel, width),
            (
                width,
                size[0] * down,
                self.stride[0] * down,
                self.stride[1] * across,
                self.dilation[0] * down,
                self.dilation[1] * across,
                1,
            ),
        )
        return strided.reshape(self.clients, batch * rows * columns, -1)

    def added(self, windows: Tensor, shape: torch.Size) -> Tensor:
        """Images of ``shape`` whose pixels are the sums of the windows' pixels there."""
        batch, channels, *inside = shape
        size = [n + 2 * p for n, p in zip(inside, self.padding, strict=True)]
        rows, columns = self._counts(size)
        apart = windows.view(self.clients, batch, rows, columns, *self.kernel, -1)
        total = windows.new_zeros(
            self.clients, batch, *size, channels // self.clients, dtype=_wide(windows)
        )
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
        total = total.to(windows.dtype)
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
        x: images.
        weight: [clients, outputs, channels, height, width].
        bias: [clients, outputs], or None.

    Returns:
        The images, and the pixels of all windows, which ``gradients`` needs.
    """
    pixels = windows.of(x)
    matrix = _matrix(weight).transpose(1, 2)
    if bias is None:
        products = torch.bmm(pixels, matrix)
    else:
        products = torch.baddbmm(bias[:, None], pixels, matrix)
    return windows.images(products, x.shape), pixels


def gradients(
    windows: Windows,
    grad: Tensor,
    pixels: Tensor,
    weight: Tensor,
    shape: torch.Size | None,
) -> tuple[Tensor | None, Tensor, Tensor]:
    """Gradients of input, weight and bias.

    Args:
        grad: gradient of the output images.
        pixels: the second result of ``convolved``.
        weight: the weights given to it.
        shape: shape of its input; None if the gradient of the input is not needed.

    Returns:
        The gradients of the input (or None), of the weight, and of the bias; the last two are sums
        in float32.
    """
    values = windows.values(grad)
    clients, outputs, channels, *kernel = weight.shape
    products = _summed_products(values, pixels, len(grad))
    of_weight = products.view(clients, outputs, *kernel, channels).permute(0, 1, 4, 2, 3)
    of_input = None
    if shape is not None:
        of_input = windows.added(torch.bmm(values, _matrix(weight)), shape)
    return of_input, of_weight.contiguous(), values.sum(1, dtype=of_weight.dtype)


def _summed_products(values: Tensor, pixels: Tensor, images: int) -> Tensor:
    """Sums over all windows of the products of values and pixels, [clients, outputs, pixels].

    The sum of one client is long and its result small, so it is split into sums over a few images,
    which run in parallel.
    """
    clients, count, outputs = values.shape
    share = min(-(-LONG_SUM // (count // images)), images)
    while images % share:
        share += 1
    parts = images // share
    values, pixels = (
        factor.reshape(clients * parts, count // parts, -1) for factor in (values, pixels)
    )
    products = torch.bmm(values.transpose(1, 2), pixels)
    return products.view(clients, parts, outputs, -1).sum(1, dtype=_wide(products))


def _wide(rounded: Tensor) -> torch.dtype:
    """The dtype of sums."""
    return torch.promote_types(rounded.dtype, torch.float32)


def _matrix(weight: Tensor) -> Tensor:
    """Weights [clients, outputs, height * width * channels]."""
    return weight.permute(0, 1, 3, 4, 2).flatten(2)


Size = int | Sequence[int]
KERNEL = (2, 2)
UNUSED = {"padding": 0, "dilation": 1, "ceil_mode": False, "return_indices": False}
"""Further arguments of max-pooling, with the only values that are replaced."""


class FastPooling(TorchFunctionMode):
    """Replaces max-pooling without gradients inside, where ``halved`` is the same function."""

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        """Call ``func``, or ``halved`` instead of it."""
        if func is F.max_pool2d and not torch.is_grad_enabled() and _of_2x2(*args, **kwargs or {}):
            return halved(args[0])
        return func(*args, **(kwargs or {}))


def halved(x: Tensor) -> Tensor:
    """Maxima of the 2x2 windows of images [..., height, width], both even."""
    tall = torch.maximum(x[..., 0::2, :], x[..., 1::2, :])
    return torch.maximum(tall[..., 0::2], tall[..., 1::2])


def max_pool2d_with_indices(
    x: Tensor, kernel_size: Size, stride: Size = (), *further: Any
) -> tuple[Tensor, Tensor]:
    """The operation of this name in torch, for recorded programs."""
    if x.is_contiguous() and _of_2x2(x, kernel_size, stride, *further):
        return _halved_with_indices(x)
    maxima: tuple[Tensor, Tensor] = torch.ops.aten.max_pool2d_with_indices(
        x, kernel_size, stride, *further
    )
    return maxima


def _halved_with_indices(x: Tensor) -> tuple[Tensor, Tensor]:
    """Maxima of the 2x2 windows, and positions of the first ones in their images by rows."""
    height, width = x.shape[-2:]
    top, bottom = x[..., 0::2, :], x[..., 1::2, :]
    tall, below = torch.maximum(top, bottom), bottom > top
    left, right = tall[..., 0::2], tall[..., 1::2]
    # Bool arithmetic on contiguous tensors takes a hundredth of the time of torch.where.
    left_below, right_below = below[..., 0::2].contiguous(), below[..., 1::2].contiguous()
    is_right = right > left
    is_right |= (right == left) & left_below & ~right_below
    is_below = (is_right & right_below) | (left_below & ~is_right)
    index = is_below.long().mul_(width).add_(is_right.long())
    first = torch.arange(0, height, 2)[:, None] * width + torch.arange(0, width, 2)
    return torch.maximum(left, right), index.add_(first)


def _of_2x2(
    x: Tensor, kernel_size: Any = None, stride: Any = None, *further: Any, **named: Any
) -> bool:
    """Whether these arguments of max-pooling are those of ``halved``, on a CPU."""
    values = {**dict(zip(UNUSED, further, strict=False)), **named}
    return (
        x.device.type == "cpu"
        and x.shape[-1] % 2 == x.shape[-2] % 2 == 0
        and _pair(kernel_size) == KERNEL
        and (not stride or _pair(stride) == KERNEL)
        and all(_pair(value) == _pair(UNUSED[name]) for name, value in values.items())
    )


def _pair(size: Any) -> tuple[Any, ...]:
    return tuple(size) if isinstance(size, list | tuple) else (size, size)
