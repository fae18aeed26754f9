"""Fixed sizes of the cells' submodels, chosen for the mean of many rounds."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from wirelessfl.assigners import Assigner
from wirelessfl.codesign.sampled_rounds import SampledRounds
from wirelessfl.rounds.contexts import RoundDurations, round_context
from wirelessfl.submodels import sizes_of
from wirelessfl.uplinks import Uplink

MANY = 8
"""Number of samples of participants for which sizes are chosen; their mean is taken."""


def divides(assigner: Assigner, cells: int) -> bool:
    """Whether the cells train disjoint submodels whose sizes can be chosen."""
    return assigner.sized == "cells" and assigner.disjoint and cells > 1


def fixed_shares(
    costs: SampledRounds, uplink: Uplink, local_steps: int, edge_rounds: int
) -> tuple[float, ...]:
    """Shares [cells] with which the slowest cell's mean seconds over the sample are least.

    Args:
        costs: the sample; its assigner divides the model between the cells.
        uplink: how updates cross the air.
        local_steps, edge_rounds: H and E.

    Raises:
        ConfigError: there are no such sizes.
    """
    planner = costs.planner
    sizing = planner.assigner.with_optimized_sizes()
    settings = replace(planner.settings, local_steps=local_steps, edge_rounds=edge_rounds)
    links = replace(planner.links, uplink=uplink)
    planner = replace(planner, chosen=sizing, settings=settings, links=links)
    stream = planner.stream.child("round", 0)
    found = []
    for who, draws in costs.rounds[:MANY]:
        durations = RoundDurations.of(planner.pricing, draws, who, 0)
        context = round_context(planner.model, stream, stream, durations)
        found.append(sizes_of(sizing.submodels(context)))
    mean = np.mean(found, axis=0)
    return tuple(float(share) for share in mean / mean.sum())
