"""Designs over the air: their uplink, the error variance of their sums, and their pilots.

The learning curve depends on sigma^2 = 1/SNR of pilots over the air, in which all clients have the
same SNR; what channels, precoders and beamformers add is a factor, which its coefficient contains.
Precoders and beamformers are therefore those of the settings, for pilots and for the design.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from channels import Network
from channels.links import snr_linear
from wirelessfl.codesign.goals import Curve
from wirelessfl.codesign.pilots.pilot_settings import plain_network
from wirelessfl.codesign.ways import AIR, Way
from wirelessfl.config import Config
from wirelessfl.config.tables import given_places
from wirelessfl.errors import ConfigError
from wirelessfl.radio import Placed
from wirelessfl.uplinks import UPLINKS
from wirelessfl.uplinks.aircomp import AirComp


def air_way(settings: Config, network: Network) -> Way:
    """The uplink over the air with the precoders and beamformers of the settings.

    Args:
        settings: the settings of the run.
        network: its network.
    """
    table = air_table(settings)
    own = {key: value for key, value in table.items() if key != "name"}
    uplink = UPLINKS.find(AIR)(**own)
    assert isinstance(uplink, AirComp)
    return Way(f"{AIR}, {uplink.convention}", AIR, own, noise=air_noise(network))


def air_table(settings: Config) -> dict[str, Any]:
    """``[uplink]`` of a design over the air: that of the settings, if it is one."""
    given = settings.given_tables().get("uplink", {})
    return dict(given) if given.get("name") == AIR else {"name": AIR}


def air_noise(network: Network) -> float:
    """sigma^2 = 1/SNR: of equal clients whose weakest sum is as noisy, mean over cells.

    The error variance of a sum is proportional to max_i 1/(SNR_i g_i), where g_i is the path gain,
    if precoders invert the channels. With one SNR for all clients it is 1/SNR.
    """
    gains = snr_linear(network.path_gain_db)
    weakest = network.over_cells(np.maximum, 1 / (snr_linear(network.snr_db) * gains))
    equal = network.over_cells(np.maximum, 1 / gains)
    return float(weakest.mean() / equal.mean())


def pilot_config(config: Config, table: Mapping[str, Any], *, given: bool) -> Config:
    """The settings of pilots, some of which upload over the air at a given SNR.

    Clients at positions have no common SNR: their pilots have a network without positions.

    Args:
        config: settings of one algorithm.
        table: ``[uplink]`` of the design over the air.
        given: whether a network is given that replaces that of the settings.

    Raises:
        ConfigError: such pilots have other clients in their cells than the design.
    """
    remedy = "give a curve, fitted to runs whose noise differs, e.g. from wirelessfl.pilot"
    if given:
        raise ConfigError(
            f"uplink {AIR!r} conflicts with network=... whose gains are given: {remedy}."
        )
    tables = config.given_tables() | {"uplink": dict(table)}
    if config.network.channel is not None:
        raise ConfigError(f"uplink {AIR!r} conflicts with a recorded channel: {remedy}.")
    allowed = given_places(config.given_tables())
    if isinstance(config.layout, Placed):
        if plain_network(config) is None:
            raise ConfigError(
                f"uplink {AIR!r} conflicts with a layout whose cells have other clients than those "
                f"of pilots at one SNR: {remedy}."
            )
        network = {k: v for k, v in tables.get("network", {}).items() if k not in OF_POSITIONS}
        tables = {k: v for k, v in tables.items() if k not in ("layout", "path_loss")}
        tables["network"] = network
    return Config.of(tables, loose=allowed)


OF_POSITIONS = ("noise_figure_db", "noise_dbm_per_hz")
"""Settings of ``[network]`` that have no effect on clients with one SNR."""


def check_noise(curves: Mapping[str, Curve]) -> None:
    """Refuse curves that say nothing about errors of sums.

    Raises:
        ConfigError: the message names the algorithm.
    """
    for name, curve in curves.items():
        if "noise" not in getattr(curve, "varies", ("noise",)):
            raise ConfigError(
                f"uplink {AIR!r} needs a curve of {name} whose pilots differ in noise: give "
                "wirelessfl.pilot snr_db=[...] (--air-snr-db), or leave the uplink out."
            )
