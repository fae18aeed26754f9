"""Linear and integer programs of clients to cells, solved by HiGHS, which SciPy includes."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from channels.arrays import BoolArray, FloatArray, IntArray
from solvers.cells.cell_shares import CellShares
from solvers.packages import quiet_highs

INFEASIBLE = 2
"""Status of ``scipy.optimize.milp``."""


class Answer(NamedTuple):
    """What HiGHS says of a program.

    Args:
        parts: x [clients, cells]; None without a solution.
        bound: proven bound on the objective; infinite if the program is infeasible.
    """

    parts: FloatArray | None
    bound: float


def least_load(problem: CellShares, shares: FloatArray, nodes: int = 0) -> Answer:
    """min z  over x >= 0 with sum_j x_ij = 1, sum_i w_ij x_ij <= z and the limits of the cells.

    Args:
        problem: the clients and cells.
        shares: w [clients, cells]; infinite where a client cannot be.
        nodes: maximum number of nodes of branch and bound for integers x; 0 for fractions.
    """
    clients, cells = np.nonzero(np.isfinite(shares))
    program = _Program(problem, clients, cells, extra=1)
    rows = program.by_cell(shares[clients, cells])
    program.add(rows, cells=np.full(rows.shape[0], -1.0), high=0.0)
    return program.solve(cost=1.0, high=np.inf, nodes=nodes)


def in_time(problem: CellShares, sharing: FloatArray, nodes: int) -> Answer:
    """Integers x with which the n clients of each cell have sharing_ij >= n, if there are any.

    With y_jn in {0, 1}, whether cell j has at most n clients, n one of the sharing_ij:
    x_ij <= y_jn for n = sharing_ij, and sum_i x_ij <= sum_n n (y_jn - y_jm), m the next smaller n.

    Args:
        problem: the clients and cells.
        sharing: [clients, cells], most clients of the cell with which each client ends in time.
        nodes: maximum number of nodes of branch and bound.
    """
    from scipy import sparse  # SciPy loads slowly

    clients, cells = np.nonzero(sharing > 0)
    number = sharing[clients, cells]
    levels, level_of = np.unique(np.stack([cells, number]), axis=1, return_inverse=True)
    level_of = level_of.reshape(-1)
    width = levels.shape[1]
    program = _Program(problem, clients, cells, extra=width)
    at_level = sparse.csr_array((np.ones(width), (np.arange(width), np.arange(width))))
    program.add(
        sparse.eye_array(len(clients), format="csr"), cells=-at_level[level_of], high=0.0
    )  # x_ij <= y_jn
    same = np.flatnonzero(np.diff(levels[0]) == 0)
    if same.size:  # y grows with n
        steps = at_level[same] - at_level[same + 1]
        program.add(sparse.csr_array((len(same), len(clients))), cells=steps, high=0.0)
    # sum_n n (y_n - y_m) = n_last - sum over the others of (n' - n) y_n, n' the next larger n
    rise = np.append(np.diff(levels[1]), 0.0) * np.append(np.diff(levels[0]) == 0, False)
    last = np.zeros(len(problem.bandwidth_hz))
    np.maximum.at(last, levels[0].astype(np.int64), levels[1])
    rises = sparse.csr_array(
        (rise, (levels[0].astype(np.int64), np.arange(width))), shape=(len(last), width)
    )
    program.add(program.by_cell(np.ones(len(clients))), cells=rises, high=last)
    program.add(program.by_cell(1 / number), cells=sparse.csr_array((len(last), width)), high=1.0)
    return program.solve(cost=0.0, high=1.0, nodes=nodes)


class _Program:
    """min c' y  over x_ij in [0, 1] of allowed pairs, and further variables y >= 0."""

    def __init__(self, problem: CellShares, clients: IntArray, cells: IntArray, extra: int) -> None:
        self.problem, self.clients, self.cells, self.extra = problem, clients, cells, extra
        self.rows: list[Any] = []
        from scipy import sparse  # SciPy loads slowly

        self.sparse = sparse
        shape = (len(problem.bits), len(clients))
        one = sparse.csr_array((np.ones(len(clients)), (clients, np.arange(len(clients)))), shape)
        none = sparse.csr_array((shape[0], extra))
        self.rows.append((sparse.hstack([one, none]), 1.0, 1.0))
        count = self.by_cell(np.ones(len(clients)))
        none = sparse.csr_array((count.shape[0], extra))
        limits = problem.fewest.astype(np.float64), problem.most.astype(np.float64)
        self.rows.append((sparse.hstack([count, none]), *limits))

    def by_cell(self, weights: FloatArray) -> Any:
        """Rows that sum ``weights`` [pairs] times x over the clients of each cell."""
        shape = (len(self.problem.bandwidth_hz), len(weights))
        return self.sparse.csr_array((weights, (self.cells, np.arange(len(weights)))), shape)

    def add(self, pairs: Any, *, cells: Any, high: Any) -> None:
        """Add rows  pairs x + cells y <= high."""
        further = cells if self.sparse.issparse(cells) else cells[:, None]
        self.rows.append((self.sparse.hstack([pairs, further]), -np.inf, high))

    def solve(self, *, cost: float, high: float, nodes: int) -> Answer:
        """Solve, with y at most ``high``, and integers x if ``nodes`` > 0."""
        from scipy.optimize import Bounds, LinearConstraint, milp

        pairs = len(self.clients)
        objective = np.append(np.zeros(pairs), np.full(self.extra, cost))
        upper = np.append(np.ones(pairs), np.full(self.extra, high))
        whole = np.append(np.ones(pairs), np.full(self.extra, float(high == 1.0)))
        options: dict[str, Any] = {"mip_rel_gap": 0.0, "node_limit": nodes} if nodes else {}
        with quiet_highs:
            answer = milp(
                objective,
                integrality=whole if nodes else np.zeros_like(whole),
                bounds=Bounds(np.zeros_like(upper), upper),
                constraints=[LinearConstraint(*row) for row in self.rows],
                options=options,
            )
        if answer.status == INFEASIBLE:
            return Answer(None, np.inf)
        bound = answer.mip_dual_bound if nodes else answer.fun
        if answer.x is None and nodes:  # out of nodes
            return Answer(None, -np.inf if bound is None else float(bound))
        if answer.x is None:
            raise RuntimeError(f"highs failed on clients and cells: {answer.message}")
        parts = np.zeros(self.problem.snr_hz.shape)
        parts[self.clients, self.cells] = answer.x[:pairs]
        return Answer(parts, float(bound))


