"""Durations of training requests."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

import numpy as np

from channels import Access, ChannelDraw, Load, Network, Rates, snr_linear
from channels.arrays import FloatArray, IntArray
from channels.by_client import ByKind
from channels.indexed import BLOCK, Draws, exponential
from channels.streams import Stream
from wirelessfl.air.links import at_clients
from wirelessfl.air.traffic import Traffic
from wirelessfl.air.uplinks import Uplink
from wirelessfl.air.uplinks.checked import checked_access, serving
from wirelessfl.base.guard import number, reals, returns
from wirelessfl.training.steps import StepCounts

PUBLISHED_STEP_SECONDS = {
    "mnist": 0.148,
    "fashion-mnist": 0.240,
    "cifar10": 0.228,
    "shakespeare": 0.555,
    "cifar100": 2.071,
}
"""beta_m of a normal client, by data set, up to a common scale (Askin et al., Appendix C.6)."""
SPEEDS = (1.3, 1.0, 0.7)
"""Factors of beta for slow, normal and fast clients (Appendix C.6)."""
SHARES = (0.25, 0.5, 0.25)
"""Fractions of slow, normal and fast clients."""


def client_speeds(clients: int, stream: Stream) -> FloatArray:
    """Factors of beta [clients], assigned at random in proportions ``SHARES``."""
    ends = np.round(np.cumsum(SHARES) * clients).astype(int)
    factors = np.repeat(SPEEDS, np.diff(ends, prepend=0))
    return np.asarray(stream.generator().permutation(factors))


@dataclass(frozen=True, eq=False)
class StepSeconds:
    """Seconds per step by client, computed on access: they take no memory for idle clients.

    Args:
        cycles: CPU cycles per step.
        cpu_hz: [clients], CPU speeds.
    """

    cycles: float
    cpu_hz: FloatArray | ByKind

    def __getitem__(self, client: int) -> float:
        return float(self.cycles / self.cpu_hz[client])

    def of(self, clients: IntArray) -> FloatArray:
        """Seconds per step of these clients, [clients]."""
        return np.asarray(self.cycles / self.cpu_hz[clients])


def _means(value: Any, delays: Any, task: int, clients: IntArray, shares: FloatArray) -> Any:
    """Check for seconds of the shape of ``shares``, or None."""
    del delays, task, clients
    if value is None:
        return value
    shape = shares.shape
    return reals(value, (shape,), f"of shape {list(shape)}, as the shares, or None")


class Delays(ABC):
    """Durations of training requests, and the energy that clients spend on them.

    Both are proportional to the size of the submodel that a client trains.
    """

    @property
    def wireless(self) -> Wireless | None:
        """Rates and energy of uploads over a shared band; None if ``seconds`` includes uploads."""
        return None

    @returns(number())
    @abstractmethod
    def seconds(self, task: int, client: int, number: int) -> float:
        """Duration of request ``number`` of ``task`` at ``client``, without a shared upload.

        The duration is that of the full model; callers scale it by the submodel's fraction.
        """

    @returns(_means)
    def mean_seconds(self, task: int, clients: IntArray, shares: FloatArray) -> FloatArray | None:
        """Mean seconds from a request to its update, if the client has the air to itself.

        Submodels are as large as these seconds allow (``--budget deadline``). They depend on
        neither the number nor the time of the request: random parts count with their mean, and
        queues, drop-outs and other clients' uploads do not count.

        Args:
            task: task of the request.
            clients: [clients], their numbers.
            shares: [..., clients], fractions of the full model's parameters that they train.

        Returns:
            [..., clients], finite and >= 0; inf only at a data rate of 0. None, the default, if the
            means are not known.
        """
        return None

    @returns(number())
    def more_seconds(self, task: int, client: int, share: float = 1.0) -> float:
        """Seconds before an upload that are not proportional to the size of the submodel.

        They are those of pilots, and of scales and indices of a compressed download.
        """
        return 0.0

    @returns(number())
    def compute_joules(self, task: int, client: int, seconds: float, share: float = 1.0) -> float:
        """Energy of the first ``seconds`` of a request; 0 if no energy is modelled.

        Args:
            task: task of the request.
            client: client that trains.
            seconds: seconds since the client started the request.
            share: fraction of the full model's parameters that the client trains.
        """
        return 0.0


@dataclass(frozen=True, eq=False)
class ShiftedExponential(Delays):
    """tau X seconds, one draw of X per request: P(X <= x) = 1 - exp(-(x - beta) / (2 beta)).

    beta is beta_m times the client's factor. X covers all time from request to update, and has mean
    3 beta (Askin et al., UAI 2024, Appendix C.6).

    Args:
        min_seconds: [tasks], beta_m of a normal client.
        speeds: [clients], factors of beta, see ``client_speeds``.
        stream: random stream of the durations.
        steps: [tasks], tau_m of each client; None for 1.
    """

    min_seconds: Sequence[float]
    speeds: FloatArray
    stream: Stream
    steps: Sequence[StepCounts] | None = None

    @cached_property
    def _excess(self) -> Draws:
        return exponential(self.stream)

    def _least(self, task: int, client: int) -> float:
        """tau beta, minimum seconds of a request for the full model."""
        steps = 1 if self.steps is None else self.steps[task].of(client)
        return steps * self.min_seconds[task] * self.speeds.item(client)

    def seconds(self, task: int, client: int, number: int) -> float:
        """Duration of request ``number`` of ``task`` at ``client``."""
        return self._least(task, client) * (1 + 2 * self._excess[number])

    def mean_seconds(self, task: int, clients: IntArray, shares: FloatArray) -> FloatArray:
        """3 tau beta for the full model, in proportion to the submodel; see ``Delays``."""
        steps = 1 if self.steps is None else self.steps[task].at(clients)
        least = steps * self.min_seconds[task] * self.speeds[clients]
        return np.asarray(shares * (3 * least))


class ClientValues(NamedTuple):
    """What all requests of a client share.

    Args:
        cycle_joules: kappa f^2, energy of a CPU cycle.
        snr: mean SNR per antenna of its uploads, over the whole band.
        sending_watts: power that it draws while it sends.
        idle_watts: power that it draws within a request while it neither trains nor sends.
        training_watts: power that it draws while it trains, on a device.
        cpu_hz: CPU cycles per second.
    """

    cycle_joules: float
    snr: float
    sending_watts: float
    idle_watts: float
    training_watts: float | None
    cpu_hz: float


CACHED, TOGETHER = 1 << 14, 64
"""Maximum number of clients whose values are cached, which take 430 bytes each, and how many are
computed together. Simulations are slower if more clients have requests at the same time."""


@dataclass(frozen=True, eq=False)
class Wireless(Delays):
    """Local steps at the CPU speed, then an upload over a band shared by all concurrent uploads.

    Args:
        network: CPU speeds and channels.
        uplink: multiple access of the band.
        steps: [tasks], tau_m of each client.
        step_seconds: [tasks], seconds per step by client.
        traffic: [tasks], bits of uploads and downloads.
        downlink_bps: rate to each client; None if the downlink takes no time.
        stream: random stream of the channels.
        pilot_symbols: pilot symbols of each client before its upload.
    """

    network: Network
    uplink: Uplink
    steps: Sequence[StepCounts]
    step_seconds: Sequence[FloatArray | StepSeconds]
    traffic: Sequence[Traffic]
    downlink_bps: float | ByKind | None
    stream: Stream
    pilot_symbols: int = 0

    @property
    def wireless(self) -> Wireless:
        """This object, because uploads share the band."""
        return self

    def _computing(self, task: int, client: int) -> float:
        """Seconds of a client's local steps."""
        return float(self.steps[task].of(client) * self.step_seconds[task][client])

    @cached_property
    def client(self) -> Callable[[int], ClientValues]:
        """The values of a client."""
        return lru_cache(CACHED)(self._client)

    def _client(self, client: int) -> ClientValues:
        network = self.network
        joules = network.switched_capacitance[client] * network.cpu_hz[client] ** 2
        values = self._neighbours(client // TOGETHER)[client % TOGETHER]
        return ClientValues(float(joules), *values)

    @cached_property
    def _neighbours(self) -> Callable[[int], list[tuple[Any, ...]]]:
        return lru_cache(CACHED // TOGETHER)(self._values)

    def _values(self, block: int) -> list[tuple[Any, ...]]:
        """Other fields of ``ClientValues`` of clients with consecutive numbers."""
        network = self.network
        clients = np.arange(TOGETHER * block, min(TOGETHER * (block + 1), network.clients))
        snr, gain = network.snr_db_of(clients), network.path_gain_db[clients]
        devices = network.devices
        sending, idle = network.transmit_power_w[clients], np.zeros(len(clients))
        training = [None] * len(clients)
        if devices is not None:
            sending = network.of(clients).sending_watts()
            training = devices.watts[devices.of[clients]].tolist()
            if (column := devices.by_client("idle_watts")) is not None:
                idle = np.nan_to_num(column[clients])
        columns = (
            (snr_linear(snr) * 10 ** (gain / 10)).tolist(),
            sending.tolist(),
            idle.tolist(),
            training,
            network.cpu_hz[clients].tolist(),
        )
        return list(zip(*columns, strict=True))

    @cached_property
    def _gains(self) -> Draws:
        network = self.network
        return Draws(lambda block: network.draw_gains(self.stream, block, BLOCK))

    @cached_property
    def _bandwidth_hz(self) -> float:
        return float(self.network.bandwidth_hz[0])

    def seconds(self, task: int, client: int, number: int) -> float:
        """Seconds from the start of a request to its upload: download and local steps."""
        return self._down_seconds(task, client) + self._computing(task, client)

    @cached_property
    def _pilot_seconds(self) -> float:
        """Seconds of the pilots; 0 if clients send together, after the pilots of all of them."""
        together = self.uplink.gives == "sum"
        return 0.0 if together else self.pilot_symbols / self._bandwidth_hz

    def more_seconds(self, task: int, client: int, share: float = 1.0) -> float:
        """Seconds of pilots, and of scales and indices of the download; see ``Delays``."""
        return self._pilot_seconds + self._more_down(task, client, share)

    def _more_down(self, task: int, client: int, share: float) -> float:
        """Seconds of a download besides the submodel's share of that of the whole model."""
        traffic = self.traffic[task]
        if traffic.down is None or share == 1.0:
            return 0.0
        whole = self._down_seconds(task, client)
        return whole * (traffic.down_of(share) / traffic.whole_down - share)

    def _down_seconds(self, task: int, client: int) -> float:
        rate = self.downlink_bps
        if rate is None:
            return 0.0
        bps = rate[client] if isinstance(rate, ByKind) else rate
        return float(self.traffic[task].whole_down / bps)

    def _downs(self, task: int, clients: IntArray) -> float | FloatArray:
        if self.downlink_bps is None:
            return 0.0
        return self.traffic[task].whole_down / at_clients(self.downlink_bps, clients)

    def mean_seconds(self, task: int, clients: IntArray, shares: FloatArray) -> FloatArray:
        """Download, local steps, and an upload alone over the mean channel; see ``Delays``.

        The channel's power is its mean, antennas times path gain, and the client is the only one of
        its cell. Over the air, the upload takes as long as that of the full model, as in rounds.

        Raises:
            ConfigError: the uplink's access cannot serve a client alone.
        """
        cost = self.step_seconds[task]
        step = cost.of(clients) if isinstance(cost, StepSeconds) else cost[clients]
        before = self._downs(task, clients) + self.steps[task].at(clients) * step
        network, traffic = self.network, self.traffic[task]
        lengths = shares * traffic.spec.size
        more: float | FloatArray = 0.0
        if traffic.down is not None:
            parts = traffic.down_bits(lengths) / traffic.whole_down
            more = self._downs(task, clients) * (parts - shares)
        alone = network.regrouped(
            clients, network.cell_of[clients], np.ones(len(clients), dtype=np.int64)
        )
        amplitude = 10 ** (alone.path_gain_db / 20)
        h = np.repeat(amplitude[:, None], network.antennas, 1).astype(np.complex64)
        load = Load(
            elements=traffic.payloads * lengths,
            jointly=np.full(shares.shape, traffic.payloads * traffic.spec.size),
            start_seconds=shares * before + more,
            pilot_symbols=self.pilot_symbols,
            bits_per_element=traffic.bits_per_element(lengths),
        )
        with serving(f"uplink {self.uplink.title!r}"):
            seconds = self._access.seconds(load, ChannelDraw(alone, h))
        return np.asarray(np.broadcast_to(seconds, shares.shape))

    def bits(self, task: int, share: float = 1.0) -> float:
        """Bits of an update of a submodel with this fraction of the parameters."""
        return self.traffic[task].up_of(share)

    def received_snr(self, client: int, number: int) -> float:
        """SNR ||h||^2 in the upload of request ``number``, over the whole band."""
        network = self.network
        snr = self.client(client).snr
        if network.gain_by_client:
            return snr * network.draw_gain(self.stream, number, client)
        return snr * self._gains[number]

    @cached_property
    def _access(self) -> Access:
        return checked_access(self.uplink)

    @property
    def time_shared(self) -> bool:
        """Whether n current uploads each have 1/n of the rate that they have alone."""
        return self._access.time_shared

    def rates(self, snrs: FloatArray) -> Rates:
        """Rates of the current uploads, from their SNR over the whole band."""
        return self._access.rates(snrs, self._bandwidth_hz)

    def compute_joules(self, task: int, client: int, seconds: float, share: float = 1.0) -> float:
        """Energy of local steps, pilots and waiting in the first ``seconds`` of a request.

        A device with ``idle_watts`` spends them while it receives, waits for its turn to send or
        for others that send with it; uploads count what sending takes more.
        """
        down, values = share * self._down_seconds(task, client), self.client(client)
        after = max(seconds - down - self._more_down(task, client, share), 0.0)
        busy = min(after, share * self._computing(task, client))
        pilots = min(after - busy, self._pilot_seconds)
        if values.training_watts is not None:
            idle = values.idle_watts * (seconds - busy - pilots)
            return busy * values.training_watts + values.sending_watts * pilots + idle
        return values.cycle_joules * (busy * values.cpu_hz) + values.sending_watts * pilots
