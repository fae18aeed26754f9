"""Layers that process many clients at once, with handwritten forward and backward passes.

Layers compute in the dtype of their input, float32 or bfloat16, and write float32 gradients.
Samples are [clients, batch, ...]. After a convolution they are images with the channels of all
clients side by side, [batch, clients * channels, height, width] in channels-last memory, the
fastest layout for grouped convolutions on CPUs and GPUs.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn

from wirelessfl.models.parts import StreamDropout
from wirelessfl.training.image_layers import Windows, convolved, gradients

Params = Mapping[str, Tensor]
"""Parameters [clients, *shape] by name."""
Saved = tuple[Tensor, ...]


@dataclass(frozen=True)
class Write:
    """How to write a gradient: into <- keep * into + scale * gradient.

    With the parameters as ``into``, keep = 1 and scale = -lr this is a fused SGD step.
    """

    into: Params
    keep: float
    scale: float

    def add(self, name: str, gradient: Tensor) -> None:
        """Write the gradient [clients, ...] of the parameter ``name``, which may be rounded."""
        target = self.into[name]
        gradient = gradient.view_as(target)
        if self.keep:
            if self.keep != 1.0:
                target.mul_(self.keep)
            target.add_(gradient, alpha=self.scale)
        else:
            torch.mul(gradient, self.scale, out=target)


class Layer(ABC):
    """One layer; its forward pass returns the tensors that its backward pass needs."""

    trainable: ClassVar[bool] = False
    """Whether the layer has parameters."""
    training_only: ClassVar[bool] = False
    """Whether the layer has no effect in evaluation mode."""
    gives_images: ClassVar[bool | None] = None
    """Whether the output is images side by side; None if it has the same layout as the input."""

    @abstractmethod
    def forward(self, x: Tensor, params: Params, keys: Tensor) -> tuple[Tensor, Saved]:
        """The output, which is a new tensor or a view of ``x``, and the tensors for ``backward``.

        Args:
            x: input; it may be overwritten.
            params: parameters by name.
            keys: [clients, 2], dropout keys of this step.
        """

    @abstractmethod
    def backward(
        self, grad: Tensor, saved: Saved, params: Params, write: Write, inputs: bool
    ) -> Tensor:
        """Compute the gradient of the input, and write the parameters' gradients.

        Args:
            grad: gradient of the output; it may be overwritten.
            saved: tensors from the forward pass.
            params: parameters by name.
            write: destination of the parameters' gradients; they are written after the last use of
                the parameter.
            inputs: whether the gradient of the input is needed; if not, the result is undefined.
        """


@dataclass(frozen=True)
class Linear(Layer):
    """nn.Linear on [clients, batch, inputs]."""

    weight: str
    bias: str | None
    trainable = True

    def forward(self, x: Tensor, params: Params, keys: Tensor) -> tuple[Tensor, Saved]:
        """Compute the output; save the input."""
        transposed = params[self.weight].transpose(1, 2)
        if self.bias is None:
            return torch.bmm(x, transposed), (x,)
        return torch.baddbmm(params[self.bias][:, None], x, transposed), (x,)

    def backward(
        self, grad: Tensor, saved: Saved, params: Params, write: Write, inputs: bool
    ) -> Tensor:
        """Compute gradients; the product for the weight's gradient adds to its destination."""
        down = torch.bmm(grad, params[self.weight]) if inputs else grad
        target, transposed = write.into[self.weight], grad.transpose(1, 2)
        if grad.dtype == target.dtype:
            target.baddbmm_(transposed, saved[0], beta=write.keep, alpha=write.scale)
        else:
            write.add(self.weight, torch.bmm(transposed, saved[0]))
        if self.bias is not None:
            write.add(self.bias, grad.sum(1, dtype=target.dtype))
        return down


