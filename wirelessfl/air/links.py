"""The links of a run in rounds, and how clients train in every round of one model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from channels import Access, ChannelDraw, Decision, Load, Network, Service
from channels.arrays import BoolArray, FloatArray, IntArray
from channels.by_client import ByKind
from wirelessfl.air.compression import Compression
from wirelessfl.air.failures import Failures
from wirelessfl.air.uplinks import Uplink
from wirelessfl.air.uplinks.uplink import Coherence
from wirelessfl.base.errors import ConfigError
from wirelessfl.training.steps import StepCounts


@dataclass(frozen=True)
class Links:
    """Links of a run. Downlink and backhaul are error-free, and take no time if their rate is None.

    Args:
        network: cells, clients, channels.
        uplink: how updates cross the air.
        coherence: coherence interval of the channel.
        downlink_bps: rate from edge server to each client, in bit/s; by client on devices with
            rates of their own.
        backhaul_bps: rate between edge server and cloud in each direction, in bit/s.
        failures: which uploads fail; None for none.
        access: serves rounds in place of the uplink's access, to check them before training.
        pilot_symbols: pilot symbols of each client and channel block.
    """

    network: Network
    uplink: Uplink
    coherence: Coherence = "round"
    downlink_bps: float | ByKind | None = None
    backhaul_bps: float | None = None
    failures: Failures | None = None
    access: Access | None = None
    pilot_symbols: int = 0

    def __post_init__(self) -> None:
        check_flat(self.network, self.uplink, self.failures)


def downlink_rates(
    network: Network, uplink: Uplink, mbps: float | None, *, alone: bool = False
) -> float | ByKind | None:
    """Rates to the clients in bit/s: of their devices, configured, or those of the uplink.

    Args:
        network: the clients.
        uplink: how updates cross the air.
        mbps: the configured rate; None for that of devices or of the uplink.
        alone: whether each client uploads as soon as it is ready.

    Returns:
        The rates; None or inf if the downlink takes no time.

    Raises:
        ConfigError: devices have rates, which another setting replaces or the uplink cannot use.
    """
    devices = network.devices
    rates = None if devices is None else devices.by_client("uplink_mbps")
    if rates is not None and (uplink.name != "fixed" or alone):
        reason = (
            f'uplink "{uplink.title}", whose rates follow from the radio: choose uplink "fixed"'
        )
        if uplink.name == "fixed":
            reason = 'schedule "buffered", whose uploads have one rate: choose schedule "rounds"'
        raise ConfigError(
            f"the devices have uplink_mbps, which conflicts with {reason}, or leave it out."
        )
    column = None if devices is None else devices.by_client("downlink_mbps")
    if column is None:
        return 1e6 * mbps if mbps else uplink.downlink_bps
    if mbps:
        raise ConfigError(
            f"downlink_mbps={mbps:g} conflicts with downlink_mbps of the devices: leave one out."
        )
    rest = np.inf if uplink.downlink_bps is None else uplink.downlink_bps
    return ByKind(np.where(np.isnan(column.kinds), rest, 1e6 * column.kinds), column.of)


def check_flat(
    network: Network, uplink: Uplink, failures: Failures | None = None, *, alone: bool = False
) -> None:
    """Refuse channels that differ over the band where one gain has to describe them.

    Args:
        network: the clients.
        uplink: how updates cross the air.
        failures: which uploads fail; None for none.
        alone: whether each client uploads as soon as it is ready, beside others.

    Raises:
        ConfigError: they do.
    """
    if network.subcarriers == 1:
        return
    reason = None
    if alone:
        reason = "uploads that start at any time need", 'choose schedule "rounds"'
    elif uplink.access.flat:
        remedy = 'choose uplink "tdma", or "ofdma" with allocation "equal" and no other decision'
        reason = f'uplink "{uplink.title}" as set needs', remedy
    elif failures is not None and failures.flat:
        reason = f'failures "{failures.title}" needs', 'choose failures "waterfall" or "none"'
    if reason is not None:
        raise ConfigError(
            f"{reason[0]} channels that are flat over the band, and those of the network differ "
            f"over {network.subcarriers} subcarriers: {reason[1]}, or one subcarrier."
        )


def at_clients(bps: float | ByKind, clients: IntArray) -> float | FloatArray:
    """Rates to some clients."""
    return bps.at(clients) if isinstance(bps, ByKind) else bps


PADDING = 0.1
"""Default of the largest padded fraction of a mixed-width batch."""


@dataclass(frozen=True)
class TrainingSettings:
    """How clients train in every round.

    Args:
        local_steps: H, local steps per edge round of all clients.
        edge_rounds: E, edge rounds per global round.
        padding: largest padded fraction of a mixed-width batch.
        uplink_compression: compression of the change of the model on the uplink; None for none.
        downlink_compression: compression of the model on the downlink; None for none.
        cutoff_seconds: seconds after which an edge round ends without the updates that are missing;
            None if it waits for all.
        client_steps: [clients], local steps of each client; None for ``local_steps`` each.
    """

    local_steps: int
    edge_rounds: int
    padding: float = PADDING
    uplink_compression: Compression | None = None
    downlink_compression: Compression | None = None
    cutoff_seconds: float | None = None
    client_steps: IntArray | None = None

    @cached_property
    def steps(self) -> StepCounts:
        """Number of local steps of each client."""
        return StepCounts(self.local_steps, self.client_steps)


EQUAL_SHARES = ("round_seconds", "equal_seconds", "equal_joules")
"""Fields of rows that exist only if the uplink compares its decisions with equal shares."""
COSTLY = 2.0
"""Energy over that with equal shares from which on decisions are said to cost energy."""


def costly(costs: Mapping[str, Any]) -> str | None:
    """That bands for the least time cost much energy, in words; None if they do not.

    Args:
        costs: as for :func:`compared`.
    """
    if not all(name in costs for name in EQUAL_SHARES):
        return None
    joules, equal = costs["joules"], costs["equal_joules"]
    if not joules > COSTLY * equal:
        return None
    saved = 100 * (1 - costs["round_seconds"] / costs["equal_seconds"])
    return (
        f"{joules:.3g} instead of {equal:.3g} J per client with equal shares, for {saved:.2g} % "
        "less time: all clients of a cell send at full power until its last one ends. An "
        "energy_weight such as 0.01 in place of allocation optimal saves energy in almost the "
        "same time"
    )


def compared(costs: Mapping[str, Any]) -> str | None:
    """What decisions changed against equal shares, in words; None if there were none.

    Args:
        costs: ``joules`` and the fields ``EQUAL_SHARES`` of a row or a summary.
    """
    if not all(name in costs for name in EQUAL_SHARES):
        return None
    pairs = {
        "s": (costs["round_seconds"], costs["equal_seconds"]),
        "J/client": (costs["joules"], costs["equal_joules"]),
    }
    parts = [
        f"{now:.4g} instead of {before:.4g} {unit} ({_change(now, before)})"
        for unit, (now, before) in pairs.items()
    ]
    return f"allocation: {', '.join(parts)} with equal shares in the same rounds"


def _change(now: float, before: float) -> str:
    return f"{100 * (now / before - 1):+.1f} %" if before else "no change"


def takes_part(service: Service, load: Load, network: Network) -> BoolArray:
    """Clients [..., clients] that an access has not left out: these neither train nor send.

    They have sent their pilots, from which the server knows their channels.
    """
    if service.transmissions is None:
        return np.ones(service.seconds.shape, dtype=np.bool_)
    works = service.joules > load.pilot_joules(network)
    return np.asarray((service.transmissions > 0) | works)


@dataclass(frozen=True, eq=False)
class AmongParticipants(Access):
    """Another access, which serves only the clients that take part; the others wait 0 seconds.

    Args:
        access: the other access.
        joins: [blocks, clients], clients that take part.
    """

    access: Access
    joins: BoolArray

    def serve(self, load: Load, draw: ChannelDraw) -> Service:
        """See :class:`Access`; the load has the same blocks, or none."""
        if self.joins.all():
            return self.access.serve(load, draw)
        seconds, joules, bands = np.zeros((3, *self.joins.shape))
        shares: FloatArray | None = bands  # None in turns
        for block, joins in enumerate(self.joins):
            rows = np.flatnonzero(joins)
            part = draw.block(block).of(draw.network.numbers[rows])
            service = self.access.serve(load.of_rows(rows), part)
            shape = len(self.joins), len(rows)
            seconds[block, rows] = np.broadcast_to(service.seconds, shape)[block]
            joules[block, rows] = np.broadcast_to(service.joules, shape)[block]
            if service.decision.bands_hz is None:
                shares = None
            else:
                bands[block, rows] = np.broadcast_to(service.decision.bands_hz, shape)[block]
        return Service(seconds, joules, self.joins, Decision(bands_hz=shares))
