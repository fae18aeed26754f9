"""Widths of clients, chosen for the mean of many rounds: which part of the model each trains.

Rounds depend on widths by one number, the mean of 1/width, which is least for equal widths of the
same mean. For a given duration of a round, the best widths are therefore the largest ones with
which clients end in time, if they do not wait for each other.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from channels.arrays import FloatArray, IntArray
from solvers import widths_by_deadline
from wirelessfl.assigners import Assigner
from wirelessfl.codesign.sampled_rounds import SampledRounds
from wirelessfl.submodels import levels_of, mean_reciprocal
from wirelessfl.uplinks import Uplink
from wirelessfl.uplinks.checked import serving

FULL, EQUAL_WIDTHS, BY_CLIENT = "full", "equal widths", "widths by client"
WIDTHS = (FULL, EQUAL_WIDTHS, BY_CLIENT)
"""How widths are chosen, as ``Alternatives.masks``."""
RATIOS = tuple(part / 2**halvings for halvings in range(10) for part in (1.0, 0.75))
"""Widths that are compared."""
LEAST_FULL = 0.25
"""Least part of the clients that train full models, if no others train some of the neurons."""
GROUPS = 20
"""Largest number of groups of clients whose widths are improved."""
WHOLE = (1.0,)
"""The width of all clients that train full models."""


class WidthLimits(NamedTuple):
    """Limits of widths: those that the learning curve knows.

    Args:
        narrowest: least width.
        most: largest mean of 1/width.
    """

    narrowest: float
    most: float


def width_settings(shares: tuple[float, ...]) -> dict[str, list[float]]:
    """Settings of the assigner with these widths."""
    return {"capacities" if len(shares) == 1 else "widths": list(shares)}


def common_widths(costs: SampledRounds, limits: WidthLimits) -> list[tuple[float, ...]]:
    """Widths that all clients can have, the full one first.

    Args:
        costs: a sample of rounds, for the layers of the model.
        limits: limits of widths.
    """
    assigner = costs.planner.assigner
    return [(ratio,) for ratio in ratios_of(costs, limits) if allowed(assigner, (ratio,), limits)]


def allowed(assigner: Assigner, widths: Sequence[float], limits: WidthLimits) -> bool:
    """Whether the learning curve knows such widths, and every neuron has clients that train it.

    Args:
        assigner: gives each client a width.
        widths: [1] or [clients].
        limits: limits of widths.
    """
    if assigner.nested and list(widths).count(1.0) < LEAST_FULL * len(widths):
        return False
    return mean_reciprocal(widths, len(widths)) <= limits.most * (1 + 1e-9)


def moves(
    costs: SampledRounds, widths: tuple[float, ...], groups: Sequence[IntArray], limits: WidthLimits
) -> Iterator[tuple[float, ...]]:
    """Widths in which the clients of one group have the next smaller or larger compared width.

    Args:
        costs: a sample of rounds.
        widths: [clients].
        groups: numbers of the clients of each group.
        limits: limits of widths.
    """
    ratios = np.array(ratios_of(costs, limits))
    places = np.abs(np.array(widths)[:, None] - ratios).argmin(1)
    for group in groups:
        for step in (1, -1):
            moved = places.copy()
            moved[group] = (moved[group] + step).clip(0, len(ratios) - 1)
            found = tuple(float(width) for width in ratios[moved])
            if found != widths and allowed(costs.planner.assigner, found, limits):
                yield found


def groups_of(costs: SampledRounds, uplink: Uplink, local_steps: int) -> list[IntArray]:
    """Groups of clients whose rounds take about as long, the slowest first.

    Args:
        costs: a sample of rounds.
        uplink: an uplink on which clients do not wait for each other.
        local_steps: H.
    """
    seconds = _client_seconds(costs, uplink, local_steps, np.ones(1))[:, 0]
    order = np.argsort(-seconds, kind="stable")
    return [part for part in np.array_split(order, min(GROUPS, len(order))) if len(part)]


def client_widths(
    costs: SampledRounds, uplink: Uplink, local_steps: int, limits: WidthLimits
) -> list[tuple[float, ...]]:
    """Widths [clients] with which all clients take about as long, for some durations.

    A duration is that of a round in which the slowest client has one of the compared widths and all
    others have the widest of them with which they are not later. Seconds are means over the sample.

    Args:
        costs: a sample of rounds with all clients.
        uplink: an uplink on which clients do not wait for each other.
        local_steps: H.
        limits: limits of widths.
    """
    ratios = np.array(ratios_of(costs, limits)[::-1])
    seconds = _client_seconds(costs, uplink, local_steps, ratios)
    found: dict[tuple[float, ...], None] = {}
    for end in seconds.max(0)[:-1]:
        levels = widths_by_deadline(seconds, np.arange(1, len(ratios) + 1), float(end)).value
        assert levels is not None  # the slowest client has at least this width
        widths = tuple(float(width) for width in ratios[levels])
        if len(set(widths)) > 1 and allowed(costs.planner.assigner, widths, limits):
            found[widths] = None
    return list(found)


def ratios_of(costs: SampledRounds, limits: WidthLimits) -> list[float]:
    """The compared widths that give different submodels, from 1 on decreasing."""
    levels = levels_of(costs.planner.model.neurons())
    found: dict[int, float] = {}
    for ratio in (ratio for ratio in RATIOS if ratio >= limits.narrowest):
        level = levels.at(ratio)
        found[level] = max(ratio, float(levels.shares[level]))
    return sorted(found.values(), reverse=True)


def _client_seconds(
    costs: SampledRounds, uplink: Uplink, local_steps: int, ratios: FloatArray
) -> FloatArray:
    """Mean seconds [clients, ratios] of a local phase of each client, if all have a ratio."""
    planner = costs.planner
    levels = levels_of(planner.model.neurons())
    lengths: IntArray = levels.parameters[[levels.at(float(ratio)) for ratio in ratios]]
    settings = replace(planner.settings, local_steps=local_steps, edge_rounds=1)
    links = replace(planner.links, uplink=uplink)
    pricing = replace(planner.pricing, settings=settings, links=links)
    seconds = np.zeros((planner.network.clients, len(ratios)))
    counts = np.zeros(planner.network.clients)
    for who, draws in costs.rounds:
        length = np.repeat(lengths[:, None, None], len(who.clients), -1).astype(np.float64)
        load = pricing.load(who, length, np.full_like(length, planner.model.spec.size))
        with serving(pricing.title):
            each = pricing.sizing.seconds(load, draws)
        shape = np.broadcast_shapes(length.shape, draws.h.shape[:-1])
        seconds[who.clients] += np.broadcast_to(each, shape).sum(1).T
        counts[who.clients] += len(draws.h)
    missing = counts == 0
    seconds /= np.maximum(counts, 1)[:, None]
    # A client that the sample lacks counts as the slowest one.
    seconds[missing] = seconds.max(0)
    return np.asarray(np.maximum.accumulate(seconds, axis=1))


def widest(shares: Sequence[float] | None) -> str:
    """Widths in words, for tables."""
    if shares is None or tuple(shares) == WHOLE:
        return FULL
    if len(shares) == 1:
        return f"{shares[0]:.3g} each"
    return f"{min(shares):.3g} to {max(shares):.3g}, mean {np.mean(shares):.3g}"
