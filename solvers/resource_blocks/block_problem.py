"""Clients, resource blocks and packet errors: reads and validates the arguments."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from channels.arrays import BoolArray, FloatArray
from channels.validation import as_array, common_shape, whole_number
from solvers.arrays import finite, first, numbers
from solvers.outcome import unable


@dataclass(frozen=True, eq=False)
class BlockProblem:
    """Validated arguments, one problem per row.

    Args:
        error: [problems, clients, blocks], packet error probabilities.
        weights: [problems, clients].
        allowed: [problems, clients, blocks].
        count: number of clients with a block; None for any number.
        shape: shape of the batch.
    """

    error: FloatArray
    weights: FloatArray
    allowed: BoolArray
    count: int | None
    shape: tuple[int, ...]

    def costs(self, row: int) -> FloatArray:
        """Expected loss [clients, blocks] of each client in each block; infinite if forbidden."""
        return np.where(self.allowed[row], self.weights[row][:, None] * self.error[row], np.inf)

    @property
    def stuck(self) -> BoolArray:
        """Clients [problems, clients] that no block helps."""
        helped = self.allowed & (self.error < 1)
        return np.asarray(~helped.any(-1))

    def unable(self, row: int) -> str:
        """Name the clients of a problem that no block helps; "" if there are none."""
        none = ~self.allowed[row].any(-1)
        reasons = {
            "send: no block is allowed": none,
            "be received: packet_error is 1": self.stuck[row] & ~none,
        }
        return unable(reasons)


def read_problem(packet_error: Any, weights: Any, allowed: Any, count: Any) -> BlockProblem:
    """Read and validate the arguments.

    Raises:
        ValueError: an argument is out of range, or the shapes do not fit.
        TypeError: ``count`` is not an integer.
    """
    error = numbers("packet_error", packet_error)
    good = (error >= 0) & (error <= 1)
    if not good.all():
        index, value = first(good, error)
        raise ValueError(f"packet_error{index} is {value}: give a probability from 0 to 1.")
    samples = finite("weights", weights, "any one unit, e.g. samples")
    able = np.asarray(True) if allowed is None else as_array("allowed", allowed)
    if able.dtype != np.bool_:
        raise ValueError(f"allowed has dtype {able.dtype}: give Booleans.")
    given = {"packet_error": error.shape, "weights": samples.shape, "allowed": able.shape}
    compared = (error.shape, (*samples.shape, 1), able.shape)
    axes = "[..., clients, blocks], and weights [..., clients]"
    shape = common_shape(given, compared, axes)
    if error.ndim < 2 or 0 in shape[-2:]:
        raise ValueError(
            f"packet_error has shape {error.shape}: give [..., clients, blocks], with both."
        )
    flat = (-1, *shape[-2:])
    if 0 in shape[:-2]:
        flat = (0, *shape[-2:])
    return BlockProblem(
        np.broadcast_to(error, shape).reshape(flat),
        np.broadcast_to(samples, shape[:-1]).reshape(flat[:-1]),
        np.broadcast_to(able, shape).reshape(flat),
        _checked_count(count, *shape[-2:]),
        shape[:-2],
    )


def _checked_count(count: Any, clients: int, blocks: int) -> int | None:
    if count is None:
        return None
    number, most = whole_number("count", count), min(clients, blocks)
    if not 1 <= number <= most:
        raise ValueError(
            f"count is {number}: give a number from 1 to {most}, all "
            f"{'clients' if most == clients else 'blocks'}, or None."
        )
    return number
