"""Designs with a proven bound: OFDMA with the best bands, powers and clocks, in rounds.

``solvers.optimize_rounds`` chooses local steps, edge rounds and mask sizes together with bands,
powers, clocks and ends of every draw of the sample. Downloads and backhaul are in proportion to the
lengths of submodels, and are part of its problem.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from channels.arrays import FloatArray, IntArray
from solvers import Solution, TrainingProblem, TrainingRounds, optimize_rounds
from solvers.load_rows import cell_rows
from wirelessfl.base.errors import ConfigError
from wirelessfl.designs.choices import Alternatives, divides
from wirelessfl.designs.free_ends import FreeEnds
from wirelessfl.designs.goals import Goal
from wirelessfl.designs.sampled_rounds import SampledRounds
from wirelessfl.designs.spaces import Space
from wirelessfl.engine.rounds.mask_sizes import mask_size_problem
from wirelessfl.models.submodels import sizes_of
from wirelessfl.models.submodels.partition import even_sizes

MOST = 400
"""Largest number of sizes of the largest mask that are told apart."""
EXACT = 1e-9
"""Relative deviation of a submodel's length from a line that rounding errors explain."""


class Certified(NamedTuple):
    """A design with a bound.

    Args:
        local_steps, edge_rounds: H and E.
        shares: shares of the cells; None for full models and equal masks.
        bound: no design over OFDMA with these numbers to choose from costs less.
        per_second: what a second costs, for the ends of rounds, with joules of all clients; NaN if
            rounds have a deadline.
    """

    local_steps: int
    edge_rounds: int
    shares: tuple[float, ...] | None
    bound: float
    per_second: float


class Proof(NamedTuple):
    """What is proven about designs over OFDMA.

    Args:
        designs: designs with a bound.
        bound: no design costs less; if there is a limit on seconds, and joules are the objective,
            no design with one deadline for all rounds.
        free: the bound without that restriction; NaN without one.
    """

    designs: list[Alternatives]
    bound: float = np.nan
    free: float = np.nan


@dataclass(frozen=True)
class Sizes:
    """Lengths of submodels by size: ``offset`` + ``slope`` x units parameters.

    Args:
        offset, slope: in parameters.
        total: units that all cells have together; None for full models, which are one unit.
        cap: largest size.
        granularity: sizes are multiples of it.
        largest: limits on the largest size, relative to equal ones, increasing.
        counted: as what these sizes count for the learning curve: those of equal masks as 1.
        least: the same of the smallest sizes that are not told apart from these.
    """

    offset: float
    slope: float
    total: int | None = None
    cap: int | None = None
    granularity: int = 1
    largest: tuple[float, ...] = (1.0,)
    counted: tuple[float, ...] = (1.0,)
    least: tuple[float, ...] = (1.0,)


def applies(goal: Goal) -> bool:
    """Whether the certified problem, of means over the draws, has this goal."""
    return goal.target is not None and goal.max_client_joules is None and goal.quantile is None


def certified(
    costs: SampledRounds,
    goal: Goal,
    space: Space,
    rounds_of: Callable[..., FloatArray],
    *,
    vary: bool,
) -> list[Certified]:
    """The best designs over OFDMA, with a bound; none if their rounds do not have this structure.

    If joules count within a limit on seconds, the last one's rounds end when it suits their
    channels; if joules alone count, the one before has one deadline for all rounds.

    Args:
        costs: the sample; submodels have equal sizes.
        goal: a goal to which this applies.
        space: numbers to choose from.
        rounds_of: returns the global rounds [M, H, E], given ``largest`` [M, 1, 1].
        vary: whether mask sizes are chosen.
    """
    planner = costs.planner
    if not costs.batched or planner.assigner.design_sizes.of == "clients":
        return []
    if planner.links.pilot_symbols:  # their joules do not depend on what is decided
        return []
    sizes = _sizes(costs, vary)
    if sizes is None:
        return []
    # Rounds are monotone in the largest mask: none between two sizes has fewer than both of them.
    rounds = np.minimum(
        *(rounds_of(largest=np.array(m)[:, None, None]) for m in (sizes.least, sizes.counted))
    )
    if not np.isfinite(rounds).any():
        return []
    solve = _Solver(costs, space, sizes, rounds, goal.weights[1] / costs.planner.network.clients)
    try:
        if goal.max_seconds is None or not goal.weights[1]:
            designs = [solve.certified(solve(goal.weights[0]), goal.weights[0])]
        else:
            designs = _within(solve, goal, goal.max_seconds)
    except ValueError as error:
        raise ConfigError(f"design over ofdma: {error}") from error
    return [design for design in designs if design is not None]


