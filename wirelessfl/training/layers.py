"""Layers of many clients at once, forward and backward by hand.

Samples are [clients, batch, ...]. Behind a convolution they are images of all clients side by
side, [batch, clients * channels, height, width] in channels-last memory: what CPUs and GPUs
convolve fastest in groups.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn

from wirelessfl.models.dropout import StreamDropout

Params = Mapping[str, Tensor]
"""[clients, *shape] by name."""
Saved = tuple[Tensor, ...]


@dataclass(frozen=True)
class Write:
    """Where a gradient goes: into <- keep * into + scale * gradient.

    Into the parameters themselves with keep 1 and scale -lr it is an SGD step, fused.
    """

    into: Params
    keep: float
    scale: float

    def add(self, name: str, gradient: Tensor) -> None:
        """Write the gradient [clients, ...] of the parameter ``name``."""
        place = self.into[name]
        gradient = gradient.view_as(place)
        if self.keep:
            if self.keep != 1.0:
                place.mul_(self.keep)
            place.add_(gradient, alpha=self.scale)
        else:
            torch.mul(gradient, self.scale, out=place)


class Layer(ABC):
    """One layer; what its backward pass needs it hands back from its forward pass."""

    trainable: ClassVar[bool] = False
    """Whether it has parameters."""
    training_only: ClassVar[bool] = False
    """Whether it does nothing in evaluation mode."""
    gives_images: ClassVar[bool | None] = None
    """Whether its output is images side by side; None: if its input is."""

    @abstractmethod
    def forward(self, x: Tensor, params: Params, keys: Tensor) -> tuple[Tensor, Saved]:
        """The output, which owns its memory or is a view of ``x``, and what backward needs.

        Args:
            x: the layer before gives it away: it may be overwritten.
            params: by name.
            keys: [clients, 2], dropout keys of this step.
        """

    @abstractmethod
    def backward(
        self, grad: Tensor, saved: Saved, params: Params, write: Write, inputs: bool
    ) -> Tensor:
        """The gradient of the input from that of the output; anything where not ``inputs``.

        Args:
            grad: shaped as the output, may be overwritten.
            saved: from the forward pass.
            params: by name.
            write: where gradients of parameters go, after the last use of the parameter.
            inputs: whether anybody wants the gradient of the input.
        """


@dataclass(frozen=True)
class Linear(Layer):
    """nn.Linear on [clients, batch, inputs]."""

    weight: str
    bias: str | None
    trainable = True

    def forward(self, x: Tensor, params: Params, keys: Tensor) -> tuple[Tensor, Saved]:
        """Saves its input."""
        transposed = params[self.weight].transpose(1, 2)
        if self.bias is None:
            return torch.bmm(x, transposed), (x,)
        return torch.baddbmm(params[self.bias][:, None], x, transposed), (x,)

    def backward(
        self, grad: Tensor, saved: Saved, params: Params, write: Write, inputs: bool
    ) -> Tensor:
        """The weight's gradient is added where it goes within the product that makes it."""
        down = torch.bmm(grad, params[self.weight]) if inputs else grad
        place = write.into[self.weight]
        place.baddbmm_(grad.transpose(1, 2), saved[0], beta=write.keep, alpha=write.scale)
        if self.bias is not None:
            write.add(self.bias, grad.sum(1))
        return down


@dataclass(frozen=True)
class Conv2d(Layer):
    """nn.Conv2d with zero padding and one group, as a convolution in groups, a client each."""

    weight: str
    bias: str | None
    stride: tuple[int, ...]
    padding: tuple[int, ...]
    dilation: tuple[int, ...]
    trainable = True

    def _weight(self, params: Params) -> Tensor:
        stacked = params[self.weight].flatten(0, 1)
        return stacked.contiguous(memory_format=torch.channels_last)

    def forward(self, x: Tensor, params: Params, keys: Tensor) -> tuple[Tensor, Saved]:
        """Saves its input."""
        clients = len(params[self.weight])
        bias = None if self.bias is None else params[self.bias].reshape(-1)
        weight = self._weight(params)
        return (
            nn.functional.conv2d(
                x, weight, bias, self.stride, self.padding, self.dilation, groups=clients
            ),
            (x,),
        )

    def backward(
        self, grad: Tensor, saved: Saved, params: Params, write: Write, inputs: bool
    ) -> Tensor:
        """One call for the gradients of input and weight, a product for that of the bias."""
        weight = self._weight(params)
        grad = grad.contiguous(memory_format=torch.channels_last)
        found = torch.ops.aten.convolution_backward(
            grad,
            saved[0],
            weight,
            [weight.shape[0]],
            self.stride,
            self.padding,
            self.dilation,
            False,
            [0, 0],
            len(params[self.weight]),
            [inputs, True, False],
        )
        write.add(self.weight, found[1].contiguous())
        if self.bias is not None:
            # A tenth of the time that a sum over these dimensions takes.
            pixels = grad.permute(0, 2, 3, 1).flatten(0, 2)
            write.add(self.bias, pixels.new_ones(1, len(pixels)) @ pixels)
        return found[0] if inputs else grad


