"""Resource blocks for clients whose packets can be lost, with the least expected loss."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from channels.arrays import BoolArray, FloatArray
from channels.validation import as_array, common_shape, whole_number
from solvers.arrays import finite, first, numbers
from solvers.outcome import Outcome, left_out, located, unable
from solvers.resource_blocks.matching import least_loss, least_possible, most_clients, prices
from solvers.solution import Solution

if TYPE_CHECKING:
    from torch import Tensor


class BlockAssignment(NamedTuple):
    """The blocks in which clients send.

    >>> import solvers
    >>> plan = solvers.assign_resource_blocks([[0.1], [0.2]]).value
    >>> plan.block.tolist(), plan.packet_error.tolist()
    ([0, -1], [0.1, 1.0])

    Args:
        block: [..., clients], the block of each client; -1 for none.
        packet_error: [..., clients], the packet error probability in it; 1 for none.
    """

    block: Any
    packet_error: Any


def assign_resource_blocks(
    packet_error: ArrayLike | Tensor,
    *,
    weights: ArrayLike | Tensor = 1.0,
    allowed: ArrayLike | Tensor | None = None,
    count: int | None = None,
) -> Solution[BlockAssignment]:
    """Give clients the resource blocks in which the fewest samples are lost on average.

    Solves  min_r sum_i K_i (1 - sum_n r_in (1 - q_in))  over r_in in {0, 1} with at most one block
    per client and one client per block (Chen et al., arXiv:1909.07972, for given powers): a client
    without a block, or whose packet is lost, does not contribute its K_i samples.

    >>> import solvers
    >>> solution = solvers.assign_resource_blocks([[0.1, 0.5], [0.2, 0.3]])
    >>> solution.value.block.tolist()
    [0, 1]

    Args:
        packet_error: q [..., clients, blocks], from 0 to 1, e.g. of
            ``channels.packet_error_probability``.
        weights: K [..., clients], >= 0, e.g. numbers of samples; 1 loses the fewest updates.
        allowed: [..., clients, blocks], Boolean, which clients may use which blocks, e.g. those in
            which they meet the limits of delay and energy; None for all.
        count: number of clients that get a block; None for as many as reduce the loss.

    Leading axes are broadcast, and are a batch. Array-like, or torch tensors on any device.

    Returns:
        A :class:`BlockAssignment` with the array type and device of ``packet_error``. The objective
        is the expected loss in the unit of the weights. The bound follows from prices of blocks, by
        the duality of linear programs, and agrees with the objective to rounding errors; with the
        gap they are [...] float64, or floats for a single problem. The message names clients that
        no block helps. With ``count``, a problem is infeasible if fewer clients can have blocks at
        the same time: the value is None (-1 in a batch), the objective infinite, and the message
        gives the shortfall.
    """
    start = time.perf_counter()
    problem = _read_problem(packet_error, weights, allowed, count)
    number, clients, _ = problem.error.shape
    feasible = np.ones(number, dtype=np.bool_)
    block, error = np.full((number, clients), -1), np.ones((number, clients))
    objective, bound = np.zeros(number), np.zeros(number)
    for row in range(number):
        costs, alone = problem.costs(row), problem.weights[row]
        matched = least_loss(costs, alone, problem.count)
        if matched is None:
            feasible[row] = False
            continue
        sends = np.flatnonzero(matched >= 0)
        block[row] = matched
        error[row, sends] = problem.error[row, sends, matched[sends]]
        objective[row] = (alone * error[row]).sum()
        price, entry = prices(costs, alone, matched, problem.count)
        proven = least_possible(costs, alone, price, entry, problem.count)
        bound[row] = min(proven, objective[row])  # above it only by rounding errors
    if feasible.all():
        message = left_out(problem.stuck, problem.shape, problem.unable)
    else:
        message = _shortfall(problem, ~feasible)
    value = BlockAssignment(block[feasible], error[feasible])
    return Outcome(value, objective[feasible], bound[feasible]).solution(
        feasible, problem.shape, packet_error, backend="matching", start=start, message=message
    )


def _shortfall(problem: _BlockProblem, without: BoolArray) -> str:
    """Say how many clients can have blocks in the first infeasible problem, and who cannot."""
    row = int(without.argmax())
    text = f"count is {problem.count}, but at most {most_clients(problem.costs(row))} clients can "
    text += "have allowed blocks at the same time"
    if problem.unable(row):
        text += f"; {problem.unable(row)}"
    return located(text, without, problem.shape)


@dataclass(frozen=True, eq=False)
class _BlockProblem:
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


def _read_problem(packet_error: Any, weights: Any, allowed: Any, count: Any) -> _BlockProblem:
    """Read and validate the arguments of ``assign_resource_blocks``."""
    error = numbers("packet_error", packet_error)
    good = (error >= 0) & (error <= 1)
    if not good.all():
        index, value = first(good, error)
        raise ValueError(f"packet_error{index} is {value}: give a probability from 0 to 1.")
    samples = finite("weights", weights, "any one unit, e.g. samples")
    able = np.asarray(True) if allowed is None else as_array("allowed", allowed)
    if able.dtype != np.bool_:
        raise ValueError(f"allowed has dtype {able.dtype}: give Booleans.")
    shapes = {"packet_error": error.shape, "weights": samples.shape, "allowed": able.shape}
    compared = (error.shape, (*samples.shape, 1), able.shape)
    axes = "[..., clients, blocks], and weights [..., clients]"
    shape = common_shape(shapes, compared, axes)
    if error.ndim < 2 or 0 in shape[-2:]:
        raise ValueError(
            f"packet_error has shape {error.shape}: give [..., clients, blocks], with both."
        )
    flat = (-1, *shape[-2:])
    if 0 in shape[:-2]:
        flat = (0, *shape[-2:])
    return _BlockProblem(
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
