"""Base class of assigners whose widths may depend on the state of the network (RA-Fed etc.)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, ClassVar, Literal

import numpy as np
from pydantic import Field

from channels.arrays import FloatArray, IntArray
from solvers import fastest_widths, optimize_widths_by_time, widths_by_deadline
from wirelessfl.algorithms.assigners.assigner import ClientContext, SubmodelSizes
from wirelessfl.algorithms.assigners.narrow import Narrow, Scaled, reporting
from wirelessfl.base.errors import ConfigError
from wirelessfl.base.needs import Needs, beside
from wirelessfl.models.submodels import ClientSubmodels, check_weight_coverage
from wirelessfl.models.submodels.budgets import levels_of, mean_reciprocal
from wirelessfl.models.submodels.masks import check_coverage

Budget = Literal["width", "bytes", "flops", "deadline", "fastest"]


@dataclass(frozen=True)
class Adaptive(Scaled, Narrow):
    """Base class: submodel widths from client capacities, or from the state of the network.

    Args:
        capacities: client capacities, as in ``Narrow``.
    """

    name = ""

    budget: Annotated[
        Budget,
        Field(
            description="unit of --capacities: fraction of neurons per layer (width), bytes or "
            "flops; or widths from the channels: within --deadline (deadline), or fastest for "
            "--min-coverage (fastest)"
        ),
    ] = "width"  # type: ignore[assignment]  # more choices than in the base class
    deadline: Annotated[
        float | None,
        Field(gt=0, description="maximum seconds per round or request with --budget deadline"),
        beside("budget", "deadline"),
    ] = None
    min_coverage: Annotated[
        int,
        Field(
            ge=0,
            description=(
                "minimum number of clients per round, in each cell, that cover "
                "each neuron; with one hidden layer, Gamma* of all weights"
            ),
        ),
    ] = 0
    coverage_of: Annotated[
        Literal["neurons", "weights"],
        Field(
            description=(
                "what --min-coverage counts: clients that cover each neuron, or "
                "each weight, whose two neurons a client must have"
            )
        ),
        Needs(lambda run, choice: choice.min_coverage, "needs min_coverage: set it"),
    ] = "neurons"
    widths: Annotated[
        tuple[Annotated[float, Field(gt=0, le=1)], ...] | None,
        Field(
            min_length=1,
            description="fraction of each layer's neurons that each client trains, one per client "
            "in their order (default: --capacities, assigned at random)",
        ),
        beside("budget", "width"),
    ] = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.budget == "deadline" and self.deadline is None:
            raise ValueError("budget='deadline' needs a deadline: give deadline in seconds")
        if self.budget == "fastest" and not self.min_coverage:
            raise ValueError(
                "budget='fastest' conflicts with min_coverage=0: the smallest submodels would "
                "always be the fastest. Raise min_coverage to 1 or more"
            )
        if self.budget == "fastest" and self.coverage_of == "weights":
            raise ValueError(
                "coverage_of='weights' conflicts with budget='fastest', which computes widths for "
                'a coverage of neurons. Choose coverage_of "neurons", or budget "width"'
            )

    @property
    def fixed_shapes(self) -> bool:
        """False if the widths depend on the channels of each round."""
        return self.budget not in ("deadline", "fastest")

    def check_clients(self, clients: int) -> None:
        """Check that ``widths`` has one entry per client."""
        super().check_clients(clients)
        if self.widths is not None and len(self.widths) != clients:
            raise ConfigError(
                f"widths has {len(self.widths)} entries, and there are {clients} clients: give one "
                "per client, or capacities, which are assigned in equal numbers."
            )

    def check_requests(self, schedule: str) -> None:
        """Refuse a minimum coverage, which rounds that are not planned in advance may miss.

        Widths by a deadline need no planned rounds: each client has its own seconds.
        """
        setting, remedy = f"min_coverage={self.min_coverage}", "min_coverage 0"
        if self.budget == "fastest":
            setting, remedy = 'budget="fastest"', 'budget "deadline" without min_coverage'
        if self.min_coverage:
            raise ConfigError(
                f"{setting} conflicts with {schedule}, which does not plan rounds in advance: "
                f'choose schedule "rounds", or {remedy}.'
            )
        if self.fixed_shapes:  # a subclass may plan rounds ahead for other reasons
            super().check_requests(schedule)

    def check_senders(self, context: ClientContext) -> None:
        """Check widths by a deadline; those of ``capacities`` do not depend on the client.

        Only the smallest submodel is considered, which takes little time for many clients.
        """
        if self.deadline is None:
            return
        smallest = levels_of(context.neurons()).parameters[:1]
        seconds = context.durations.client_seconds(smallest)
        self._check_rates(context, seconds)
        if seconds.max() > self.deadline:
            raise self._too_slow(context, seconds[:, 0], self.deadline)

    @property
    def even_masks(self) -> str:
        """Advice on masks that cover weights more evenly, for messages; empty if there are none."""
        return ""

    @property
    def plans_ahead(self) -> bool:
        """True with a minimum coverage or widths from the channels: a round may be infeasible."""
        return self.min_coverage > 0 or not self.fixed_shapes

    def client_submodels(self, context: ClientContext) -> ClientSubmodels | None:
        """Submodel of each sender.

        Raises:
            ConfigError: fewer than ``min_coverage`` clients cover some neurons or weights; the
                message names them.
        """
        submodels = super().client_submodels(context)
        if submodels is None:
            return None
        submodels = replace(submodels, scaled=self.scaled)
        if not self.min_coverage:
            return submodels
        for node, rows in reporting(context):
            mine, cell = submodels.of_rows(rows), None if context.nodes == 1 else node
            number = context.number + 1
            if self.coverage_of == "weights":
                check_weight_coverage(
                    mine, self.min_coverage, number=number, cell=cell, advice=self.even_masks
                )
                continue
            check_coverage(
                mine.chosen,
                submodels.neurons.layers,
                self.min_coverage,
                clients=len(rows),
                number=number,
                cell=cell,
            )
        return submodels

    def shares(self, context: ClientContext) -> FloatArray:
        """Capacity [senders] of each sender: its width if ``widths`` are given."""
        if self.widths is None:
            return super().shares(context)
        return np.array(self.widths)[context.senders]

    @property
    def design_sizes(self) -> SubmodelSizes:
        """Widths of the clients."""
        return ClientWidths(self)

    def levels(self, context: ClientContext) -> IntArray:
        """Width level [senders] of each sender.

        Raises:
            ConfigError: a client cannot afford the smallest submodel, cannot finish its round
                within the deadline, or has data rate 0; or the minimum coverage is infeasible.
        """
        if self.fixed_shapes:
            return super().levels(context)
        levels, durations = levels_of(context.neurons()), context.durations
        parameters, widths = levels.parameters, levels.widths.T
        seconds = durations.client_seconds(parameters)
        self._check_rates(context, seconds)
        deadline = self.deadline
        if deadline is None and durations.coupled:
            raise ConfigError(
                f'budget="{self.budget}" conflicts with an uplink in which clients of a cell wait '
                'for each other: choose budget "deadline", or an uplink such as "tdma" with equal '
                "slots."
            )
        if deadline is None:  # cells wait for the slowest one, so all may use its time
            deadline = max(
                self._soonest(context, seconds[rows], widths) for _, rows in reporting(context)
            )
        if durations.coupled:
            solution = optimize_widths_by_time(
                lambda levels: durations.seconds_of(parameters[levels]),
                widths,
                deadline,
                cell_of=context.node,
            )
        else:
            solution = widths_by_deadline(seconds, widths, deadline)
        if solution.value is None:
            raise self._too_slow(context, seconds[:, 0], deadline)
        return np.asarray(solution.value)

    def _check_rates(self, context: ClientContext, seconds: FloatArray) -> None:
        """Refuse clients whose seconds [senders, levels] are infinite."""
        silent = ~np.isfinite(seconds).all(1)
        if silent.any():
            raise ConfigError(
                f"budget is {self.budget!r}: the data rate of client "
                f"{context.senders[silent.argmax()]} in {context.durations.title} is 0. Raise "
                "snr_db or bandwidth_hz."
            )

    def _too_slow(
        self, context: ClientContext, seconds: FloatArray, deadline: float
    ) -> ConfigError:
        """The error for the slowest client, from the seconds [senders] of smallest submodels."""
        slowest, durations = int(seconds.argmax()), context.durations
        return ConfigError(
            f"deadline is {deadline:g}: in {durations.title} client {context.senders[slowest]} "
            f"needs {seconds[slowest]:.4g} seconds for the smallest submodel. Raise deadline, "
            f"{durations.remedies}."
        )

    def _soonest(self, context: ClientContext, seconds: FloatArray, widths: IntArray) -> float:
        """Shortest round, in seconds, in which one node's clients reach the minimum coverage."""
        solution = fastest_widths(seconds, widths, self.min_coverage)
        if solution.value is None:
            raise ConfigError(
                f"round {context.number + 1}: {solution.message}. Lower min_coverage, or raise "
                "clients_per_round."
            )
        return float(solution.objective)


@dataclass(frozen=True)
class ClientWidths(SubmodelSizes):
    """Widths of the clients' submodels, which a design knows but does not choose."""

    assigner: Adaptive
    of: ClassVar[Literal["", "cells", "clients"]] = "clients"

    def lengths(self, context: ClientContext) -> FloatArray | None:
        """Parameters of each sender's width; None if rounds are planned in advance."""
        if self.assigner.plans_ahead:
            return None
        parameters = levels_of(context.neurons()).parameters
        return parameters[self.assigner.levels(context)].astype(np.float64)

    def reciprocal_width(self, clients: int) -> float:
        """Mean of 1/width over the clients; 1 if their widths are not given as ratios."""
        if self.assigner.budget != "width":
            return 1.0
        return mean_reciprocal(self.assigner.widths or self.assigner.capacities, clients)
