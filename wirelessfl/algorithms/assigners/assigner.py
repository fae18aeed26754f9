"""The interface of an assigner: who trains which neurons.

An assigner knows neither rules nor time; it gets a context and returns submodels. Its dataclass
fields are its settings. An algorithm of a paper that comes with its own submodels derives from its
assigner and from a rule, e.g. ``class HeteroFL(Nested, FedAvg)``; any other algorithm trains what
the run's assigner gives out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal, Protocol

from channels.arrays import FloatArray, IntArray
from channels.streams import Stream
from wirelessfl.base.errors import ConfigError
from wirelessfl.base.registry import Choice
from wirelessfl.models.submodels import ClientSubmodels, NeuronMap, ParamSpec, Partition, Submodels
from wirelessfl.models.submodels.partition import Scheme


class DealingContext(Protocol):
    """A round, or a merge of some cells, for which submodels are assigned."""

    @property
    def spec(self) -> ParamSpec:
        """Parameters of the full model."""

    @property
    def nodes(self) -> int:
        """Number of nodes: 1 (the server), or the number of edge servers."""

    @property
    def stream(self) -> Stream:
        """Random stream of this round or merge."""

    @property
    def number(self) -> int:
        """Index of the round, from 0; or number of merges at the cloud, including this one."""

    @property
    def run_stream(self) -> Stream:
        """Random stream of the model's training, the same in all its rounds."""

    @property
    def capacity_stream(self) -> Stream:
        """Random stream of the clients' capacities, the same in all rounds of all tasks."""

    @property
    def clients(self) -> int:
        """n, number of registered clients."""

    def partition(self, scheme: Scheme) -> Partition:
        """Neuron partition of the run's model."""

    def neurons(self) -> NeuronMap:
        """Neurons of the run's model that a submodel can omit."""


class Durations(Protocol):
    """Seconds of a round, or of training requests, by the clients' submodels."""

    @property
    def title(self) -> str:
        """The round, or the requests, for messages, e.g. "round 3"."""

    @property
    def remedies(self) -> str:
        """Settings that shorten it, for messages: what follows "raise deadline," there."""

    @property
    def coupled(self) -> bool:
        """Whether a client's seconds depend on the submodels of other clients of its node."""

    def seconds_of(self, lengths: IntArray) -> FloatArray:
        """Seconds [candidates, senders] for submodels [candidates, senders] of these lengths.

        Over the air, they are those of sending the full model.
        """

    def client_seconds(self, lengths: IntArray) -> FloatArray:
        """Seconds [senders, levels] for submodels of ``lengths`` [levels] parameters."""


class CellDurations(Durations, Protocol):
    """Seconds of a round whose nodes can have submodels."""

    def fastest_sizes(self, partition: Partition, cap: float) -> list[int]:
        """Neurons per node that minimise the round's latency, at most ``cap`` times their mean."""


class ClientContext(DealingContext, Protocol):
    """A round, or requests, whose clients are known and whose submodels are being chosen."""

    @property
    def senders(self) -> IntArray:
        """Participating clients, in the same order as in the network."""

    @property
    def node(self) -> IntArray:
        """Node that each sender reports to."""

    @property
    def durations(self) -> Durations:
        """Seconds of the senders, by their submodels."""


class RoundContext(ClientContext, Protocol):
    """A round of one model whose participants are known and whose submodels are being chosen."""

    @property
    def durations(self) -> CellDurations:
        """Seconds of the round, by the submodels of its clients or nodes."""


