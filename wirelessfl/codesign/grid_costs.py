"""Costs of a run's next rounds over a grid of local steps and edge rounds."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from channels.arrays import FloatArray
from wirelessfl.codesign.sampled_rounds import SampledRounds
from wirelessfl.errors import ConfigError
from wirelessfl.rounds.redesign import RoundSettings, SoFar

DRAWS, FEW = 16, 8
"""Numbers of channel draws over which the cost of a round is averaged: of rounds with equal
submodels, and of others, each of which must be planned."""


class Grid(NamedTuple):
    """Numbers to choose from.

    Args:
        local_steps, edge_rounds: H and E, increasing.
    """

    local_steps: list[int]
    edge_rounds: list[int]


def grid_costs(
    run: SoFar, way: RoundSettings, grid: Grid, *, joules: bool
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Mean seconds and joules of a round, and m, over the grid, [H, E] each.

    Args:
        run: the run.
        way: participants and uplink.
        grid: numbers of local steps and edge rounds.
        joules: whether joules are needed.
    """
    key = (replace(way, local_steps=1, edge_rounds=1).key, str(grid))
    if key not in run.memo:
        planner = run.planner(way)
        try:
            draws = DRAWS if planner.assigner.fixed_shapes else FEW
            found = SampledRounds(planner, draws).of(
                planner.links.uplink, grid.local_steps, grid.edge_rounds, joules=joules
            )
            run.memo[key] = (*found.means, found.largest)
        except ConfigError:  # some of these rounds cannot be planned
            each = [
                [
                    run.cost(replace(way, local_steps=steps, edge_rounds=edges))
                    for edges in grid.edge_rounds
                ]
                for steps in grid.local_steps
            ]
            run.memo[key] = tuple(
                np.array([[getattr(cost, name) for cost in row] for row in each])
                for name in ("seconds", "joules", "largest")
            )
    found_costs: tuple[FloatArray, FloatArray, FloatArray] = run.memo[key]
    return found_costs
