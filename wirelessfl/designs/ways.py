"""How updates can cross the air: the uplinks among which a design chooses.

A learning curve depends on sigma^2 = 1/SNR of pilots over the air, in which all clients have the
same SNR; what channels, precoders and beamformers add is a factor, which its coefficient contains.
Precoders and beamformers are therefore those of the settings, for pilots and for the design.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from channels import Network
from channels.links import snr_linear
from wirelessfl.air.links import check_flat
from wirelessfl.air.radio import Placed
from wirelessfl.air.uplinks import UPLINKS, Uplink
from wirelessfl.air.uplinks.aircomp import AirComp
from wirelessfl.base.errors import ConfigError
from wirelessfl.base.wording import suggestion
from wirelessfl.config import Config
from wirelessfl.designs.goals import Curve, Goal
from wirelessfl.designs.pilot_plan import plain_network

EQUAL = "ofdma, equal bands"
"""The uplink with which what each choice bought is compared."""
UPLINKS_IN_ROUNDS = ("tdma", "ofdma")
"""Uplinks that a design considers by default."""
AIR = "aircomp"
"""The uplink over the air, whose error variance the learning curve must know."""


@dataclass(frozen=True)
class Way:
    """An uplink with its settings.

    Args:
        title: its name in tables.
        name: name of the uplink.
        settings: settings of the uplink.
        saves: whether W, in seconds per joule, is its setting.
        deadline: whether a deadline of global rounds is its setting.
        noise: sigma^2, relative error variance of sums over the air; 0 without errors.
    """

    title: str
    name: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    saves: bool = False
    deadline: bool = False
    noise: float = 0.0

    @property
    def decides(self) -> bool:
        """Whether powers and clocks are decided, too."""
        return self.saves or self.deadline

    @property
    def uplink(self) -> Uplink:
        """The uplink."""
        return UPLINKS.find(self.name)(**self.settings)

    def weighing(self, weight: float) -> Way:
        """The same with the weight W of energy."""
        title = "ofdma, least seconds"
        if weight > 0:
            title = f"ofdma, W = {weight:.3g} s/J"
        return Way(title, self.name, {"energy_weight": weight}, saves=True)

    def ending(self, seconds: float, *, lost: bool = False) -> Way:
        """The same with this deadline of global rounds.

        Args:
            seconds: the deadline.
            lost: whether clients that would miss it are left out; otherwise they are an error.
        """
        settings = {"round_deadline": seconds} | ({"late": "lost"} if lost else {})
        title = f"ofdma, least J in {seconds:.4g} s"
        return Way(title, self.name, settings, deadline=True)


WEIGHED = Way("ofdma, least seconds", "ofdma", {"energy_weight": 0.0}, saves=True)
DEADLINE = Way("ofdma, least J in a deadline", "ofdma", deadline=True)
ALL = (
    Way("tdma, equal slots", "tdma"),
    Way("tdma, ready first", "tdma", {"order": "ready"}),
    Way(EQUAL, "ofdma"),
    Way("ofdma, optimal bands", "ofdma", {"allocation": "optimal"}),
    WEIGHED,
)


def ways(names: Sequence[str], goal: Goal, network: Network, air: Way | None = None) -> list[Way]:
    """The uplinks to consider over a network.

    None decides clocks where the clients have devices, and none decides bands where channels differ
    over the band.

    Raises:
        ConfigError: an uplink is unknown, or is over the air and needs a flat band.
    """
    choices = (*UPLINKS_IN_ROUNDS, AIR)
    for name in names:
        if name not in choices:
            raise ConfigError(
                f"uplink {name!r} is not one that a design chooses."
                f"{suggestion(name, choices)} Choose from "
                f"{', '.join(choices)}."
            )
    chosen = [way for way in ALL if way.name in names]
    # A deadline of rounds saves energy if the run has a limit on seconds.
    if goal.target is not None and goal.max_seconds is not None and goal.saves_energy:
        chosen += [DEADLINE] if "ofdma" in names else []
    if air is not None and AIR in names:
        check_flat(network, air.uplink)
        chosen.append(air)
    if network.subcarriers > 1:
        chosen = [way for way in chosen if not (way.decides or way.uplink.access.flat)]
    return [way for way in chosen if network.devices is None or not way.decides]


def air_way(settings: Config, network: Network) -> Way:
    """The uplink over the air with the precoders and beamformers of the settings."""
    table = air_table(settings)
    settings_of = {key: value for key, value in table.items() if key != "name"}
    uplink = UPLINKS.find(AIR)(**settings_of)
    assert isinstance(uplink, AirComp)
    return Way(f"{AIR}, {uplink.convention}", AIR, settings_of, noise=air_noise(network))


def air_table(settings: Config) -> dict[str, Any]:
    """``[uplink]`` of a design over the air: that of the settings, if it is one."""
    table = settings.given_settings("uplink")
    return table if table.get("name") == AIR else {"name": AIR}


def air_noise(network: Network) -> float:
    """sigma^2 = 1/SNR: of equal clients whose weakest sum is as noisy, mean over cells.

    The error variance of a sum is proportional to max_i 1/(SNR_i g_i), where g_i is the path gain,
    if precoders invert the channels. With one SNR for all clients it is 1/SNR.
    """
    gains = snr_linear(network.path_gain_db)
    weakest = network.over_cells(np.maximum, 1 / (snr_linear(network.snr_db) * gains))
    equal = network.over_cells(np.maximum, 1 / gains)
    return float(weakest.mean() / equal.mean())


def pilot_config(config: Config, table: Mapping[str, Any], *, replaced: bool) -> Config:
    """The settings of pilots, some of which upload over the air at a given SNR.

    Clients at positions have no common SNR: their pilots have a network without positions.

    Args:
        config: settings of one algorithm.
        table: ``[uplink]`` of the design over the air.
        replaced: whether a network from Python replaces that of the settings.
    """
    remedy = "give a curve, fitted to runs whose noise differs, e.g. from wirelessfl.pilot"
    if replaced:
        raise ConfigError(
            f"uplink {AIR!r} conflicts with network=... whose gains are given: {remedy}."
        )
    changes: dict[str, Any] = {"uplink": dict(table)}
    if config.network.channel is not None:
        raise ConfigError(f"uplink {AIR!r} conflicts with a recorded channel: {remedy}.")
    if isinstance(config.layout, Placed):
        if plain_network(config) is None:
            raise ConfigError(
                f"uplink {AIR!r} conflicts with a layout whose cells have other clients than those "
                f"of pilots at one SNR: {remedy}."
            )
        changes |= dict.fromkeys(OF_POSITIONS)
    return config.changed(**changes)


OF_POSITIONS = ("layout", "path_loss", "mobility", "noise_figure_db", "noise_dbm_per_hz")
"""Settings that have no effect on clients with one SNR."""


def check_noise(curves: Mapping[str, Curve]) -> None:
    """Refuse curves that say nothing about errors of sums."""
    for name, curve in curves.items():
        if "noise" not in getattr(curve, "varies", ("noise",)):
            raise ConfigError(
                f"uplink {AIR!r} needs a curve of {name} whose pilots differ in noise: give "
                "wirelessfl.pilot snr_db=[...] (--air-snr-db), or leave the uplink out."
            )
