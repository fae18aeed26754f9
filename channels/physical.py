"""The physical part of a network: cells, clients, gains, powers and noise, without channels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from channels.arguments import checked
from channels.arrays import FloatArray, IntArray
from channels.by_client import ByClientField
from channels.cells import ClientsByCell, read_only
from channels.decibels import (
    LARGEST_DB,
    THERMAL_DBM_PER_HZ,
    check_without_gains,
    noise_power_dbm,
)
from channels.devices import STEP_CYCLES, Devices, DeviceTable, some
from channels.fading import Fading
from channels.interference import Interference, InterferenceWatts, Watts
from channels.network_values import DEFAULT_DBM, DEFAULT_POWER_W, network_values
from channels.placement import Placement
from channels.summaries import ROWS, cells_of, count_of, hertz, html_table, span
from channels.validation import checked_rows, in_range, increasing, shown

BY_CLIENT = (
    "cell_of",
    "cpu_hz",
    "_snr_db",
    "path_gain_db",
    "transmit_power_w",
    "switched_capacitance",
)
SHOWN = 10_000
"""Maximum number of clients whose SNRs the representation of a network evaluates."""


@dataclass(frozen=True, eq=False, init=False)
class PhysicalNetwork(ClientsByCell):
    """What a :class:`channels.Network` is, but for its channels; see there for the arguments."""

    bandwidth_hz: FloatArray
    noise_dbm_per_hz: float
    noise_figure_db: float
    antennas: int
    fading: Fading
    antenna_correlation: complex
    interference: Interference | None
    interference_watts: Watts | None
    placement: Placement | None
    cycles_per_step: float
    part: IntArray | None
    devices: Devices | None
    # An SNR that a caller gave is kept, with its noise, so that no rounding changes it.
    _noise_dbm: FloatArray
    """Noise powers [cells] in dBm, with which ``_snr_db`` holds."""
    cell_of: ByClientField[np.int64] = ByClientField()
    cpu_hz: ByClientField[np.float64] = ByClientField()
    transmit_power_w: ByClientField[np.float64] = ByClientField()
    switched_capacitance: ByClientField[np.float64] = ByClientField()
    path_gain_db: ByClientField[np.float64] = ByClientField()
    """Part of the mean gain that channels h include, in dB; 0 unless :meth:`from_snr` sets it."""
    _snr_db: ByClientField[np.float64] = ByClientField()
    """SNR [clients] at ``DEFAULT_POWER_W`` and the noise ``_noise_dbm``, without path gain."""
    _ends: IntArray = field(init=False, repr=False)  # [cells], first client after each cell

    @checked()
    def __init__(
        self,
        cell_of: ArrayLike,
        *,
        cpu_hz: ArrayLike | None = None,
        gain_db: ArrayLike | None = None,
        transmit_power_w: ArrayLike = DEFAULT_POWER_W,
        bandwidth_hz: ArrayLike = 9e6,
        noise_dbm_per_hz: float = THERMAL_DBM_PER_HZ,
        noise_figure_db: float = 0.0,
        antennas: int = 1,
        fading: Fading | None = None,
        antenna_correlation: complex = 0.0,
        interference: Interference | None = None,
        interference_watts: InterferenceWatts = None,
        placement: Placement | None = None,
        cycles_per_step: float = 1e6,
        switched_capacitance: ArrayLike | None = None,
        part: ArrayLike | None = None,
        devices: DeviceTable | None = None,
        path_gain_db: ArrayLike = 0.0,
        _snr_db: ArrayLike | None = None,
        _noise_dbm: FloatArray | None = None,
    ) -> None:
        values = network_values(
            cell_of,
            cpu_hz=cpu_hz,
            gain_db=gain_db,
            transmit_power_w=transmit_power_w,
            bandwidth_hz=bandwidth_hz,
            noise_dbm_per_hz=noise_dbm_per_hz,
            noise_figure_db=noise_figure_db,
            antennas=antennas,
            fading=fading,
            antenna_correlation=antenna_correlation,
            interference=interference,
            interference_watts=interference_watts,
            placement=placement,
            cycles_per_step=cycles_per_step,
            switched_capacitance=switched_capacitance,
            part=part,
            devices=devices,
            path_gain_db=path_gain_db,
            _snr_db=_snr_db,
            _noise_dbm=_noise_dbm,
        )
        for name, value in values.items():
            object.__setattr__(self, name, value)

    @classmethod
    @checked()
    def from_snr(
        cls,
        cell_of: ArrayLike,
        *,
        cpu_hz: ArrayLike | None = None,
        snr_db: ArrayLike,
        path_gain_db: ArrayLike = 0.0,
        **others: Any,
    ) -> Self:
        """A network whose gains give these SNRs at the default power of 0.1 W (20 dBm).

        Another ``transmit_power_w`` shifts the SNR: 0.2 W gives 3 dB more.

        Args:
            cell_of: [clients], the cell of each client.
            cpu_hz: F_i [clients], CPU cycles per second; None with ``devices``.
            snr_db: [clients], transmit SNR P / sigma_0^2 at 0.1 W over the whole band and per
                antenna, in dB, for a channel of mean power 1; within [-300, 300].
            path_gain_db: [clients], mean power of a channel per antenna, in dB; within [-300, 300].
            others: further arguments of :class:`Network`, by name; not ``gain_db``.
        """
        check_without_gains(others)
        snr = in_range("snr_db", snr_db, ("clients", np.size(cell_of)), limit=LARGEST_DB)
        return cls(cell_of, cpu_hz=cpu_hz, path_gain_db=path_gain_db, _snr_db=snr, **others)

    @checked()
    def with_snr(self, snr_db: ArrayLike) -> Self:
        """This network with gains that give these SNRs at 0.1 W, see :meth:`from_snr`.

        Args:
            snr_db: [clients] or one number, in dB; within [-300, 300].
        """
        snr = in_range("snr_db", snr_db, ("clients", self.clients), limit=LARGEST_DB)
        values: dict[str, Any] = {"_snr_db": snr, "_noise_dbm": self.noise_dbm}
        return replace(self, placement=None, **values)  # the SNR no longer follows from positions

    def __repr__(self) -> str:
        """One line; of many clients, the SNRs are those of some of them."""
        rows = np.arange(self.clients)
        about = ""
        if self.clients > SHOWN:
            rows, about = np.linspace(0, self.clients - 1, SHOWN).astype(np.int64), "about "
        snr = self.snr_db_of(rows) + vars(self)["path_gain_db"].at(rows)
        return f"<Network: {self._size}, mean SNR {about}{span(snr, 'dB')}>"

    def _repr_html_(self) -> str:
        rows = np.arange(min(self.clients, ROWS))
        few = self.of(rows if self.part is None else self.part[rows])
        columns = {
            "client": cells_of(few.numbers, "d"),
            "cell": cells_of(few.cell_of, "d"),
            "mean SNR [dB]": cells_of(few.mean_snr_db, ".1f"),
            "transmit power [W]": cells_of(few.transmit_power_w, ".3g"),
        }
        if few.devices is None:
            columns["CPU [GHz]"] = cells_of(few.cpu_hz, ".3g", 1e9)
        else:
            columns["device"] = [few.devices.table[row].name for row in few.devices.of]
        return html_table(repr(self)[1:-1], columns, self.clients)

    @property
    def _size(self) -> str:
        clients, cells = count_of(self.clients, "client"), count_of(self.cells, "cell")
        per = " per cell" if self.cells > 1 else ""
        antennas = count_of(self.antennas, "antenna")
        return f"{clients} in {cells}, {hertz(self.bandwidth_hz)}{per}, {antennas}"

    @property
    def noise_dbm(self) -> FloatArray:
        """Noise power in each cell's band, N0 B and noise figure, in dBm [cells]."""
        return noise_power_dbm(self.bandwidth_hz, self.noise_figure_db, self.noise_dbm_per_hz)

    @property
    def snr_db(self) -> FloatArray:
        """Transmit SNR [clients] in dB, P_i over the noise, for a channel h of mean power 1.

        It covers the whole band of the cell, and includes the mean gain but for ``path_gain_db``,
        which is a part of h. The array is read-only.
        """
        return read_only(self.snr_db_of(np.arange(self.clients)))

    def snr_db_of(self, rows: IntArray) -> FloatArray:
        """``snr_db`` of some clients, [rows]; takes no memory for the others."""
        values = vars(self)
        power = values["transmit_power_w"].at(rows) / DEFAULT_POWER_W
        more_noise = self._more_noise_db[values["cell_of"].at(rows)]
        return np.asarray(values["_snr_db"].at(rows) + 10 * np.log10(power) - more_noise)

    @cached_property
    def _more_noise_db(self) -> FloatArray:
        """Noise power above that of ``_snr_db``, [cells]."""
        return self.noise_dbm - self._noise_dbm

    @property
    def gain_db(self) -> FloatArray:
        """Mean channel gain per antenna [clients], in dB."""
        gain = self._snr_db + self._noise_dbm[self.cell_of] - DEFAULT_DBM
        return read_only(gain + self.path_gain_db)

    @property
    def mean_snr_db(self) -> FloatArray:
        """Mean received SNR per antenna in the whole band of the cell [clients], in dB."""
        return read_only(self.snr_db + self.path_gain_db)

    @property
    def battery_joules(self) -> FloatArray | None:
        """Energy of each client's full battery [clients], inf on mains; None without batteries.

        It is the column ``battery_joules`` of the network's devices.
        """
        if self.devices is None:
            return None
        values = self.devices.by_client("battery_joules")
        return None if values is None else read_only(np.nan_to_num(values.whole(), nan=np.inf))

    def sending_watts(self, power: ArrayLike = 1.0) -> FloatArray:
        """Watts that each client draws while it sends, [..., clients].

        Args:
            power: [..., clients], fraction of its maximum power that it radiates on average. A
                device with ``transmit_watts`` draws these at any power.
        """
        radiated = np.asarray(power) * self.transmit_power_w
        drawn = None if self.devices is None else self.devices.by_client("transmit_watts")
        if drawn is None:
            return np.asarray(radiated)
        watts = drawn.whole()
        return np.where(np.isnan(watts), radiated, watts)

    def at_step(self, samples: float, flops: Sequence[float] | None = None) -> Self:
        """This network for steps of another model or batch size; of use with devices only.

        Args:
            samples: samples of a step.
            flops: FLOPs of a step of the full model in fully connected layers, in convolutions and
                in the rest; None for those of ``devices``.
        """
        if self.devices is None:
            return self
        return self.with_devices(self.devices.at_step(samples, flops))

    @checked()
    def with_devices(self, devices: DeviceTable) -> Self:
        """This network with devices in place of clocks.

        Args:
            devices: see :class:`Network`.
        """
        values: dict[str, Any] = {"cpu_hz": None, "switched_capacitance": None, "devices": devices}
        return replace(self, cycles_per_step=STEP_CYCLES, **values)

    def check_clocks(self) -> None:
        """Raise unless clients have clocks that a solver can choose, with energy kappa f^2.

        Raises:
            ValueError: the network has devices, whose joules are measured.
        """
        if self.devices is not None:
            raise ValueError(
                "the network has devices with measured joules, and this solver chooses clocks at "
                "kappa f^2 joules per cycle: give cpu_hz in place of devices, or choose a solver "
                "of bands alone."
            )

    def of(self, clients: ArrayLike) -> Self:
        """The sub-network of the given clients; the cost of a draw is proportional to its size.

        The clients keep their cells and channels: a draw of the sub-network equals, bit for bit,
        these clients' rows of the draw of the whole network.

        Args:
            clients: [clients], a subset of ``numbers`` in their order.

        Raises:
            ValueError: a client is not in this network, or the clients are out of order.
        """
        by_number = self._order is None
        numbers = (increasing if by_number else checked_rows)("clients", clients)
        rows = self.places(numbers)
        unknown = rows >= self.clients
        if self.part is not None and not unknown.any():
            unknown = self.part[rows] != numbers
        if unknown.any():
            raise ValueError(
                f"clients contains {numbers[unknown][0]}: choose from the network's client "
                "indices, Network.numbers."
            )
        if not by_number and (np.diff(rows) < 1).any():
            raise ValueError(
                f"clients is {shown(clients)}: list each client once, in the order of "
                "Network.numbers."
            )
        if len(numbers) == self.clients:
            return self
        return replace(self, part=numbers, **self._of_rows(rows))

    def _of_rows(self, rows: IntArray) -> dict[str, Any]:
        """Values of some clients by field."""
        by_client = {name: vars(self)[name].at(rows) for name in BY_CLIENT}
        return by_client | {"devices": some(self.devices, rows)}

    def regrouped(self, rows: IntArray, cells: IntArray, sizes: IntArray) -> Self:
        """A network whose cells are groups of clients of this one, without interference.

        Each group has the band and the noise of its clients' cell. A client can be in several
        groups.

        Args:
            rows: [clients], clients of the groups, group by group, from 0 to ``clients`` - 1.
            cells: [groups], the cell of each group's clients.
            sizes: [groups], number of clients of each group.
        """
        by_client = self._of_rows(rows)
        by_client["cell_of"] = np.repeat(np.arange(len(cells)), sizes)
        by_cell: dict[str, Any] = {"_noise_dbm": self._noise_dbm[cells]}
        return replace(
            self,
            part=np.arange(len(rows)),
            bandwidth_hz=self.bandwidth_hz[cells],
            interference=None,
            interference_watts=None,
            placement=None,
            **by_cell,
            **by_client,
        )
