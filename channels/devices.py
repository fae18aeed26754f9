"""Devices of clients by their measured seconds and joules, instead of clocks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any, Self

import numpy as np

from channels.arrays import FloatArray, IntArray
from channels.by_client import ByKind
from channels.streams import Stream
from channels.validation import LEAST, MOST, shown

STEP_CYCLES = 1e6
"""Cycles of a step of the full model in a network of devices: their number has no meaning."""
MOST_DEVICES = 1 << 16
"""Maximum number of rows of a table."""


@dataclass(frozen=True, kw_only=True)
class Device:
    """One type of device: what training takes there, as measured or from a data sheet.

    A device has ``seconds_per_sample`` of one model, or the FLOP per second that it reaches in
    training any model. Every other number is optional.

    >>> import channels
    >>> phone = channels.Device(name="phone", seconds_per_sample=0.02, watts=3.0)
    >>> phone.seconds(samples=50), phone.watts
    (1.0, 3.0)

    Args:
        name: the device.
        seconds_per_sample: seconds in which a sample is trained once: forward, backward, update.
        flop_per_second: FLOP per second in training.
        linear_flop_per_second: the same in fully connected layers; None for ``flop_per_second``.
        conv_flop_per_second: the same in convolutions; None for ``flop_per_second``.
        watts: power while the device trains; None if it is not known, which costs no joules.
        joules_per_sample: energy of a sample, in place of ``watts``; needs ``seconds_per_sample``.
        idle_watts: power while the device receives, or waits for others: for the end of an edge
            round or of a round of tasks, or to send the update of a request; None for no power.
        transmit_watts: power that the device draws while it sends; None for the radiated power,
            ``transmit_power_w`` of the network.
        battery_joules: energy of a full battery; None for a device on mains.
        uplink_mbps: rate of its own link to the server, in Mbit/s; see ``channels.FixedRate``.
        downlink_mbps: rate of the link to it, in Mbit/s.
        count: number of clients with this device; of a table, either all rows have one, or none.
        share: fraction of the clients, relative to the other rows'; 1 by default.
        source: where the numbers come from.
    """

    name: str
    seconds_per_sample: float | None = None
    flop_per_second: float | None = None
    linear_flop_per_second: float | None = None
    conv_flop_per_second: float | None = None
    watts: float | None = None
    joules_per_sample: float | None = None
    idle_watts: float | None = None
    transmit_watts: float | None = None
    battery_joules: float | None = None
    uplink_mbps: float | None = None
    downlink_mbps: float | None = None
    count: int | None = None
    share: float | None = None
    source: str = field(default="", repr=False)

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name:
            raise ValueError(f"name of a device is {shown(self.name)}: give a string.")
        for key in NUMBERS:
            self._check_number(key, getattr(self, key))
        of_model, of_any = self.seconds_per_sample is not None, self.flop_per_second is not None
        if of_model == of_any:
            raise ValueError(
                f"device {self.name!r} has {'both' if of_model else 'neither'} seconds_per_sample "
                f"{'and' if of_model else 'nor'} flop_per_second: give one of them."
            )
        for key in ("linear_flop_per_second", "conv_flop_per_second"):
            if getattr(self, key) is not None and of_model:
                raise ValueError(
                    f"{key} of device {self.name!r} conflicts with seconds_per_sample: give "
                    "flop_per_second."
                )
        if self.joules_per_sample is not None and (self.watts is not None or not of_model):
            reason = "conflicts with watts" if of_model else "needs seconds_per_sample"
            raise ValueError(
                f"joules_per_sample of device {self.name!r} {reason}: give watts, or seconds and "
                "joules of a sample of the same model."
            )
        if self.joules_per_sample is not None and self.seconds_per_sample is not None:
            object.__setattr__(self, "watts", self.joules_per_sample / self.seconds_per_sample)
            object.__setattr__(self, "joules_per_sample", None)  # watts, so that a copy has one
        if self.count is not None and self.share is not None:
            raise ValueError(f"device {self.name!r} has count and share: give one of them.")

    def _check_number(self, key: str, value: Any) -> None:
        if value is None:
            return
        number = isinstance(value, int | float | np.number) and not isinstance(value, bool)
        least = 0.0 if key == "count" else LEAST
        if not (number and least <= value <= MOST) or (key == "count" and value != int(value)):
            kind = "an integer >= 0" if key == "count" else "a finite number > 0"
            raise ValueError(f"{key} of device {self.name!r} is {shown(value)}: give {kind}.")
        object.__setattr__(self, key, int(value) if key == "count" else float(value))

    def seconds(self, samples: float = 1, flops: Sequence[float] = (0.0, 0.0, 0.0)) -> float:
        """Seconds of a step.

        Args:
            samples: samples of the step.
            flops: FLOPs of the step in fully connected layers, in convolutions and in the rest.
        """
        if self.seconds_per_sample is not None:
            return samples * self.seconds_per_sample
        assert self.flop_per_second is not None
        rates = (self.linear_flop_per_second, self.conv_flop_per_second, None)
        return sum(
            count / (rate or self.flop_per_second) for count, rate in zip(flops, rates, strict=True)
        )


NUMBERS = tuple(entry.name for entry in fields(Device) if entry.name not in ("name", "source"))
"""Columns of a table with numbers."""


@dataclass(frozen=True, eq=False, init=False)
class Devices:
    """A table of devices, and which of them each client has: one byte per client of up to 256 rows.

    A network of devices computes with a clock of ``STEP_CYCLES`` cycles per step: steps take the
    device's seconds, at its watts.

    >>> import channels
    >>> table = [
    ...     channels.Device(name="phone", seconds_per_sample=0.02, watts=3.0, share=3),
    ...     channels.Device(name="board", seconds_per_sample=0.1, watts=5.0),
    ... ]
    >>> devices = channels.Devices.drawn(table, 8, channels.Stream(1))
    >>> devices.counts
    {'phone': 6, 'board': 2}
    >>> network = channels.Network([0] * 8, gain_db=-100.0, devices=devices.at_step(samples=50))
    >>> sorted({*channels.Load(cycles=1e6).ready_seconds(network).tolist()})
    [1.0, 5.0]

    Args:
        table: the devices.
        of: [clients], row of each client's device.
        samples: samples of a step.
        flops: FLOPs of a step of the full model in fully connected layers, in convolutions and in
            the rest.
    """

    table: tuple[Device, ...]
    of: IntArray
    samples: float
    flops: tuple[float, float, float]
    _columns: dict[str, FloatArray | None] = field(repr=False)
    """Columns that were asked for; networks of some of the clients share them."""

    def __init__(
        self,
        table: Iterable[Device],
        of: Any,
        samples: float = 1,
        flops: Sequence[float] = (0.0, 0.0, STEP_CYCLES),
    ) -> None:
        rows = table_of(table)
        index = np.asarray(of)
        if index.ndim != 1 or index.dtype.kind not in "iu":
            raise ValueError(f"of is {shown(of)}: give each client's row in the table, [clients].")
        if index.size and not 0 <= int(index.min()) <= int(index.max()) < len(rows):
            raise ValueError(
                f"of contains {int(index.max())}: give rows from 0 to {len(rows) - 1}."
            )
        index = index.astype(np.min_scalar_type(len(rows) - 1))
        index.setflags(write=False)
        values = {"table": rows, "of": index, "samples": samples, "flops": tuple(flops)}
        values["_columns"] = {}
        for name, value in values.items():
            object.__setattr__(self, name, value)

    @classmethod
    def drawn(cls, table: Iterable[Device], clients: int, stream: Stream) -> Self:
        """Devices of clients, by the counts or shares of a table.

        A table with one row per client and no counts or shares gives each client its row, in order.
        Otherwise the numbers of clients are exact, or rounded to the largest remainders, and their
        places random.

        Args:
            table: the devices.
            clients: number of clients.
            stream: randomness of the places.

        Raises:
            ValueError: counts and shares are mixed, or the counts are not those of the clients.
        """
        rows = table_of(table)
        counts = [row.count for row in rows if row.count is not None]
        plain = all(row.share is None for row in rows)
        if not counts and plain and len(rows) == clients:
            return cls(rows, np.arange(clients))
        if counts:
            if len(counts) < len(rows):
                bare = next(row for row in rows if row.count is None)
                raise ValueError(f"device {bare.name!r} has no count, and others do: give one.")
            if sum(counts) != clients:
                raise ValueError(
                    f"the counts of the devices add up to {sum(counts)}, and clients is {clients}: "
                    "give shares, or other counts."
                )
            numbers = np.array(counts)
        else:
            shares = np.array([1.0 if row.share is None else row.share for row in rows])
            numbers = _apportioned(shares, clients)
        index = np.repeat(np.arange(len(rows), dtype=np.min_scalar_type(len(rows) - 1)), numbers)
        return cls(rows, stream.generator().permutation(index))

    def __repr__(self) -> str:
        """One line."""
        numbers = ", ".join(f"{count} {name}" for name, count in self.counts.items() if count)
        return f"<Devices: {numbers}>"

    @property
    def counts(self) -> dict[str, int]:
        """Number of clients with each device, by name."""
        numbers: dict[str, int] = {}
        for row, count in zip(self.table, self._numbers, strict=True):
            numbers[row.name] = numbers.get(row.name, 0) + int(count)
        return numbers

    @cached_property
    def _numbers(self) -> IntArray:
        return np.bincount(self.of, minlength=len(self.table))

    def at(self, clients: IntArray) -> Devices:
        """The devices of some clients.

        Args:
            clients: their places; also several times or in another order.
        """
        copy = object.__new__(Devices)
        vars(copy).update(vars(self) | {"of": self.of[clients]})
        vars(copy).pop("_numbers", None)
        return copy

    def at_step(self, samples: float, flops: Sequence[float] | None = None) -> Devices:
        """The same devices for steps of another model or batch size.

        Args:
            samples: samples of a step.
            flops: FLOPs of a step, see :class:`Devices`; None for those of ``self``.
        """
        return Devices(self.table, self.of, samples, self.flops if flops is None else flops)

    @property
    def need_flops(self) -> bool:
        """Whether the seconds of some device follow from the FLOPs of the model."""
        return self.column("flop_per_second") is not None

    @property
    def step_seconds(self) -> FloatArray:
        """Seconds of a step of the full model with each device, [rows]."""
        if "" not in self._columns:
            seconds = [row.seconds(self.samples, self.flops) for row in self.table]
            self._columns[""] = np.array(seconds, dtype=np.float64)
        steps = self._columns[""]
        assert steps is not None
        return steps

    def column(self, name: str) -> FloatArray | None:
        """A column of the table [rows], NaN for devices without a value; None if all have none."""
        if name not in self._columns:
            cells = [getattr(row, name) for row in self.table]
            empty = all(cell is None for cell in cells)
            self._columns[name] = None if empty else np.array(cells, dtype=np.float64)
        return self._columns[name]

    def by_client(self, name: str) -> ByKind | None:
        """The same by client."""
        values = self.column(name)
        return None if values is None else ByKind(values, self.of)

    @property
    def watts(self) -> FloatArray:
        """Power of training with each device, [rows]; 0 if it is not known."""
        watts = self.column("watts")
        return np.zeros(len(self.table)) if watts is None else np.nan_to_num(watts)

    @property
    def clocks(self) -> ByKind:
        """``STEP_CYCLES`` over the seconds of a step, by client."""
        return ByKind(STEP_CYCLES / self.step_seconds, self.of)

    @property
    def switched_capacitance(self) -> ByKind:
        """The kappa with which kappa f^2 joules per cycle at f Hz are the device's watts."""
        return ByKind(self.watts / (STEP_CYCLES / self.step_seconds) ** 3, self.of)