def _within(solve: _Solver, goal: Goal, limit: float) -> list[Certified | None]:
    """Designs within a limit on seconds; one whose rounds are free to end comes last."""
    second = goal.weights[0]
    least, designs = np.inf, []
    if not second:
        strict = solve(0.0, limit=limit)
        if strict.value is None:
            return []
        designs, least = [solve.certified(strict, np.nan)], strict.objective
        guess = strict.objective / limit
    else:
        unlimited = solve(second)
        if unlimited.value is None or unlimited.value.total_seconds <= limit:
            return [solve.certified(unlimited, second)]
        guess = solve.joule * unlimited.value.total_joules / limit
    shape = solve.rounds.shape[1:]
    free = FreeEnds(solve, (second, solve.joule), limit, least, np.full(shape, -np.inf))
    with suppress(ArithmeticError):
        free.search(max(guess, np.finfo(float).tiny))
    if free.plan is None:
        return designs
    return [*designs, solve.design(free.plan, free.bound, free.per_second)]


@dataclass(frozen=True, eq=False)
class _Solver:
    """``optimize_rounds`` with the problem of a sample, see ``free_ends.Solve``.

    Args:
        costs: the sample.
        space: numbers to choose from.
        sizes: of submodels.
        rounds: [M, H, E].
        joule: cost of a joule of all clients.
    """

    costs: SampledRounds
    space: Space
    sizes: Sizes
    rounds: FloatArray
    joule: float

    def __call__(
        self,
        second: float,
        *,
        limit: float | None = None,
        at: tuple[int, int] | None = None,
        sizes: IntArray | None = None,
    ) -> Solution[TrainingRounds]:
        problem, rounds = self._problem, self.rounds
        total, largest = self.sizes.total, self.sizes.largest
        steps, edges = self.space.local_steps, self.space.edge_rounds
        if at is not None:
            h, e = at
            rounds = rounds[:, h : h + 1, e : e + 1]
            steps, edges = steps[h : h + 1], edges[e : e + 1]
        if sizes is not None and total is not None:
            problem = replace(problem, cap=sizes, lower=sizes)
            share = float(sizes.max()) * len(sizes) / total * (1 - EXACT)
            place = int(np.searchsorted(largest, share))
            rounds, largest = rounds[place : place + 1], largest[place : place + 1]
        return optimize_rounds(
            problem,
            rounds if total is not None else rounds[0],
            local_steps=steps,
            edge_rounds=edges,
            largest=largest if total is not None else None,
            weights=(second, self.joule),
            max_seconds=limit,
        )

    @cached_property
    def _problem(self) -> TrainingProblem:
        return _problem(self.costs, self.sizes)

    def certified(self, solution: Solution[TrainingRounds], per_second: float) -> Certified | None:
        """The design of a solution; None if it has none."""
        if solution.value is None:
            return None
        return self.design(solution.value, float(solution.bound), per_second)

    def design(self, plan: TrainingRounds, bound: float, per_second: float) -> Certified:
        """A design with a bound."""
        total, cells = self.sizes.total, self.costs.planner.network.cells
        shares = None
        if total is not None and plan.sizes.tolist() != even_sizes(total, cells):
            shares = tuple(float(size) / total for size in plan.sizes)
        return Certified(plan.local_steps, plan.edge_rounds, shares, bound, per_second)