@dataclass(frozen=True)
class ReLU(Layer):
    """nn.ReLU, in place unless the layer before still needs its output."""

    in_place: bool

    def forward(self, x: Tensor, params: Params, keys: Tensor) -> tuple[Tensor, Saved]:
        """Saves its output."""
        x = x.relu_() if self.in_place else x.relu()
        return x, (x,)

    def backward(
        self, grad: Tensor, saved: Saved, params: Params, write: Write, inputs: bool
    ) -> Tensor:
        """Where the output is zero, so is the gradient."""
        down: Tensor = torch.ops.aten.threshold_backward.grad_input(
            grad, saved[0], 0, grad_input=grad
        )
        return down


@dataclass(frozen=True)
class Free(Layer):
    """A module without parameters that acts on each feature or channel alone: left to autograd.

    Other activations, and pooling.
    """

    module: nn.Module

    def forward(self, x: Tensor, params: Params, keys: Tensor) -> tuple[Tensor, Saved]:
        """Saves the piece of graph from its input to its output."""
        leaf = x.requires_grad_()
        with torch.enable_grad():
            out: Tensor = self.module(leaf)
        return out.detach(), (leaf, out)

    def backward(
        self, grad: Tensor, saved: Saved, params: Params, write: Write, inputs: bool
    ) -> Tensor:
        """By autograd."""
        leaf, out = saved
        return torch.autograd.grad(out, leaf, grad)[0] if inputs else grad


@dataclass(frozen=True)
class Dropout(Layer):
    """StreamDropout on [clients, batch, features]."""

    training_only: ClassVar[bool] = True

    module: StreamDropout

    def forward(self, x: Tensor, params: Params, keys: Tensor) -> tuple[Tensor, Saved]:
        """Saves the scaled mask."""
        mask = self.module.mask(keys, x.shape[1], x.shape[2]) / (1.0 - self.module.p)
        return x * mask, (mask,)

    def backward(
        self, grad: Tensor, saved: Saved, params: Params, write: Write, inputs: bool
    ) -> Tensor:
        """Through what was kept."""
        return grad * saved[0]


class ToImages(Layer):
    """[clients, batch, channels, height, width] to images side by side."""

    gives_images = True

    def forward(self, x: Tensor, params: Params, keys: Tensor) -> tuple[Tensor, Saved]:
        """Needs nothing for the way back."""
        return x.transpose(0, 1).flatten(1, 2).contiguous(memory_format=torch.channels_last), ()

    def backward(
        self, grad: Tensor, saved: Saved, params: Params, write: Write, inputs: bool
    ) -> Tensor:
        """It stands first: nobody asks."""
        return grad


class Flatten(Layer):
    """nn.Flatten of samples that are not images yet: [clients, batch, features]."""

    def forward(self, x: Tensor, params: Params, keys: Tensor) -> tuple[Tensor, Saved]:
        """Needs nothing for the way back."""
        return x.flatten(2), ()

    def backward(
        self, grad: Tensor, saved: Saved, params: Params, write: Write, inputs: bool
    ) -> Tensor:
        """It stands first, or before layers that are flat: the shape does not matter."""
        return grad


class FromImages(Layer):
    """nn.Flatten of images side by side: [clients, batch, features]."""

    gives_images = False

    def forward(self, x: Tensor, params: Params, keys: Tensor) -> tuple[Tensor, Saved]:
        """Saves its input, for the shape."""
        batch, channels, *size = x.shape
        apart = x.view(batch, len(keys), channels // len(keys), *size)
        return apart.transpose(0, 1).flatten(2), (x,)

    def backward(
        self, grad: Tensor, saved: Saved, params: Params, write: Write, inputs: bool
    ) -> Tensor:
        """Back to the images' memory."""
        clients, batch = grad.shape[:2]
        channels, *size = saved[0].shape[1:]
        apart = grad.reshape(clients, batch, channels // clients, *size).transpose(0, 1)
        return apart.flatten(1, 2).contiguous(memory_format=torch.channels_last)
