"""Groups of clients that train in one job each, and the states sent to them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from torch import Tensor

from channels.arrays import BoolArray, IntArray
from wirelessfl.submodels import ClientSubmodels, Submodels
from wirelessfl.submodels.client_submodels import SOME
from wirelessfl.training.cohort import State


class Work(Protocol):
    """Clients that train, and what: those of a planned round, or of requests."""

    @property
    def clients(self) -> IntArray:
        """[rows], their numbers."""

    @property
    def tracking(self) -> BoolArray:
        """[rows], who sends what only trackers send."""

    @property
    def node(self) -> IntArray:
        """[rows], the node each reports to, or which of several models each is sent."""

    @property
    def submodels(self) -> Submodels:
        """What each node trains."""

    @property
    def client_submodels(self) -> ClientSubmodels | None:
        """What each trains of its node's model; None: all of it."""


@dataclass(frozen=True, eq=False)
class JobGroup:
    """Clients that train in one job.

    Args:
        rows: their indices among all of the work.
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


def job_groups(work: Work, servers: State, padding: float, chunk: int) -> Iterator[JobGroup]:
    """The clients of some work, grouped into jobs.

    Args:
        work: who trains what.
        servers: what the nodes send, [nodes, P_max] by name.
        padding: largest padded fraction of a mixed-width batch.
        chunk: clients that an executor trains at a time.
    """
    everybody, each = np.arange(len(work.clients)), work.client_submodels
    if each is None:
        yield JobGroup(everybody, work.submodels, work.node, servers)
        return
    for rows in each.batches(padding, max(SOME, chunk)):
        submodels, node = each.of(rows), work.node[rows]
        taken = {name: submodels.gather_from(value, node) for name, value in servers.items()}
        yield JobGroup(rows, submodels, np.arange(len(rows)), taken, apart=True)
