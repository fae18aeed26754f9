"""Submodels of as many neurons as each client can afford, for RA-Fed and its kin to derive from."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from channels.arrays import FloatArray, IntArray
from solvers import fastest_widths, widths_by_deadline
from wirelessfl.algorithms.base import Algorithm
from wirelessfl.algorithms.context import RoundContext
from wirelessfl.errors import ConfigError
from wirelessfl.submodels import ClientSubmodels
from wirelessfl.submodels.budgets import dealt_capacities, levels_of
from wirelessfl.submodels.masks import Dealing, Masks, check_coverage, deal_masks

Budget = Literal["width", "bytes", "flops", "deadline", "fastest"]


@dataclass(frozen=True)
class Narrow(Algorithm):
    """Clients that train submodels of their own, and send what these cover.

    A submodel keeps a share of the neurons of every hidden layer and of the channels of every
    convolution; inputs and outputs stay whole. Every coordinate is averaged over those who cover
    it, whatever the algorithm makes of that mean.

    Args:
        lr: step size of the clients' SGD; the narrowest submodels need larger steps than FedAvg's.
        capacities: what clients can afford, in ``budget``'s unit: shares of the full model (1, 1/2,
            ...), or above 1 bytes or FLOPs themselves; dealt out evenly among the clients at
            random, once for the run.
        budget: what ``capacities`` are shares of: neurons of each layer (``width``), ``bytes`` of
            parameters, or ``flops`` of a sample's forward pass.
    """

    name = ""

    lr: Annotated[float, Field(gt=0, description="step size of the clients' SGD")] = 0.1
    capacities: Annotated[
        tuple[Annotated[float, Field(gt=0)], ...],
        Field(
            min_length=1,
            description="what clients can afford, in shares of the full model, or above 1 in bytes "
            "or FLOPs",
        ),
    ] = (1.0, 0.5, 0.25, 0.125)
    budget: Annotated[
        Literal["width", "bytes", "flops"],
        Field(description="unit of --capacities: neurons a layer, bytes, or FLOPs"),
    ] = "width"

    def __post_init__(self) -> None:
        if self.budget == "width" and max(self.capacities) > 1:
            raise ValueError(
                f"capacities is {self.capacities} and budget 'width': give shares of a layer's "
                "neurons, up to 1"
            )

    @abstractmethod
    def choose(self, context: RoundContext, counts: IntArray) -> list[list[IntArray]]:
        """Per sender, per layer, ``counts`` [senders, layers] neurons, their numbers sorted."""

    def client_submodels(self, context: RoundContext) -> ClientSubmodels | None:
        """Neurons for each sender: as many as it can afford."""
        neurons = context.neurons()
        counts = levels_of(neurons).widths[self.levels(context)]
        return ClientSubmodels(neurons, self.choose(context, counts))

    def levels(self, context: RoundContext) -> IntArray:
        """[senders], the level of width of each, see ``budgets.Levels``.

        Raises:
            ConfigError: a client cannot afford the smallest submodel.
        """
        levels = levels_of(context.neurons())
        capacities = dealt_capacities(self.capacities, context.clients, context.run_stream)
        level = {share: levels.within(self.budget, share) for share in set(self.capacities)}
        shares = capacities[context.senders].tolist()
        return np.array([level[share] for share in shares], dtype=np.int64)


@dataclass(frozen=True)
class Adaptive(Narrow):
    """Widths by what clients can afford, or by the network that they are in.

    Args:
        capacities: of the full model, what clients can afford.
        budget: their unit. Or widths follow from the network, afresh for each round's channels: the
            widest submodels with which every client ends the round within ``deadline`` seconds, or
            those that end the round soonest while every neuron is covered by ``min_coverage``
            clients (``fastest``), see ``solvers.widths_by_deadline`` and ``fastest_widths``.
        deadline: seconds of a round, for budget ``deadline``.
        min_coverage: clients of a round that hold each neuron at least, in each cell where there
            are cells; 0: no such demand. With one hidden layer that is Gamma* of all weights; one
            between two hidden layers is covered by those alone who hold both its neurons.
    """

    name = ""

    budget: Annotated[
        Budget,
        Field(
            description="unit of --capacities: neurons a layer, bytes, or FLOPs; or "
            "widths from the network: within a deadline, or fastest for --min-coverage"
        ),
    ] = "width"  # type: ignore[assignment]  # it knows more units
    deadline: Annotated[
        float | None, Field(gt=0, description="of budget deadline: maximum seconds of a round")
    ] = None
    min_coverage: Annotated[
        int, Field(ge=0, description="clients of a round that hold each neuron at least")
    ] = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.budget == "deadline" and self.deadline is None:
            raise ValueError("budget is 'deadline', and there is none: give --deadline SECONDS")
        if self.budget == "fastest" and not self.min_coverage:
            raise ValueError(
                "budget is 'fastest' and min_coverage 0: the smallest submodels would be the "
                "fastest. Give --min-coverage 1 or more"
            )

    def unused(self) -> Mapping[str, str]:
        """Widths from the network replace capacities, and only one budget has a deadline."""
        found = dict(super().unused())
        if self.budget != "deadline":
            found["deadline"] = f'conflicts with budget="{self.budget}": choose budget "deadline"'
        if self.budget in ("deadline", "fastest"):
            found["capacities"] = (
                f'conflicts with budget="{self.budget}", which takes widths from the network: '
                'choose budget "width"'
            )
        return found

    @property
    def fixed_shapes(self) -> bool:
        """Not where the channel of each round decides the widths."""
        return self.budget not in ("deadline", "fastest")

    @property
    def plans_ahead(self) -> bool:
        """Where a coverage is demanded, or a time that may turn out too short."""
        return self.min_coverage > 0 or not self.fixed_shapes

    def client_submodels(self, context: RoundContext) -> ClientSubmodels | None:
        """Neurons for each sender.

        Raises:
            ConfigError: some are covered less often than demanded; the message names them.
        """
        found = super().client_submodels(context)
        if found is None or not self.min_coverage:
            return found
        for node, rows in reporting(context):
            check_coverage(
                found.of_rows(rows).chosen,
                found.neurons.layers,
                self.min_coverage,
                clients=len(rows),
                number=context.number + 1,
                cell=None if context.nodes == 1 else node,
            )
        return found

    def levels(self, context: RoundContext) -> IntArray:
        """[senders], the level of width of each.

        Raises:
            ConfigError: a client cannot afford the smallest submodel, or has not the time for it,
                or no data rate; or the coverage cannot be had.
        """
        if self.fixed_shapes:
            return super().levels(context)
        levels = levels_of(context.neurons())
        seconds, widths = context.client_seconds(levels.parameters), levels.widths.T
        silent = ~np.isfinite(seconds).all(1)
        if silent.any():
            raise ConfigError(
                f"round {context.number + 1}: client {context.senders[silent.argmax()]} has no "
                f"data rate, and budget is {self.budget!r}. Raise snr_db or bandwidth_hz."
            )
        deadline = self.deadline
        if deadline is None:  # cells wait for the slowest of them, each with its coverage
            deadline = max(
                self._soonest(context, seconds[rows], widths) for _, rows in reporting(context)
            )
        solution = widths_by_deadline(seconds, widths, deadline)
        if solution.value is None:
            slowest = int(seconds[:, 0].argmax())
            raise ConfigError(
                f"round {context.number + 1}: client {context.senders[slowest]} needs "
                f"{seconds[slowest, 0]:.4g} seconds for the smallest submodel, and deadline is "
                f"{deadline:g}. Raise it, or give clients more bandwidth or faster processors."
            )
        return np.asarray(solution.value)

    def _soonest(self, context: RoundContext, seconds: FloatArray, widths: IntArray) -> float:
        """Seconds until clients of one node can have covered all of it enough."""
        solution = fastest_widths(seconds, widths, self.min_coverage)
        if solution.value is None:
            raise ConfigError(
                f"round {context.number + 1}: {solution.message}. Lower min_coverage, or take more "
                "clients a round."
            )
        return float(solution.objective)


def deal(
    kind: Masks, context: RoundContext, counts: IntArray, overlap: float = 0.0
) -> list[list[IntArray]]:
    """Masks for each sender, dealt among those who report to the same node: see ``deal_masks``."""
    chosen: list[list[IntArray]] = [[] for _ in context.senders]
    for node, rows in reporting(context):
        stream = context.stream if context.nodes == 1 else context.stream.child("cell", node)
        dealing = Dealing(
            number=context.number,
            clients=context.senders[rows],
            round=stream,
            run=context.run_stream,
            overlap=overlap,
        )
        masks = deal_masks(kind, context.neurons().layers, counts[rows], dealing)
        for row, mine in zip(rows.tolist(), masks, strict=True):
            chosen[row] = mine
    return chosen


def reporting(context: RoundContext) -> Iterator[tuple[int, IntArray]]:
    """Each node with senders, and their indices among all senders."""
    for node in np.unique(context.node).tolist():
        yield node, np.flatnonzero(context.node == node)
