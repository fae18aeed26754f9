"""Estimates of the constants in HIST's assumptions, from a model and its clients' data.

The assumptions concern all models, but an estimate covers only the points at which it is computed.
It is a lower bound, which does not decrease with more points.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence, Set
from contextlib import contextmanager
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.func import grad, vmap
from torch.nn import functional as F

from channels.arrays import IntArray
from channels.streams import Stream
from wirelessfl.data.dataset import widened
from wirelessfl.models.submodels.flat import ParamSpec, call_with, slots
from wirelessfl.theory.hist import Constants

Loss = Callable[[Tensor, Tensor], Tensor]

_SAMPLES_AT_ONCE = 1000
# Memory for per-sample gradients of a chunk.
_SAMPLE_GRADIENT_BYTES = 1 << 24


def estimate_constants(
    module: nn.Module,
    inputs: Tensor,
    labels: Tensor,
    clients: Sequence[IntArray],
    cell_of: IntArray,
    *,
    batch_size: int,
    stream: Stream,
    points: Sequence[Tensor] | None = None,
    samples: int = 3,
    clients_sampled: int | None = None,
    loss: Loss = F.cross_entropy,
    iterations: int = 100,
    tolerance: float = 1e-3,
) -> Constants:
    """Estimate L, sigma^2, delta_1^2 and delta_2^2 of Assumptions 2 and 4-6.

    Each estimate is a maximum over the points, not over all models, so it is a lower bound on the
    constant. The model is in evaluation mode, so that dropout adds no variance.

    - delta_1^2, (10), and delta_2^2, (11): from the full gradients of all clients.
    - sigma^2, (9): exact for batches of B of a client's n samples drawn without replacement,
      (1/B) (n-B)/(n-1) times the mean of ||grad l(x, s) - grad F_i||^2 over its samples s; 0 for
      n <= B. The last batch of a pass, with n mod B samples, has a larger variance.
    - L: largest magnitude of an eigenvalue of a client's Hessian, by power iteration on
      Hessian-vector products, which approaches it from below.

    Memory: the gradients of one cell's clients and of all cells, and a bounded chunk of samples.

    Args:
        module: maps inputs to the first argument of ``loss``; x are its trainable parameters [P].
        inputs: [n, ...], on the module's device.
        labels: [n, ...], the second argument of ``loss``.
        clients: indices of each client's samples, at least one per client.
        cell_of: [clients], each client's cell.
        batch_size: B >= 1.
        stream: randomness of the path, the sampled clients and the starts of the power iterations.
        points: models [P] at which to estimate; None for the module's parameters and
            ``samples - 1`` more along :func:`sgd_path` with its default step size.
        samples: number of points if none are given, >= 1.
        clients_sampled: number of randomly drawn clients over which L and sigma^2 are maxima; None
            for all clients. These two take most of the time; the deltas always use all clients.
        loss: mean loss of a batch, from the module's output and the labels.
        iterations: maximum number of power iterations, >= 1.
        tolerance: relative change of the eigenvalue at which the iteration stops, >= 0.

    Returns:
        The four maxima and the number of points.
    """
    counts = {"batch_size": batch_size, "samples": samples, "iterations": iterations}
    _check_counts(**counts, clients_sampled=1 if clients_sampled is None else clients_sampled)
    if len(cell_of) != len(clients):
        raise ValueError(
            f"cell_of has {len(cell_of)} entries: give one for each of the {len(clients)} clients."
        )
    problem = module, inputs, labels, clients
    landscape = _Landscape(*problem, loss)
    if points is None:
        path = stream.child("path")
        points = sgd_path(*problem, batch_size=batch_size, stream=path, points=samples, loss=loss)
    landscape.check(points)
    order = stream.child("clients").generator().permutation(len(clients))
    chosen = set(order[:clients_sampled].tolist())
    largest = [0.0] * 4
    with _evaluation(module):
        for k, point in enumerate(points):
            power = _PowerIteration(stream.child("power", k), iterations, tolerance)
            constants = _constants_at(point, landscape, clients, cell_of, chosen, batch_size, power)
            largest = [max(pair) for pair in zip(largest, constants, strict=True)]
    sharpest, noisiest, cells_apart, clients_apart = largest
    return Constants(sharpest, noisiest, cells_apart, clients_apart, points=len(points))


class _PowerIteration(NamedTuple):
    """Settings of the power iteration: random starts and stopping rule."""

    starts: Stream
    iterations: int
    tolerance: float


def _constants_at(
    point: Tensor,
    landscape: _Landscape,
    clients: Sequence[IntArray],
    cell_of: IntArray,
    chosen: Set[int],
    batch_size: int,
    power: _PowerIteration,
) -> tuple[float, float, float, float]:
    """L, sigma^2, delta_1^2 and delta_2^2 at one point; L and sigma^2 over ``chosen`` clients."""
    sharpest, noisiest, clients_apart = 0.0, 0.0, 0.0
    means = []
    for cell in np.unique(cell_of):
        members: list[int] = np.flatnonzero(cell_of == cell).tolist()
        gradients = torch.stack([landscape.gradient(point, clients[i]) for i in members])
        means.append(gradients.mean(0))
        clients_apart = max(clients_apart, _spread(gradients))
        for gradient, i in zip(gradients, members, strict=True):
            if i not in chosen:
                continue
            variance = landscape.batch_variance(point, clients[i], gradient, batch_size)
            noisiest = max(noisiest, variance)
            sharpest = max(sharpest, landscape.curvature(point, clients[i], i, power))
    return sharpest, noisiest, max(0.0, _spread(torch.stack(means))), clients_apart


def sgd_path(
    module: nn.Module,
    inputs: Tensor,
    labels: Tensor,
    clients: Sequence[IntArray],
    *,
    batch_size: int,
    stream: Stream,
    points: int = 3,
    step_size: float = 0.01,
    steps: int = 10,
    loss: Loss = F.cross_entropy,
) -> list[Tensor]:
    """Models along a training path: the module's parameters and every ``steps``-th SGD iterate.

    Args:
        module: model at which the path starts; it is not changed.
        inputs, labels, clients, loss: as for :func:`estimate_constants`.
        batch_size: samples per step, >= 1, drawn without replacement from all clients' samples.
        stream: randomness of the batches.
        points: number of points of the path, >= 1.
        step_size: step size of SGD, > 0.
        steps: SGD steps from one point to the next, >= 1.

    Returns:
        ``points`` flat parameter vectors [P].
    """
    _check_counts(batch_size=batch_size, points=points, steps=steps)
    if not step_size > 0:
        raise ValueError(f"step_size is {step_size}: give a number > 0.")
    landscape = _Landscape(module, inputs, labels, clients, loss)
    pool = np.concatenate(list(clients))
    size = min(batch_size, len(pool))
    x = landscape.spec.from_module(module)
    path = [x]
    with _evaluation(module):
        for step in range(1, (points - 1) * steps + 1):
            batch = stream.generator(step).choice(pool, size=size, replace=False)
            x = x - step_size * landscape.gradient(x, batch)
            if step % steps == 0:
                path.append(x)
    return path


class _Landscape:
    """A model's loss over flat parameters: gradients and curvature on given samples, in chunks."""

    def __init__(
        self,
        module: nn.Module,
        inputs: Tensor,
        labels: Tensor,
        clients: Sequence[IntArray],
        loss: Loss,
    ) -> None:
        if len(inputs) != len(labels) or not clients:
            raise ValueError(
                f"inputs has {len(inputs)} entries, labels {len(labels)} and clients "
                f"{len(clients)}: give as many labels as inputs, and at least one client."
            )
        for i, rows in enumerate(clients):
            if len(rows) == 0 or rows.min() < 0 or rows.max() >= len(labels):
                raise ValueError(
                    f"clients[{i}] is {rows}: give at least one index of a sample, all of them in "
                    f"[0, {len(labels) - 1}]."
                )
        self.module, self.inputs, self.labels = module, inputs, labels
        self.batch_loss = loss
        self.spec = ParamSpec.of(module)
        self._slots = slots(module, self.spec)

    def check(self, points: Sequence[Tensor]) -> None:
        """Raise unless the points are parameter vectors of the model."""
        if not points:
            raise ValueError("points is empty: give at least one model, or None for an SGD path.")
        for k, point in enumerate(points):
            if point.shape != (self.spec.size,) or point.dtype != torch.float32:
                raise ValueError(
                    f"points[{k}] is {point.dtype} {list(point.shape)}: give float32 "
                    f"[{self.spec.size}]."
                )

    def gradient(self, point: Tensor, rows: IntArray) -> Tensor:
        """Gradient [P] of the mean loss over ``rows``."""
        total = torch.zeros_like(point)
        for x, y, share in self._chunks(rows, _SAMPLES_AT_ONCE):
            leaf = point.detach().requires_grad_()
            (part,) = torch.autograd.grad(self._loss(leaf, x, y), leaf)
            total += share * part
        if not total.isfinite().all():
            raise ValueError(
                "the gradient of the loss is not finite: check the model and its inputs, or choose "
                "points at which training does not diverge."
            )
        return total

    def batch_variance(self, point: Tensor, rows: IntArray, mean: Tensor, size: int) -> float:
        """E||g - mean||^2 for the gradient g of a batch of ``size`` samples."""
        if size >= len(rows):
            return 0.0
        chunk = max(1, _SAMPLE_GRADIENT_BYTES // (4 * self.spec.size))

        def sample_loss(params: dict[str, Tensor], x: Tensor, y: Tensor) -> Tensor:
            return self.batch_loss(self._call(params, x[None]), y[None])

        # By parameter tensor, because flat vectors would cost several times as much.
        gradients = vmap(grad(sample_loss), in_dims=(None, 0, 0))
        params, mean_of, total = self.spec.views(point), self.spec.views(mean), 0.0
        for x, y, share in self._chunks(rows, min(chunk, _SAMPLES_AT_ONCE)):
            for name, tensor in gradients(params, x, y).items():
                total += share * _mean_square((tensor - mean_of[name]).flatten(1))
        return total * (len(rows) - size) / (size * (len(rows) - 1))

    def curvature(
        self,
        point: Tensor,
        rows: IntArray,
        client: int,
        power: _PowerIteration,
    ) -> float:
        """Lower estimate of the largest Hessian |eigenvalue| of the mean loss of ``rows``."""
        generator = power.starts.generator(client)
        direction = torch.from_numpy(generator.standard_normal(len(point), np.float32)).to(point)
        largest = 0.0
        for _ in range(power.iterations):
            direction = self._hessian_times(point, direction / direction.norm(), rows)
            length = float(direction.norm())
            # For a symmetric matrix the lengths never decrease, and converge to this magnitude.
            if length <= (1 + power.tolerance) * largest or length == 0.0:
                return max(length, largest)
            largest = length
        return largest

    def _hessian_times(self, point: Tensor, direction: Tensor, rows: IntArray) -> Tensor:
        total = torch.zeros_like(point)
        for x, y, share in self._chunks(rows, _SAMPLES_AT_ONCE):
            leaf = point.detach().requires_grad_()
            (slope,) = torch.autograd.grad(self._loss(leaf, x, y), leaf, create_graph=True)
            if slope.requires_grad:  # otherwise the loss is linear
                (part,) = torch.autograd.grad(slope, leaf, direction, materialize_grads=True)
                total += share * part
        return total

    def _call(self, params: dict[str, Tensor], x: Tensor) -> Tensor:
        return call_with(self.module, params, self._slots, x)

    def _loss(self, flat: Tensor, x: Tensor, y: Tensor) -> Tensor:
        return self.batch_loss(self._call(self.spec.views(flat), x), y)

    def _chunks(self, rows: IntArray, size: int) -> Iterator[tuple[Tensor, Tensor, float]]:
        """Yield inputs and labels of each chunk with its fraction of the rows."""
        for first in range(0, len(rows), size):
            part = torch.from_numpy(rows[first : first + size]).to(self.inputs.device)
            yield widened(self.inputs[part]), self.labels[part], len(part) / len(rows)


def _mean_square(vectors: Tensor) -> float:
    """Mean of ||v||^2 over the rows [k, P], summed in float64."""
    return float(torch.linalg.vector_norm(vectors, dim=1).double().square().mean())


def _spread(gradients: Tensor) -> float:
    """Mean squared distance of the rows [k, P] from their mean."""
    return _mean_square(gradients - gradients.mean(0))


@contextmanager
def _evaluation(module: nn.Module) -> Iterator[None]:
    """Put ``module`` in evaluation mode, and restore each layer's mode at the end."""
    training = [layer for layer in module.modules() if layer.training]
    module.eval()
    try:
        yield
    finally:
        for layer in training:
            layer.training = True


def _check_counts(**counts: int) -> None:
    for name, count in counts.items():
        if count < 1:
            raise ValueError(f"{name} is {count}: give at least 1.")