@dataclass(frozen=True)
class Conv2d(Layer):
    """nn.Conv2d with zero padding and one group, as a convolution with one group per client."""

    weight: str
    bias: str | None
    stride: tuple[int, ...]
    padding: tuple[int, ...]
    dilation: tuple[int, ...]
    trainable = True

    def _weight(self, params: Params) -> Tensor:
        stacked = params[self.weight].flatten(0, 1)
        return stacked.contiguous(memory_format=torch.channels_last)

    def _windows(self, params: Params) -> Windows:
        weight = params[self.weight]
        kernel = tuple(weight.shape[3:])
        return Windows(len(weight), kernel, self.stride, self.padding, self.dilation)

    def forward(self, x: Tensor, params: Params, keys: Tensor) -> tuple[Tensor, Saved]:
        """Compute the output; save the input, or on a GPU its shape and windows."""
        if x.is_cuda:
            bias = None if self.bias is None else params[self.bias]
            out, pixels = convolved(self._windows(params), x, params[self.weight], bias)
            return out, (x, pixels)
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
        """Compute gradients: one call for input and weight, a product for the bias."""
        if grad.is_cuda:
            x, pixels = saved
            shape = x.shape if inputs else None
            of = gradients(self._windows(params), grad, pixels, params[self.weight], shape)
            write.add(self.weight, of[1])
            if self.bias is not None:
                write.add(self.bias, of[2])
            return grad if of[0] is None else of[0]
        weight = self._weight(params)
        grad = grad.contiguous(memory_format=torch.channels_last)
        parts = torch.ops.aten.convolution_backward(
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
        write.add(self.weight, parts[1].contiguous())
        if self.bias is not None:
            # The product takes a tenth of the time of a sum over these dimensions.
            pixels = grad.permute(0, 2, 3, 1).flatten(0, 2)
            write.add(self.bias, pixels.new_ones(1, len(pixels)) @ pixels)
        return parts[0] if inputs else grad


@dataclass(frozen=True)
class ReLU(Layer):
    """nn.ReLU; it works in place unless the previous layer needs its output."""

    in_place: bool

    def forward(self, x: Tensor, params: Params, keys: Tensor) -> tuple[Tensor, Saved]:
        """Compute and save the output."""
        x = x.relu_() if self.in_place else x.relu()
        return x, (x,)

    def backward(
        self, grad: Tensor, saved: Saved, params: Params, write: Write, inputs: bool
    ) -> Tensor:
        """Set the gradient to zero where the output is zero."""
        down: Tensor = torch.ops.aten.threshold_backward.grad_input(
            grad, saved[0], 0, grad_input=grad
        )
        return down


@dataclass(frozen=True)
class Free(Layer):
    """A module without parameters that acts on each feature or channel separately.

    Used for activations other than ReLU and for pooling. Autograd computes the backward pass.
    """

    module: nn.Module

    def forward(self, x: Tensor, params: Params, keys: Tensor) -> tuple[Tensor, Saved]:
        """Compute the output; save the autograd graph from input to output."""
        leaf = x.requires_grad_()
        with torch.enable_grad():
            out: Tensor = self.module(leaf)
        return out.detach(), (leaf, out)

    def backward(
        self, grad: Tensor, saved: Saved, params: Params, write: Write, inputs: bool
    ) -> Tensor:
        """Compute the input's gradient by autograd."""
        leaf, out = saved
        return torch.autograd.grad(out, leaf, grad)[0] if inputs else grad


@dataclass(frozen=True)
class Dropout(Layer):
    """StreamDropout on [clients, batch, features]."""

    training_only: ClassVar[bool] = True

    module: StreamDropout

    def forward(self, x: Tensor, params: Params, keys: Tensor) -> tuple[Tensor, Saved]:
        """Compute the output; save the scaled mask."""
        mask = self.module.mask(keys, x.shape[1], x.shape[2]) / (1.0 - self.module.p)
        return (x * mask).to(x.dtype), (mask,)

    def backward(
        self, grad: Tensor, saved: Saved, params: Params, write: Write, inputs: bool
    ) -> Tensor:
        """Multiply the gradient by the mask."""
        return (grad * saved[0]).to(grad.dtype)


@dataclass(frozen=True)
class Scale(Layer):
    """Multiplies the inputs of a weight by the clients' factors, if ``params`` has some."""

    weight: str
    images: bool

    def forward(self, x: Tensor, params: Params, keys: Tensor) -> tuple[Tensor, Saved]:
        """Multiply; save the factors."""
        factor = params.get(self.name_of(self.weight))
        if factor is None:
            return x, ()
        if self.images:
            factor = factor.repeat_interleave(x.shape[1] // len(factor))[:, None, None]
        else:
            factor = factor[:, None, None]
        return (x * factor).to(x.dtype), (factor,)

    def backward(
        self, grad: Tensor, saved: Saved, params: Params, write: Write, inputs: bool
    ) -> Tensor:
        """Multiply the gradient by the factors."""
        return (grad * saved[0]).to(grad.dtype) if saved and inputs else grad

    @staticmethod
    def name_of(weight: str) -> str:
        """Name in ``params`` of the factors [clients] of a weight's inputs."""
        return f"inputs of {weight}"


class ToImages(Layer):
    """Convert [clients, batch, channels, height, width] to images side by side."""

    gives_images = True

    def forward(self, x: Tensor, params: Params, keys: Tensor) -> tuple[Tensor, Saved]:
        """Convert the samples; save nothing."""
        return x.transpose(0, 1).flatten(1, 2).contiguous(memory_format=torch.channels_last), ()

    def backward(
        self, grad: Tensor, saved: Saved, params: Params, write: Write, inputs: bool
    ) -> Tensor:
        """Return ``grad``: this is the first layer, whose input gradient is not used."""
        return grad


class Flatten(Layer):
    """nn.Flatten of samples that are not images side by side: [clients, batch, features]."""

    def forward(self, x: Tensor, params: Params, keys: Tensor) -> tuple[Tensor, Saved]:
        """Flatten the samples; save nothing."""
        return x.flatten(2), ()

    def backward(
        self, grad: Tensor, saved: Saved, params: Params, write: Write, inputs: bool
    ) -> Tensor:
        """Return ``grad``: this is the first layer, or its input is already flat."""
        return grad


class FromImages(Layer):
    """nn.Flatten of images side by side: [clients, batch, features]."""

    gives_images = False

    def forward(self, x: Tensor, params: Params, keys: Tensor) -> tuple[Tensor, Saved]:
        """Flatten the images; save the input, for its shape."""
        batch, channels, *size = x.shape
        apart = x.view(batch, len(keys), channels // len(keys), *size)
        return apart.transpose(0, 1).flatten(2), (x,)

    def backward(
        self, grad: Tensor, saved: Saved, params: Params, write: Write, inputs: bool
    ) -> Tensor:
        """Convert the gradient to the layout of images side by side."""
        clients, batch = grad.shape[:2]
        channels, *size = saved[0].shape[1:]
        apart = grad.reshape(clients, batch, channels // clients, *size).transpose(0, 1)
        return apart.flatten(1, 2).contiguous(memory_format=torch.channels_last)
