"""The networks, and what runs of the grid cost over them.

Seconds and joules of a stored run over a network are prices: nothing is trained. Those that a
design expects are means over rounds with other fading draws than the run has.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from channels.arrays import FloatArray
from experiments.decided.uplinks import EQUAL, OMA, OPTIMAL, SLOTS
from wirelessfl.config import Config
from wirelessfl.designs.sampled_rounds import SampledRounds
from wirelessfl.runs.build.planners import planner_without_data

UPLINKS = (SLOTS, EQUAL, OPTIMAL)
"""Names of the uplinks, see ``experiments.decided.uplinks``."""
CPU_HZ = (5e8, 3e9)
NETWORKS: Mapping[str, Mapping[str, Any]] = {
    "section-vi-c": {},
    "disc": {
        "layout": "disc",
        "radius_m": 500.0,
        "path_loss": "tr36814",
        "shadowing_db": 8.0,
        "cpu_hz": CPU_HZ,
    },
    "uma": {
        "layout": "hexagonal",
        "inter_site_distance_m": 500.0,
        "path_loss": "uma",
        "cpu_hz": CPU_HZ,
        "transmit_power_dbm": 23.0,
        "bandwidth_hz": 20e6,
        "antennas": 16,
        "backhaul_mbps": 100.0,
    },
}
"""What differs from the network of the stored runs, Section VI-C of HIST.

Over ``disc``, at 20 dBm in 9 MHz, uploads take most of a round; over ``uma`` uploads of optimal
bands take about as long as 20 steps of the slowest client, and the exchange between edge servers
and cloud has a delay.
"""
DRAWS = 64
"""Rounds over which a design averages seconds and joules of a round."""


class SecondsAndJoules(NamedTuple):
    """Seconds and joules, the latter a mean over the clients."""

    seconds: float
    joules: float


def over(config: Config, network: str, uplink: str) -> Config:
    """The configuration over a network and an uplink of this study.

    Args:
        config: configuration of a run of the grid.
        network: one of ``NETWORKS``.
        uplink: one of ``UPLINKS``.
    """
    return config.changed(uplink=dict(OMA[uplink]), **NETWORKS[network])


class RoundPrices(NamedTuple):
    """Costs of the rounds of all runs of a grid over one network and uplink.

    Args:
        seconds, joules: [rounds, H, E], from the start to the end of each round of the runs.
        round_seconds, round_joules: [H, E], mean over rounds with other fading draws.
    """

    seconds: FloatArray
    joules: FloatArray
    round_seconds: FloatArray
    round_joules: FloatArray


def priced(
    config: Config,
    rounds: int,
    network: str,
    uplink: str,
    steps: Sequence[int],
    edges: Sequence[int],
) -> RoundPrices:
    """Price the rounds of all runs that differ from a configuration in H and E only.

    The runs have the same fading draws, since the draws of a round do not depend on H and E.

    Args:
        config: configuration of a run of the grid.
        rounds: number of rounds.
        network: one of ``NETWORKS``.
        uplink: one of ``UPLINKS``.
        steps: numbers of local steps H.
        edges: numbers of edge rounds E.
    """
    there = over(config, network, uplink)
    planner = planner_without_data(there)
    access = there.uplink
    costs = SampledRounds(planner, rounds).of(access, steps, edges)
    other = replace(planner, stream=planner.stream.child("design"))
    means = SampledRounds(other, DRAWS).of(access, steps, edges).means
    return RoundPrices(np.cumsum(costs.seconds, 0), np.cumsum(costs.joules, 0), *means)
