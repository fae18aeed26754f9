"""Groups of clients, one per training job, and the states sent to them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from torch import Tensor

from channels.arrays import BoolArray, IntArray
from wirelessfl.submodels import ClientSubmodels, Submodels
from wirelessfl.submodels.client_submodels import SOME
from wirelessfl.training.cohort import State


@dataclass(frozen=True, eq=False)
class Work:
    """Clients to train, from a planned round or from requests.

    Args:
        clients: [rows], client numbers.
        tracking: [rows] boolean, clients that send tracking terms.
        node: [rows], node that each client reports to, or index of the model that it receives.
        submodels: submodel of each node.
        client_submodels: submodel of each client; None if all train the submodel of their node.
        first_steps: [rows], number of earlier local steps of each client.
        fresh: [rows] boolean, clients that have never trained before; None for those without
            earlier local steps.
    """

    clients: IntArray
    tracking: BoolArray
    node: IntArray
    submodels: Submodels
    client_submodels: ClientSubmodels | None
    first_steps: IntArray
    fresh: BoolArray | None = None

    @classmethod
    def joined(cls, works: Sequence[Work]) -> Work:
        """The clients of several rounds of the same model, each at nodes of its own.

        The submodels of a round are empty at the nodes of the others.
        """
        first = works[0]
        if len(works) == 1:
            return first
        submodels = [work.submodels for work in works]
        places = [each.places for each in submodels if each.places is not None]
        each = [work.client_submodels for work in works if work.client_submodels is not None]
        return cls(
            np.concatenate([work.clients for work in works]),
            np.concatenate([work.tracking for work in works]),
            np.concatenate([work.node for work in works]),
            replace(
                submodels[0],
                lengths=np.maximum.reduce([each.lengths for each in submodels]),
                places=np.maximum.reduce(places) if places else None,
            ),
            replace(each[0], chosen=[of for some in each for of in some.chosen]) if each else None,
            np.concatenate([work.first_steps for work in works]),
        )


@dataclass(frozen=True, eq=False)
class JobGroup:
    """Clients that train in one job.

    Args:
        rows: indices of the clients in the work.
        submodels: submodels that they train.
        node: [rows], index in ``submodels`` of each client.
        servers: tensors sent to them, by name, one row per submodel.
        apart: whether each client has its own submodel; otherwise it trains its node's submodel.
    """

    rows: IntArray
    submodels: Submodels
    node: IntArray
    servers: State
    apart: bool = False

    def at_nodes(self, payloads: dict[str, Tensor], part: slice) -> dict[str, Tensor]:
        """Payloads of the clients in ``part``, in the coordinates of their nodes."""
        if not self.apart:
            return payloads
        return {name: self.submodels.spread(value, part) for name, value in payloads.items()}


def job_groups(
    work: Work, servers: State, padding: float, chunk: int, steps: IntArray | None = None
) -> Iterator[JobGroup]:
    """Group the clients of ``work`` into jobs; those of a job are in the order of their steps.

    Args:
        work: clients and their submodels.
        servers: tensors that the nodes send, [nodes, P_max] by name.
        padding: largest padded fraction of a mixed-width batch.
        chunk: number of clients that an executor trains concurrently.
        steps: number of local steps of each client; None if all have the same.
    """
    all_rows, each = np.arange(len(work.clients)), work.client_submodels

    def ordered(rows: IntArray) -> IntArray:
        return rows if steps is None else rows[np.argsort(steps[rows], kind="stable")]

    if each is None:
        rows = ordered(all_rows)
        node = work.node if steps is None else work.node[rows]
        yield JobGroup(rows, work.submodels, node, servers)
        return
    for batch in each.batches(padding, max(SOME, chunk)):
        rows = ordered(batch)
        submodels, node = each.of(rows), work.node[rows]
        taken = {name: submodels.gather_from(value, node) for name, value in servers.items()}
        yield JobGroup(rows, submodels, np.arange(len(rows)), taken, apart=True)
