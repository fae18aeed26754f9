"""How batteries are recharged: not at all, at constant power, by random packets, or by a trace."""

from __future__ import annotations

import csv
import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, ClassVar

import numpy as np
from pydantic import Field

from channels.arrays import FloatArray, IntArray
from channels.streams import Stream
from wirelessfl.base.errors import ConfigError
from wirelessfl.base.guard import reals, returns
from wirelessfl.base.needs import Needs
from wirelessfl.base.registry import Choice, Kind


def _harvested(value: Any, recharge: Recharge, clients: IntArray, *_: Any) -> FloatArray:
    """Check for joules per client."""
    joules: FloatArray = reals(value, (clients.shape,), f"of shape {[len(clients)]}, in joules")
    return joules


@dataclass(frozen=True)
class Recharge(Choice, ABC):
    """Base class of what recharges batteries. It does not depend on what clients do."""

    name = "recharge"

    never: ClassVar[bool] = False
    """Whether no battery is recharged."""

    def check(self) -> None:
        """Raise an error if the settings cannot be used, such as a file that cannot be read.

        Raises:
            ConfigError: they cannot; the message names the setting.
        """

    @returns(_harvested)
    @abstractmethod
    def joules(
        self, clients: IntArray, since: FloatArray, until: float, stream: Stream
    ) -> FloatArray:
        """Energy that each client harvests from ``since`` to ``until``, [clients].

        Energies of consecutive intervals add up.

        Args:
            clients: client numbers.
            since: [clients], beginning of the interval, simulated s.
            until: its end, at least ``since``.
            stream: random stream of the run.
        """


@dataclass(frozen=True)
class NoRecharge(Recharge):
    """Batteries are not recharged."""

    name = "none"

    never: ClassVar[bool] = True

    def joules(
        self, clients: IntArray, since: FloatArray, until: float, stream: Stream
    ) -> FloatArray:
        """No energy."""
        return np.zeros(len(clients))


@dataclass(frozen=True)
class ConstantRecharge(Recharge):
    """Constant power, at all times."""

    name = "constant"

    recharge_watts: Annotated[
        float, Field(gt=0, description="power of each client's source, W")
    ] = 0.1

    def joules(
        self, clients: IntArray, since: FloatArray, until: float, stream: Stream
    ) -> FloatArray:
        """Power times seconds."""
        return np.asarray(self.recharge_watts * (until - since))


LONGEST = 50_000
"""Most intervals of packets that are drawn at once: a wait of more is refused."""
MEAN, MOST = 4.0, 40
"""Mean number of packets in an interval that is drawn at once, and the maximum: more have a
probability below 1e-25."""


