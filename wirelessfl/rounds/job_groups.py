"""Groups of a round's clients that train in one job each, and the states sent to them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from torch import Tensor

from channels.arrays import IntArray
from wirelessfl.rounds.plan import Plan
from wirelessfl.submodels import Submodels
from wirelessfl.submodels.client_submodels import SOME
from wirelessfl.training.cohort import State


@dataclass(frozen=True, eq=False)
class JobGroup:
    """Clients that train in one job.

    Args:
        rows: their indices among the clients of the round.
        submodels: what they train.
        node: [rows], which of ``submodels`` each trains.
        servers: what they are sent, by name, a row for each of ``submodels``.
        apart: whether each has a submodel of its own, and not that of its node.
    """

    rows: IntArray
    submodels: Submodels
    node: IntArray
    servers: State
    apart: bool = False

    def at_nodes(self, payloads: dict[str, Tensor], part: slice) -> dict[str, Tensor]:
        """What those in ``part`` send, by payload, in the coordinates of their node."""
        if not self.apart:
            return payloads
        return {name: self.submodels.spread(value, part) for name, value in payloads.items()}


def job_groups(plan: Plan, servers: State, padding: float, chunk: int) -> Iterator[JobGroup]:
    """The clients of a round, grouped into jobs.

    Args:
        plan: of the round.
        servers: what the nodes send, [nodes, P_max] by name.
        padding: largest padded fraction of a mixed-width batch.
        chunk: clients that an executor trains at a time.
    """
    everybody, each = np.arange(len(plan.clients)), plan.client_submodels
    if each is None:
        yield JobGroup(everybody, plan.submodels, plan.node, servers)
        return
    for rows in each.batches(padding, max(SOME, chunk)):
        submodels, node = each.of(rows), plan.node[rows]
        taken = {name: submodels.gather_from(value, node) for name, value in servers.items()}
        yield JobGroup(rows, submodels, np.arange(len(rows)), taken, apart=True)
