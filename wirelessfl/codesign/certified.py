"""Designs with a proven bound: OFDMA with the best bands, powers and clocks, in rounds.

``solvers.optimize_rounds`` chooses local steps, edge rounds and mask sizes together with bands,
powers, clocks and ends of every draw of the sample. Downloads and backhaul are in proportion to the
lengths of submodels, and are part of its problem.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from channels.arrays import FloatArray
from solvers import optimize_rounds
from solvers.access.cells import cell_rows
from wirelessfl.algorithms.hist import Hist
from wirelessfl.algorithms.narrow import Adaptive
from wirelessfl.codesign.goals import Goal
from wirelessfl.codesign.masks import divides, with_shares
from wirelessfl.codesign.round_costs import RoundCosts
from wirelessfl.codesign.spaces import Space
from wirelessfl.errors import ConfigError
from wirelessfl.rounds.mask_sizes import mask_size_problem
from wirelessfl.submodels import sizes_of
from wirelessfl.submodels.partition import even_sizes

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
    """

    local_steps: int
    edge_rounds: int
    shares: tuple[float, ...] | None
    bound: float


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
    """Whether the certified problem has this goal."""
    if goal.target is None or goal.max_client_joules is not None:
        return False
    return goal.max_seconds is None or 0.0 in goal.weights


def certified(
    costs: RoundCosts, goal: Goal, space: Space, rounds_of: Callable[..., FloatArray], *, vary: bool
) -> Certified | None:
    """The best design over OFDMA, with a bound; None if its rounds do not have this structure.

    Args:
        costs: the sample; submodels have equal sizes.
        goal: a goal to which this applies.
        space: numbers to choose from.
        rounds_of: returns the global rounds [M, H, E], given ``largest`` [M, 1, 1].
        vary: whether mask sizes are chosen.

    Raises:
        ConfigError: an argument is outside the range of the solver.
    """
    if not costs.batched or isinstance(costs.planner.algorithm, Adaptive):
        return None
    sizes = _sizes(costs, vary)
    if sizes is None:
        return None
    # Rounds are monotone in the largest mask: none between two sizes has fewer than both of them.
    rounds = np.minimum(
        *(rounds_of(largest=np.array(m)[:, None, None]) for m in (sizes.least, sizes.counted))
    )
    if not np.isfinite(rounds).any():
        return None
    late = goal.max_seconds is not None and goal.weights[1] > 0
    network = costs.planner.network
    try:
        solution = optimize_rounds(
            rounds if sizes.total is not None else rounds[0],
            **_clients(costs, sizes),
            total=sizes.total,
            local_steps=space.local_steps,
            edge_rounds=space.edge_rounds,
            largest=sizes.largest if sizes.total is not None else None,
            weights=(goal.weights[0], goal.weights[1] / network.clients),
            max_seconds=goal.max_seconds if late else None,
            cap=sizes.cap,
            lower=sizes.granularity if sizes.total is not None else 0,
            granularity=sizes.granularity,
        )
    except ValueError as error:
        raise ConfigError(f"design over ofdma: {error}") from error
    found = solution.value
    if found is None:
        return None
    shares = None
    if sizes.total is not None and found.sizes.tolist() != even_sizes(sizes.total, network.cells):
        shares = tuple(float(size) / sizes.total for size in found.sizes)
    return Certified(found.local_steps, found.edge_rounds, shares, float(solution.bound))


def _all_sizes(sizes: Sizes, cells: int) -> list[int]:
    """All sizes that the largest mask can have, in steps of the granularity."""
    assert sizes.total is not None
    assert sizes.cap is not None
    step = sizes.granularity
    return list(range(-(-sizes.total // (cells * step)), sizes.cap // step + 1))


def _sizes(costs: RoundCosts, vary: bool) -> Sizes | None:
    """How lengths depend on sizes; None if not by a line, or if equal sizes are not whole."""
    planner = costs.planner
    algorithm, cells = planner.algorithm, planner.network.cells
    if not isinstance(algorithm, Hist):
        return Sizes(0.0, float(planner.model.spec.size))
    own = costs.submodels
    units = sizes_of(own)
    if not units or not divides(algorithm, cells):
        return None
    if not vary:  # lengths do not matter one by one if all sizes are equal
        if len(set(units)) > 1:
            return None
        return Sizes(0.0, float(own.lengths[0]))
    total = sum(units)
    ramp = np.linspace(1.5, 0.5, cells) / cells
    other = costs.with_algorithm(with_shares(algorithm, tuple(map(float, ramp)))).submodels
    x = np.array([*units, *sizes_of(other)], dtype=np.float64)
    y = np.array([*own.lengths, *other.lengths], dtype=np.float64)
    slope, offset = np.polyfit(x, y, 1)
    if np.abs(slope * x + offset - y).max() > EXACT * y.max():
        return None
    problem = mask_size_problem(
        planner.model.partition(algorithm.partition), _unused, cells, size_cap=algorithm.size_cap
    )
    found = Sizes(max(float(offset), 0.0), float(slope), total, problem.cap, problem.granularity)
    every = _all_sizes(found, cells)
    places = np.unique(np.linspace(0, len(every) - 1, min(len(every), MOST)).round().astype(int))
    relative = np.array(every) * found.granularity * cells / total
    first = np.array([0, *(places[:-1] + 1)])
    counted = np.where(np.arange(len(every)) == 0, 1.0, relative)
    limits, ends, starts = (
        tuple(map(float, x)) for x in (relative[places], counted[places], counted[first])
    )
    return replace(found, largest=limits, counted=ends, least=starts)


def _unused(sizes: Any) -> Any:
    raise AssertionError("seconds are not needed for the limits of sizes")


def _clients(costs: RoundCosts, sizes: Sizes) -> dict[str, Any]:
    """The arguments of ``optimize_rounds`` [draws, cells, clients], and those of cells."""
    planner = costs.planner
    settings = replace(planner.settings, local_steps=1, edge_rounds=1)
    pricing = replace(planner.pricing, settings=settings)
    found: dict[str, list[FloatArray]] = {}
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
        for name, each in values.items():
            rows = cell_rows(network, np.asarray(each))
            found.setdefault(name, []).append(np.broadcast_to(rows, (blocks, *rows.shape[-2:])))
        bands = np.broadcast_to(network.bandwidth_hz, (blocks, network.cells))
        found.setdefault("bandwidth_hz", []).append(bands)
        for load, length, end in ((rest, sizes.offset, ""), (unit, sizes.slope, "_per_unit")):
            each = np.broadcast_to(load.start_seconds, network.clients)
            start = np.maximum(network.over_cells(np.maximum, each), 0.0)  # -inf in empty cells
            extra = pricing.backhaul_seconds(np.full(network.cells, length))
            for name, seconds in (("start_seconds", start), ("extra_seconds", extra)):
                rows = np.broadcast_to(seconds, (blocks, network.cells))
                found.setdefault(f"{name}{end}", []).append(rows)
    return {name: np.concatenate(_padded(parts)) for name, parts in found.items()}


def _padded(parts: list[FloatArray]) -> list[FloatArray]:
    """Arrays with as many clients per cell as the largest has; the others do nothing."""
    if parts[0].ndim == 2:
        return parts
    most = max(part.shape[-1] for part in parts)
    return [np.pad(part, ((0, 0), (0, 0), (0, most - part.shape[-1]))) for part in parts]
