"""The contract of an algorithm: a client rule and a server rule over explicit state.

An algorithm knows nothing of loops, time, radio or devices. Its dataclass fields are its settings:
they become flags of the command line and keys of ``[algorithm]``, checked and explained by their
``Annotated[type, Field(...)]``. ``docs/extending.md`` has the whole contract in one table.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

from torch import Tensor

from wirelessfl.algorithms.context import DealingContext, RoundContext
from wirelessfl.errors import ConfigError
from wirelessfl.submodels import ClientSubmodels, NeuronMap, Submodels
from wirelessfl.training.cohort import State
from wirelessfl.training.payloads import Payload, Received
from wirelessfl.training.rules import ClientRule

Topology = Literal["star", "cells"]


@dataclass(frozen=True)
class Algorithm(ClientRule):
    """Base of every algorithm. Tensors of clients are [clients, P], those of a server [P].

    ``send`` and ``merge`` have to be written; everything else has a default.

    Args:
        lr: step size gamma of the clients' SGD.
    """

    topology: ClassVar[Topology] = "star"
    """``star``: clients report to one server. ``cells``: to the edge server of their cell, which
    is itself a client of the cloud."""
    takes_local: ClassVar[bool] = False
    """Whether it has the setting ``local``, the algorithm that clients and edge servers run."""
    node_state: ClassVar[bool] = True
    """Whether all server state but the model stays with each edge server; else the cloud combines
    it. A star's server is its only node."""
    uses_mean: ClassVar[bool] = True
    """Whether its merge weighs clients as the run says, uniformly or by their samples."""

    sends_changes: ClassVar[bool] = True
    """Whether its first payload is the change of a client's model, whose spread option D of
    schedule ``buffered`` measures."""
    merges_by_lr: ClassVar[bool] = False
    """Whether its merge divides by the clients' step size, so that all of a merge must have had the
    same."""
    of_staleness: ClassVar[tuple[str, ...]] = ()
    """Settings that matter only where updates may be stale, under schedules of requests."""

    @abstractmethod
    def merge(self, server: State, received: Received) -> State:
        """The next state of the server, or of the edge servers, from what they received.

        Tensors have the nodes on their leading axis here: [nodes, P], one node for a star.
        """
        return dict(server)

    def initial(self, params: Tensor) -> State:
        """The server's state before the first round, from the initial parameters [P]."""
        return {"params": params}

    def outgoing(self, server: State) -> State:
        """What the server sends, by the names in ``sends``, given its state [nodes, P]."""
        return {name: server[name] for name in self.sends}

    def combine(
        self, cloud: State, nodes: State, submodels: Submodels, weights: Sequence[float]
    ) -> State:
        """The cloud's next state from those of its nodes, [nodes, P_max] by name: their mean.

        The cloud has the model and, unless ``node_state``, the rest of the server's state.
        """
        return {name: submodels.merge(cloud[name], nodes[name], weights) for name in cloud}

    @property
    def server_step_size(self) -> float:
        """Step size eta_s of the server along the mean update."""
        return 1.0

    @property
    def recounted(self) -> tuple[str, ...]:
        """Server state that is the mean of what clients keep under the same name.

        It is made again when clients come or go.
        """
        return ()

    @property
    def remembers(self) -> tuple[str, ...]:
        """What the server remembers of each registered client, [P] each, zeros at first."""
        return ()

    def remember(self, received: Received) -> State:
        """What the server remembers of each sender from now on, [clients, P] by name."""
        return {}

    def submodels(self, context: RoundContext) -> Submodels:
        """What each node trains this round: the whole model, unless an algorithm says otherwise."""
        return Submodels.whole(context.spec, context.nodes)

    def redealt(
        self, context: DealingContext, before: Submodels, cells: Sequence[int]
    ) -> Submodels:
        """What each node trains once the cloud has merged some cells alone: what it had.

        Args:
            context: of the merge; its number counts merges, this one included.
            before: what each node had.
            cells: that were merged, in order; the others are at work, and keep what they have.
        """
        return before

    def client_submodels(self, context: RoundContext) -> ClientSubmodels | None:
        """What each client trains of its node's model; None: all of it."""
        return None

    def tested(self, neurons: Callable[[], NeuronMap]) -> ClientSubmodels | None:
        """The one submodel that is evaluated; None: the whole model."""
        return None

    @property
    def deals_jointly(self) -> bool:
        """Whether a client's submodel depends on who else takes part in the round."""
        return False

    @property
    def fixed_shapes(self) -> bool:
        """Whether what is trained has the same shapes in every round."""
        return True

    @property
    def plans_ahead(self) -> bool:
        """Whether each round is planned before the first, as some may turn out impossible."""
        return False

    def check(self, clients: int, per_round: int, tracking: int) -> None:
        """Refuse a participation under which the algorithm does not work.

        Args:
            clients: n, registered.
            per_round: S, that train in a round.
            tracking: number of these that send tracking terms.

        Raises:
            ValueError: it does not; the message names the setting, its value and the remedy.
        """

    def check_merged_cells(self, merged: int, cells: int) -> None:
        """Refuse a number of cells in a merge with which the algorithm does not work.

        Args:
            merged: B, cells in a merge of the cloud.
            cells: N.

        Raises:
            ConfigError: it does not; the message names the settings and the remedy.
        """
        if not 1 <= merged <= cells:
            raise ConfigError(
                f"buffer is {merged}, and cells is {cells}: a merge of the cloud takes at most all "
                f"cells. Lower buffer to {cells} or less, or raise cells."
            )

    def unit(self, payload: Payload, local_steps: int) -> float:
        """In whose multiples an analog uplink sends ``payload`` after ``local_steps`` steps."""
        return self.lr if payload.unit == "lr" else 1.0