DeviceTable = Devices | Device | Sequence[Device]
"""Devices of a network: see :class:`channels.Network`."""


def table_of(devices: Iterable[Device]) -> tuple[Device, ...]:
    """The rows of a table, checked."""
    rows = (devices,) if isinstance(devices, Device) else tuple(devices)
    wrong = next((row for row in rows if not isinstance(row, Device)), None)
    if wrong is not None:
        raise TypeError(f"devices contain {shown(wrong)}: give channels.Device objects.")
    if not 1 <= len(rows) <= MOST_DEVICES:
        raise ValueError(f"devices has {len(rows)} rows: give 1 to {MOST_DEVICES}.")
    return rows


def devices_of(devices: Any, clients: int) -> Devices:
    """The devices of a network: ``Devices``, one ``Device`` for all, or a list of one each."""
    if isinstance(devices, Devices):
        if len(devices.of) != clients:
            raise ValueError(
                f"devices is of {len(devices.of)} clients, and the network has {clients}."
            )
        return devices
    rows = table_of(devices)
    if len(rows) not in {1, clients}:
        raise ValueError(
            f"devices has {len(rows)} rows, and the network {clients} clients: give one device, "
            "one per client, or Devices.drawn(table, clients, stream)."
        )
    return Devices(rows, np.zeros(clients, int) if len(rows) == 1 else np.arange(clients))


def _apportioned(shares: FloatArray, clients: int) -> IntArray:
    """Numbers of clients in proportion to ``shares``, by the largest remainders."""
    exact = shares / shares.sum() * clients
    numbers = np.floor(exact).astype(np.int64)
    first = np.argsort(numbers - exact, kind="stable")[: clients - int(numbers.sum())]
    numbers[first] += 1
    return np.asarray(numbers)


def some(devices: Devices | None, rows: IntArray) -> Devices | None:
    """The devices of some clients; None without devices."""
    return None if devices is None else devices.at(rows)
