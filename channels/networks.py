"""Many networks as arrays, e.g. drops of clients, which are built and priced together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace
from typing import Any, Self, overload

import numpy as np
from numpy.typing import ArrayLike

from channels.arguments import checked
from channels.arrays import FloatArray, IntArray
from channels.by_client import Listed
from channels.cells import read_only
from channels.decibels import (
    LARGEST_DB,
    check_without_gains,
    gains_in_range,
    noise_power_dbm,
    powers_in_range,
)
from channels.network import Network
from channels.network_values import DEFAULT_DBM, DEFAULT_POWER_W
from channels.placement import Placement
from channels.summaries import count_of
from channels.validation import checked_cells, in_range, shown

BY_CLIENT = ("cpu_hz", "transmit_power_w", "switched_capacitance", "path_gain_db", "_snr_db")
BY_CELL = ("bandwidth_hz", "_noise_dbm")
"""Fields of networks that are arrays here, by the meaning of their second axis."""
BY_NETWORK = ("clients_m", "distance_m", "line_of_sight", "path_loss_db", "shadowing_db")
"""Fields of a placement with a first axis of networks."""
OF_SNR = ("_snr_db", "path_gain_db")
"""Arguments that ``gain_db`` replaces."""
ALONE = ("interference", "part")
"""Arguments that networks built together cannot have."""


class Networks(Sequence[Network]):
    """Networks of the same clients and cells, as arrays [networks, clients].

    A sequence: ``networks[k]`` is a :class:`Network`, and ``wirelessfl.price`` takes all of them.
    They share all other arguments of :class:`Network`. Give arrays, such as gains or the path
    losses at distances [networks, clients]; or build them from a list of streams, by
    :func:`placed_network`, :func:`umi`, :func:`uma` or :func:`section_vi_c`, or from single
    networks, by :meth:`stack`.

    >>> import numpy as np
    >>> import channels
    >>> metres = np.array([[30.0, 90.0], [50.0, 60.0], [20.0, 80.0]])
    >>> drops = channels.Networks([0, 0], gain_db=-channels.path_loss_db(metres), cpu_hz=1e9)
    >>> len(drops), bool(drops[2].gain_db[0] > drops[2].gain_db[1])
    (3, True)

    Args:
        cell_of: [clients], the cell of each client: 0, 1, ... in increasing order, without gaps.
        cpu_hz: F_i [networks, clients], [clients] or one number; None with ``devices``.
        gain_db: [networks, clients] or [clients], mean channel gains in dB.
        transmit_power_w: P_i [networks, clients], [clients] or one number.
        bandwidth_hz: B [networks, cells], [cells] or one number.
        switched_capacitance: kappa [networks, clients], [clients] or one number; None for 1e-28.
        path_gain_db: see :meth:`from_snr`; ignored with ``gain_db``, as in a single network.
        placement: where the gains come from; its arrays of clients are [networks, clients, ...].
            None if the gains are given.
        others: further arguments of :class:`Network`, by name; not ``interference``.

    Raises:
        ValueError: no argument has an axis of networks, or a value is out of range.
    """

    @checked()
    def __init__(
        self,
        cell_of: ArrayLike,
        *,
        cpu_hz: ArrayLike | None = None,
        gain_db: ArrayLike | None = None,
        transmit_power_w: ArrayLike = DEFAULT_POWER_W,
        bandwidth_hz: ArrayLike = 9e6,
        switched_capacitance: ArrayLike | None = None,
        path_gain_db: ArrayLike = 0.0,
        placement: Placement | None = None,
        _snr_db: ArrayLike | None = None,
        **others: Any,
    ) -> None:
        arguments: dict[str, Any] = {
            "gain_db": gain_db,
            "cpu_hz": cpu_hz,
            "transmit_power_w": transmit_power_w,
            "bandwidth_hz": bandwidth_hz,
            "switched_capacitance": switched_capacitance,
            "path_gain_db": path_gain_db,
            "_snr_db": _snr_db,
        }
        for name in ALONE:
            if others.get(name) is not None:
                raise TypeError(f"{name} is given for several networks: build them one by one.")
        cells = checked_cells(cell_of)
        arrays = {
            name: _in_range(name, np.asarray(values), cells)
            for name, values in arguments.items()
            if np.ndim(values) > 1
        }
        counts = {name.strip("_"): len(values) for name, values in arrays.items()}
        if not counts:
            raise ValueError(
                "no argument has an axis of networks: give gain_db, cpu_hz or others as "
                "[networks, clients]."
            )
        if len({*counts.values()}) > 1:
            sizes = ", ".join(f"{name} has {count}" for name, count in counts.items())
            raise ValueError(f"the numbers of networks differ: {sizes}. Give the same number.")
        self._count = next(iter(counts.values()))
        first = arguments | {name: values[0] for name, values in arrays.items()}
        at_first = None if placement is None else _placed_at(placement, 0)
        network = Network(cell_of, **first, placement=at_first, **others)
        if "bandwidth_hz" in arrays:
            arrays["_noise_dbm"] = noise_power_dbm(
                arrays["bandwidth_hz"], network.noise_figure_db, network.noise_dbm_per_hz
            )
        if gain_db is not None:  # which replaces them
            arrays = {name: v for name, v in arrays.items() if name not in OF_SNR}
        if gain_db is not None and {"gain_db", "bandwidth_hz"} & arrays.keys():
            gain = arrays.pop("gain_db", np.broadcast_to(first["gain_db"], (1, network.clients)))
            noise = arrays.get("_noise_dbm", network.noise_dbm[None])
            arrays["_snr_db"] = gain + DEFAULT_DBM - noise[:, network.cell_of]
            if placement is not None:
                placement.check_gains(np.broadcast_to(gain, (self._count, network.clients)))
        self._set(network, arrays, placement)

    def _set(
        self, first: Network, arrays: dict[str, FloatArray], placement: Placement | None
    ) -> None:
        """Keep the values of all networks.

        Args:
            first: the first network, which has what the networks share.
            arrays: values that differ, by field, [networks, clients or cells].
            placement: see :class:`Networks`.
        """
        self._shared = {field.name: vars(first)[field.name] for field in fields(first)}
        self._arrays = {name: read_only(values) for name, values in arrays.items()}
        self.placement = placement

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
        """Networks whose gains give these SNRs at 0.1 W, see :meth:`Network.from_snr`.

        Args:
            cell_of: [clients], the cell of each client.
            cpu_hz: F_i [networks, clients], [clients] or one number; None with ``devices``.
            snr_db: [networks, clients], [clients] or one number, in dB.
            path_gain_db: mean power of a channel in dB, with the same shapes.
            others: further arguments, by name; not ``gain_db``.
        """
        check_without_gains(others)
        if np.ndim(snr_db) < 2:  # the same in all networks
            snr_db = in_range("snr_db", snr_db, ("clients", np.size(cell_of)), limit=LARGEST_DB)
        return cls(cell_of, cpu_hz=cpu_hz, path_gain_db=path_gain_db, _snr_db=snr_db, **others)

    @classmethod
    def stack(cls, networks: Sequence[Network]) -> Self:
        """Single networks of the same clients and cells, with arrays of their values.

        >>> import channels
        >>> drops = [channels.umi(1, 3, stream=channels.Stream(seed)) for seed in range(2)]
        >>> channels.Networks.stack(drops).gain_db.shape
        (2, 3)

        Args:
            networks: the networks, which may differ in gains, powers, bands and CPUs; they have no
                ``interference``.

        Raises:
            ValueError: they differ in something else.
        """
        if not isinstance(networks, Sequence):
            raise TypeError(f"networks is {shown(networks)}: give a list of networks.")
        if not networks:
            raise ValueError("networks is empty: give at least one network.")
        for number, network in enumerate(networks):
            if not isinstance(network, Network):
                raise TypeError(f"networks[{number}] is {shown(network)}: give a Network.")
            _check_shared(networks[0], network, number)
        many = cls.__new__(cls)
        many._count, first = len(networks), networks[0]
        arrays = {
            name: np.stack([np.asarray(getattr(network, name)) for network in networks])
            for name in (*BY_CLIENT, *BY_CELL)
            if first.devices is None or name not in ("cpu_hz", "switched_capacitance")
        }
        placements = [network.placement for network in networks if network.placement is not None]
        placement = None
        if placements:
            stacked: dict[str, Any] = {
                name: np.stack([getattr(one, name) for one in placements])
                for name in BY_NETWORK
                if getattr(placements[0], name) is not None
            }
            placement = replace(placements[0], **stacked)
        many._set(first, arrays, placement)
        return many

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, place: int) -> Network: ...
    @overload
    def __getitem__(self, place: slice) -> list[Network]: ...
    def __getitem__(self, place: int | slice) -> Network | list[Network]:
        """The network at a place, or a list of networks; values are views of the arrays."""
        if isinstance(place, slice):
            return [self[number] for number in range(self._count)[place]]
        try:
            number = range(self._count)[place]
        except IndexError:
            raise IndexError(
                f"networks[{place}] does not exist: there are {self._count}, from 0."
            ) from None
        except TypeError:
            raise TypeError(f"networks[{shown(place)}]: give an integer or a slice.") from None
        network = object.__new__(Network)  # the values have been checked
        values = vars(network)
        values.update(self._shared)
        for name, array in self._arrays.items():
            values[name] = array[number] if name in BY_CELL else Listed(array[number])
        if self.placement is not None:
            values["placement"] = _placed_at(self.placement, number)
        return network

    def __repr__(self) -> str:
        """One line."""
        return f"<Networks: {count_of(self._count, 'network')} of {self[0]._size}>"

    @property
    def clients(self) -> int:
        """Number of clients of each network."""
        return int(self._shared["_ends"][-1])

    @property
    def cells(self) -> int:
        """Number of cells of each network."""
        return len(self._shared["_ends"])

    @property
    def cell_of(self) -> IntArray:
        """The cell of each client, [clients]."""
        return np.asarray(self._shared["cell_of"].whole())

    @property
    def cpu_hz(self) -> FloatArray:
        """CPU cycles per second, [networks, clients]."""
        return self._of("cpu_hz")

    @property
    def transmit_power_w(self) -> FloatArray:
        """Transmit powers in watts, [networks, clients]."""
        return self._of("transmit_power_w")

    @property
    def bandwidth_hz(self) -> FloatArray:
        """Bands, [networks, cells]."""
        return self._of("bandwidth_hz")

    @property
    def gain_db(self) -> FloatArray:
        """Mean channel gains per antenna in dB, [networks, clients]."""
        gain = self._of("_snr_db") + self._of("_noise_dbm")[:, self.cell_of] - DEFAULT_DBM
        return read_only(gain + self._of("path_gain_db"))

    def _of(self, name: str) -> FloatArray:
        """Values of a field, [networks, clients or cells], read-only."""
        if name not in self._arrays:
            shared = self._shared[name]
            values = shared if name in BY_CELL else shared.whole()
            return np.broadcast_to(values, (self._count, len(values)))
        return self._arrays[name]


def _in_range(name: str, values: FloatArray, cell_of: IntArray) -> FloatArray:
    """An argument [networks, clients or cells], checked like that of a single network."""
    unit, size = ("cell", int(cell_of[-1]) + 1) if name in BY_CELL else ("client", len(cell_of))
    if values.ndim != 2 or not len(values) or values.shape[1] != size:
        raise ValueError(
            f"{name.strip('_')} has shape {values.shape}: give [networks, {unit}s], at least one "
            f"network of {count_of(size, unit)}."
        )
    axis = f"networks, {unit}s", values.shape
    if name == "gain_db":
        return gains_in_range(values, axis)
    if name == "transmit_power_w":
        return powers_in_range(values, axis)
    if name in OF_SNR:
        return in_range(name.strip("_"), values, axis, limit=LARGEST_DB)
    if name == "switched_capacitance":
        return in_range(name, values, axis, min_value=0)
    return in_range(name, values, axis, above=0)


def _placed_at(placement: Placement, number: int) -> Placement:
    """The placement of one of several networks."""
    terms: dict[str, Any] = {name: getattr(placement, name) for name in BY_NETWORK}
    some: dict[str, Any] = {
        name: None if values is None else values[number] for name, values in terms.items()
    }
    return Placement(placement.base_stations_m, **some, antenna_gain_db=placement.antenna_gain_db)


def _check_shared(first: Network, network: Network, number: int) -> None:
    """Raise unless a network has what networks in arrays share with the first one."""
    if network.interference is not None or network.part is not None:
        name = "part" if network.interference is None else "interference"
        raise ValueError(f"networks[{number}] has {name}: price such networks as a list.")
    apart = {field.name for field in fields(first)} - {*BY_CLIENT, *BY_CELL, "placement", "cell_of"}
    shared = {name: (getattr(first, name), getattr(network, name)) for name in apart}
    if (first.placement is None) != (network.placement is None):
        shared["placement"] = first.placement, network.placement
    elif first.placement is not None and network.placement is not None:
        for name in ("base_stations_m", "antenna_gain_db"):
            shared[f"placement.{name}"] = (
                getattr(first.placement, name),
                getattr(network.placement, name),
            )
    for name, (one, other) in sorted(shared.items()):
        if one is not other and not np.array_equal(one, other):
            different = "other clients per cell" if name == "_ends" else f"another {name}"
            raise ValueError(
                f"networks[{number}] has {different} than networks[0]: price such networks as a "
                "list."
            )