def matched(allowed: BoolArray, fewest: IntArray, most: IntArray) -> IntArray | None:
    """Cells [clients] of clients in allowed pairs, within limits of the cells; None without any.

    A flow from clients to cells: ``fewest`` clients of each cell go straight to the sink, the
    others through one node that lets the rest pass.

    Args:
        allowed: [clients, cells].
        fewest, most: [cells].
    """
    from scipy.sparse import csr_array  # SciPy loads slowly
    from scipy.sparse.csgraph import maximum_flow

    clients, cells = allowed.shape
    rest = clients - int(fewest.sum())
    if rest < 0:
        return None
    source, pool, sink = clients + cells, clients + cells + 1, clients + cells + 2
    which, where = np.nonzero(allowed)
    at = clients + np.arange(cells)
    edges = [
        (np.full(clients, source), np.arange(clients), np.ones(clients, dtype=np.int64)),
        (which, clients + where, np.ones(len(which), dtype=np.int64)),
        (at, np.full(cells, sink), fewest),
        (at, np.full(cells, pool), most - fewest),
        ([pool], [sink], [rest]),
    ]
    tails, heads, capacity = (np.concatenate(parts) for parts in zip(*edges, strict=True))
    size = clients + cells + 3
    graph = csr_array((capacity.astype(np.int32), (tails, heads)), shape=(size, size))
    answer = maximum_flow(graph, source, sink)
    if answer.flow_value < clients:
        return None
    flow = answer.flow[:clients, clients : clients + cells].tocoo()
    cell_of = np.zeros(clients, dtype=np.int64)
    used = flow.data > 0
    cell_of[flow.row[used]] = flow.col[used]
    return cell_of