@dataclass(frozen=True)
class Harvest(Recharge):
    """Packets of energy at random times: a compound Poisson process of each client.

    Packets arrive at rate lambda, with independent exponential energies of mean m. In t seconds a
    client harvests lambda m t joules on average, with variance 2 lambda m^2 t.
    """

    name = "harvest"

    packet_joules: Annotated[float, Field(gt=0, description="m, mean energy of a packet, J")] = 0.1
    packets_per_second: Annotated[
        float, Field(gt=0, description="lambda, packets of each client per second")
    ] = 1.0

    def joules(
        self, clients: IntArray, since: FloatArray, until: float, stream: Stream
    ) -> FloatArray:
        """Add the packets in (since, until]; those of an interval depend on its number alone."""
        length, total = MEAN / self.packets_per_second, np.zeros(len(clients))
        if not len(clients):
            return total
        chances = _at_most()
        first, last = int(since.min() // length), int(until // length)
        if last - first > LONGEST:
            raise ConfigError(
                f"clients wait for more than {MEAN * LONGEST:g} packets of packet_joules="
                f"{self.packet_joules:g}: raise packet_joules, and lower packets_per_second."
            )
        for number in range(first, last + 1):
            some = np.flatnonzero((since < (number + 1) * length) & (since < until))
            draws = stream.uniforms(number, clients[some], 1 + 2 * MOST)
            packets = np.searchsorted(chances, draws[:, 0], side="right")[:, None]
            times = (number + draws[:, 1 : 1 + MOST]) * length
            arrived = (times > since[some, None]) & (times <= until) & (np.arange(MOST) < packets)
            sizes = -self.packet_joules * np.log1p(-draws[:, 1 + MOST :])
            total[some] += np.where(arrived, sizes, 0.0).sum(1)
        return total


def _at_most() -> FloatArray:
    """Probabilities [MOST] of at most 0, 1, ... packets, Poisson with mean MEAN."""
    numbers = np.arange(MOST)
    logs = numbers * math.log(MEAN) - MEAN - np.array([math.lgamma(n + 1.0) for n in numbers])
    return np.asarray(np.exp(logs).cumsum())


@dataclass(frozen=True)
class TraceRecharge(Recharge):
    """Power over time from a file, the same for all clients."""

    name = "trace"

    recharge_trace: Annotated[
        Path | None,
        Field(description="CSV file: seconds, watts: the power from then on (required)"),
    ] = None
    recharge_period: Annotated[
        float | None,
        Field(gt=0, description="seconds after which the trace repeats (default: never)"),
    ] = None

    def check(self) -> None:
        """Read the file."""
        self._steps()

    def _steps(self) -> tuple[FloatArray, FloatArray]:
        """Times of the changes of power, from 0, and the power after each."""
        if self.recharge_trace is None:
            raise ConfigError("recharge is 'trace', which needs recharge_trace: give it.")
        return read_power(self.recharge_trace, self.recharge_period)

    def joules(
        self, clients: IntArray, since: FloatArray, until: float, stream: Stream
    ) -> FloatArray:
        """The integral of the power."""
        return np.asarray(self._until(np.array(until)) - self._until(since))

    def _until(self, seconds: FloatArray) -> FloatArray:
        """Energy from 0 to ``seconds``."""
        times, watts = self._steps()
        energy = np.concatenate([[0.0], np.cumsum(watts[:-1] * np.diff(times))])
        cycles = np.zeros(())
        if self.recharge_period is not None:
            cycles, seconds = np.divmod(seconds, self.recharge_period)
            whole = energy[-1] + watts[-1] * (self.recharge_period - times[-1])
            cycles = cycles * whole
        at = np.searchsorted(times, seconds, side="right") - 1
        return np.asarray(cycles + energy[at] + watts[at] * (seconds - times[at]))


@lru_cache(maxsize=4)
def read_power(path: Path, period: float | None) -> tuple[FloatArray, FloatArray]:
    """Read times and powers from a CSV file with the columns seconds and watts; 0 W before."""
    what = f"recharge_trace={path}"
    try:
        rows = [row for row in csv.reader(path.read_text(encoding="utf-8-sig").splitlines()) if row]
        head = [name.strip() for name in rows[0]] if rows else []
        if missing := [name for name in ("seconds", "watts") if name not in head]:
            raise ValueError(f"there is no column {missing[0]}")
        if len(rows) == 1:
            raise ValueError("there are no lines below the header")
        columns = [head.index(name) for name in ("seconds", "watts")]
        table = np.array([[float(row[column]) for column in columns] for row in rows[1:]])
        times, watts = table.reshape(-1, 2).T
    except OSError as error:
        raise ConfigError(f"{what} cannot be read: {error.strerror}.") from None
    except (ValueError, IndexError) as error:
        raise ConfigError(
            f"{what}: {error}. Give a CSV file with the header seconds,watts and two numbers in "
            "each line."
        ) from None
    sorted_times = len(times) and times[0] >= 0 and (np.diff(times) > 0).all()
    if not (sorted_times and np.isfinite(table).all() and (watts >= 0).all()):
        raise ConfigError(
            f"{what}: give increasing seconds of at least 0, and finite watts of at least 0."
        )
    if period is not None and period <= times[-1]:
        raise ConfigError(
            f"recharge_period={period:g} conflicts with {what}, which has a power at "
            f"{times[-1]:g} s: choose a period after the last line."
        )
    if times[0] > 0:
        times, watts = np.concatenate([[0.0], times]), np.concatenate([[0.0], watts])
    return times, watts


RECHARGES: Kind[Recharge] = Kind(
    "recharge",
    __name__,
    Recharge,
    default=NoRecharge.name,
    needs=(
        Needs(
            lambda run, _: run.battery_joules is not None,
            "needs batteries: set battery_joules",
        ),
    ),
    text="what recharges the clients' batteries",
)
"""All sources of energy."""