@dataclass(frozen=True)
class Assigner(Choice):
    """Base class of assigners. Without overrides, every node and client has the full model."""

    name = ""
    of_cells: ClassVar[bool] = False
    """Whether cells have submodels of their own, see ``submodels``."""
    of_clients: ClassVar[bool] = False
    """Whether clients have submodels of their own, see ``client_submodels``."""

    def submodels(self, context: RoundContext) -> Submodels:
        """Submodel of each node in this round; by default the full model."""
        return Submodels.whole(context.spec, context.nodes)

    def redealt(
        self, context: DealingContext, before: Submodels, cells: Sequence[int]
    ) -> Submodels:
        """Submodel of each node after the cloud has merged some of the cells; default: unchanged.

        Args:
            context: describes the merge; its number counts merges, including this one.
            before: current submodel of each node.
            cells: the merged cells, in order. The other cells are still training, and must keep
                their submodels.
        """
        return before

    def client_submodels(self, context: ClientContext) -> ClientSubmodels | None:
        """Part of its node's model that each client trains; None for all of it."""
        return None

    def tested(self, neurons: Callable[[], NeuronMap]) -> ClientSubmodels | None:
        """The submodel that is evaluated; None for the full model."""
        return None

    @property
    def deals_jointly(self) -> bool:
        """Whether a client's submodel depends on the other participants of the round."""
        return False

    @property
    def fixed_shapes(self) -> bool:
        """Whether the submodels have the same shapes in every round."""
        return True

    @property
    def plans_ahead(self) -> bool:
        """Whether to plan all rounds before training starts, because a round may be infeasible."""
        return False

    @property
    def design_sizes(self) -> SubmodelSizes:
        """The sizes of its submodels, for designs."""
        return SubmodelSizes(self)

    def check_clients(self, clients: int) -> None:
        """Check that the assigner works with this number of clients.

        Args:
            clients: n, number of registered clients.

        Raises:
            ConfigError: it does not work; the message names the settings and the remedy.
        """

    def check_requests(self, schedule: str) -> None:
        """Check that the assigner works with requests, and with rounds of several tasks.

        Args:
            schedule: the schedule, for messages, e.g. 'schedule "buffered"'.

        Raises:
            ConfigError: it does not work; the message names the settings and the remedy.
        """
        if self.plans_ahead:
            raise ConfigError(
                f'assigner "{self.title}" plans its rounds in advance with these settings, which '
                f'conflicts with {schedule}: choose other values, or schedule "rounds".'
            )

    def check_senders(self, context: ClientContext) -> None:
        """Check that each sender can have a submodel, before training starts.

        Raises:
            ConfigError: a sender cannot; the message names it and the remedy.
        """

    def check_cells(self, cells: int) -> None:
        """Check that the assigner works with this number of cells.

        Args:
            cells: N, number of cells.

        Raises:
            ConfigError: it does not work; the message names the settings and the remedy.
        """

    def check_merged_cells(self, merged: int, cells: int) -> None:
        """Check that the assigner works with this number of cells per merge.

        Args:
            merged: B, cells per merge at the cloud.
            cells: N, number of cells.

        Raises:
            ConfigError: it does not work; the message names the settings and the remedy.
        """
        if not 1 <= merged <= cells:
            raise ConfigError(
                f"buffer={merged} conflicts with cells={cells}: the cloud can merge 1 to {cells} "
                f"cells at once. Choose buffer 1 to {cells}, or raise cells."
            )


@dataclass(frozen=True)
class SubmodelSizes:
    """What a design knows of the sizes of submodels, and how it changes them; by default neither.

    Args:
        assigner: gives out the submodels.
    """

    assigner: Assigner
    of: ClassVar[Literal["", "cells", "clients"]] = ""
    """What has sizes of its own; a design chooses those of cells."""

    @property
    def disjoint(self) -> bool:
        """Whether no two cells train the same neuron."""
        return False

    def fixed(self, shares: tuple[float, ...] | None) -> Assigner:
        """The assigner with other sizes.

        Args:
            shares: [cells], share of the neurons of each cell, with sum 1; None for equal ones.
        """
        return self.assigner

    def optimized(self) -> Assigner:
        """The assigner with sizes that take the least time in each round."""
        return self.assigner

    def limit(self, partition_of: Callable[[Scheme], Partition]) -> tuple[Partition, float] | None:
        """The partition, and the largest optimized size relative to equal ones; None without one.

        Args:
            partition_of: returns the model's partition under a scheme.
        """
        return None

    def lengths(self, context: ClientContext) -> FloatArray | None:
        """Parameters [senders] of each sender's submodel; None if rounds must be planned for it."""
        return None

    def reciprocal_width(self, clients: int) -> float:
        """Mean of 1/width over the clients, for learning curves; 1 if it is not known."""
        return 1.0


@dataclass(frozen=True)
class NoAssigner(Assigner):
    """All cells and clients train the full model."""

    name = "none"