def _all_sizes(sizes: Sizes, cells: int) -> list[int]:
    """All sizes that the largest mask can have, in steps of the granularity."""
    assert sizes.total is not None
    assert sizes.cap is not None
    step = sizes.granularity
    return list(range(-(-sizes.total // (cells * step)), sizes.cap // step + 1))


def _sizes(costs: SampledRounds, vary: bool) -> Sizes | None:
    """How lengths depend on sizes; None if not by a line, or if equal sizes are not whole."""
    planner = costs.planner
    choice, cells = planner.assigner.design_sizes, planner.network.cells
    if choice.of != "cells":
        return Sizes(0.0, float(planner.model.spec.size))
    equal = costs.submodels
    units = sizes_of(equal)
    if not units or not divides(planner.assigner, cells):
        return None
    if not vary:  # lengths do not matter one by one if all sizes are equal
        if len(set(units)) > 1:
            return None
        return Sizes(0.0, float(equal.lengths[0]))
    total = sum(units)
    ramp = np.linspace(1.5, 0.5, cells) / cells
    ramped = costs.with_assigner(choice.fixed(tuple(map(float, ramp)))).submodels
    x = np.array([*units, *sizes_of(ramped)], dtype=np.float64)
    y = np.array([*equal.lengths, *ramped.lengths], dtype=np.float64)
    slope, offset = np.polyfit(x, y, 1)
    if np.abs(slope * x + offset - y).max() > EXACT * y.max():
        return None
    limit = choice.limit(planner.model.partition)
    if limit is None:
        return None
    partition, size_cap = limit
    problem = mask_size_problem(partition, _unused, cells, size_cap=size_cap)
    result = Sizes(max(float(offset), 0.0), float(slope), total, problem.cap, problem.granularity)
    multiples = _all_sizes(result, cells)
    count = len(multiples)
    places = np.unique(np.linspace(0, count - 1, min(count, MOST)).round().astype(int))
    relative = np.array(multiples) * result.granularity * cells / total
    first = np.array([0, *(places[:-1] + 1)])
    counted = np.where(np.arange(count) == 0, 1.0, relative)
    limits, ends, starts = (
        tuple(map(float, x)) for x in (relative[places], counted[places], counted[first])
    )
    return replace(result, largest=limits, counted=ends, least=starts)


def _unused(sizes: Any) -> Any:
    raise AssertionError("seconds are not needed for the limits of sizes")


def _problem(costs: SampledRounds, sizes: Sizes) -> TrainingProblem:
    planner = costs.planner
    settings = replace(planner.settings, local_steps=1, edge_rounds=1)
    pricing = replace(planner.pricing, settings=settings)
    columns: dict[str, list[FloatArray]] = {}
    for who, draws in costs.rounds:
        draws = draws.in_bands()
        network, blocks = draws.network, len(draws.h)
        unit, rest = (
            pricing.load(who, np.full(len(who.clients), length))
            for length in (sizes.slope, sizes.offset)
        )
        values = {
            "bits_per_unit": unit.bits,
            "cycles_per_unit": unit.cycles,
            "offset_bits": rest.bits,
            "offset_cycles": rest.cycles,
            "gain_per_noise": draws.gain_per_noise,
            "max_power_watts": network.transmit_power_w,
            "max_cpu_hz": network.cpu_hz,
            "kappa": network.switched_capacitance,
        }
        for name, numbers in values.items():
            rows = cell_rows(network, np.asarray(numbers))
            columns.setdefault(name, []).append(np.broadcast_to(rows, (blocks, *rows.shape[-2:])))
        bands = np.broadcast_to(network.bandwidth_hz, (blocks, network.cells))
        columns.setdefault("bandwidth_hz", []).append(bands)
        for load, length, end in ((rest, sizes.offset, ""), (unit, sizes.slope, "_per_unit")):
            starts = np.broadcast_to(load.start_seconds, network.clients)
            start = np.maximum(network.over_cells(np.maximum, starts), 0.0)  # -inf in empty cells
            extra = pricing.backhaul_seconds(np.full(network.cells, length))
            for name, seconds in (("start_seconds", start), ("extra_seconds", extra)):
                rows = np.broadcast_to(seconds, (blocks, network.cells))
                columns.setdefault(f"{name}{end}", []).append(rows)
    arrays: Any = {name: np.concatenate(_padded(parts)) for name, parts in columns.items()}
    return TrainingProblem(
        **arrays,
        total=sizes.total,
        cap=sizes.cap,
        lower=0 if sizes.total is None else sizes.granularity,
        granularity=sizes.granularity,
    )


def _padded(parts: list[FloatArray]) -> list[FloatArray]:
    """Arrays with as many clients per cell as the largest has; the others do nothing."""
    if parts[0].ndim == 2:
        return parts
    most = max(part.shape[-1] for part in parts)
    return [np.pad(part, ((0, 0), (0, 0), (0, most - part.shape[-1]))) for part in parts]
