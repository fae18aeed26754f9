"""Resource blocks for clients whose packets can be lost, with the least expected loss."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from channels.arrays import BoolArray
from solvers.outcome import Outcome, left_out, located
from solvers.resource_blocks.block_prices import least_possible, prices
from solvers.resource_blocks.block_problem import BlockProblem, read_problem
from solvers.resource_blocks.matching import least_loss, most_clients
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

    Raises:
        ValueError: a probability or a weight is out of range, ``allowed`` is not Boolean, the
            shapes do not fit, or ``count`` is not from 1 to the number of clients or blocks.
        TypeError: ``count`` is not an integer.
    """
    start = time.perf_counter()
    problem = read_problem(packet_error, weights, allowed, count)
    number, clients, _ = problem.error.shape
    feasible = np.ones(number, dtype=np.bool_)
    block, error = np.full((number, clients), -1), np.ones((number, clients))
    objective, bound = np.zeros(number), np.zeros(number)
    for row in range(number):
        costs, alone = problem.costs(row), problem.weights[row]
        found = least_loss(costs, alone, problem.count)
        if found is None:
            feasible[row] = False
            continue
        sends = np.flatnonzero(found >= 0)
        block[row] = found
        error[row, sends] = problem.error[row, sends, found[sends]]
        objective[row] = (alone * error[row]).sum()
        price, entry = prices(costs, alone, found, problem.count)
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


def _shortfall(problem: BlockProblem, without: BoolArray) -> str:
    """Say how many clients can have blocks in the first infeasible problem, and who cannot."""
    row = int(without.argmax())
    text = f"count is {problem.count}, but at most {most_clients(problem.costs(row))} clients can "
    text += "have allowed blocks at the same time"
    if problem.unable(row):
        text += f"; {problem.unable(row)}"
    return located(text, without, problem.shape)
