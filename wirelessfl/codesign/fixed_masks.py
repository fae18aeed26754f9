"""Fixed sizes of the cells' submodels, chosen for the mean of many rounds."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from wirelessfl.algorithms.hist import Hist
from wirelessfl.codesign.sampled_rounds import SampledRounds
from wirelessfl.rounds.contexts import Context
from wirelessfl.submodels import sizes_of
from wirelessfl.uplinks import Uplink

MANY = 8
"""Number of samples of participants for which sizes are chosen; their mean is taken."""
SIZE_CAP = 1.5
"""Largest size over that of equal sizes, unless the configuration sets another: (19c) of HIST."""


def divides(algorithm: object, cells: int) -> bool:
    """Whether the cells train disjoint submodels whose sizes can be chosen."""
    return isinstance(algorithm, Hist) and not algorithm.mask_overlap and cells > 1


def fixed_shares(
    costs: SampledRounds, uplink: Uplink, local_steps: int, edge_rounds: int, cap: float
) -> tuple[float, ...]:
    """Shares [cells] with which the slowest cell's mean seconds over the sample are least.

    Args:
        costs: the sample; its algorithm is HIST.
        uplink: how updates cross the air.
        local_steps, edge_rounds: H and E.
        cap: largest share over an equal one.

    Raises:
        ConfigError: there are no such sizes.
    """
    planner = costs.planner
    algorithm = planner.algorithm
    assert isinstance(algorithm, Hist)
    sizing = replace(algorithm, mask_sizes="optimized", mask_shares=None, size_cap=cap)
    settings = replace(planner.settings, local_steps=local_steps, edge_rounds=edge_rounds)
    links = replace(planner.links, uplink=uplink)
    planner = replace(planner, algorithm=sizing, settings=settings, links=links)
    stream = planner.stream.child("round", 0)
    found = []
    for who, draws in costs.rounds[:MANY]:
        context = Context.of_round(planner.model, planner.pricing, stream, 0, stream, draws, who)
        found.append(sizes_of(sizing.submodels(context)))
    mean = np.mean(found, axis=0)
    return tuple(float(share) for share in mean / mean.sum())


def with_shares(algorithm: Hist, shares: tuple[float, ...] | None) -> Hist:
    """HIST with these fixed shares; None for equal ones."""
    if shares is None:
        return replace(algorithm, mask_sizes="uniform", mask_shares=None)
    return replace(algorithm, mask_sizes="fixed", mask_shares=shares)
