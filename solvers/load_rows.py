"""The clients of a load by cell, as solvers take them, and back."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any, ParamSpec, Protocol, TypeVar, overload

import numpy as np

from channels.arrays import BoolArray, ComplexArray, FloatArray
from channels.loads import Load
from channels.network import ChannelDraw, Network

Values = TypeVar("Values", FloatArray, ComplexArray)
P = ParamSpec("P")
R = TypeVar("R", covariant=True)

_ARRAYS: Mapping[str, Callable[[Load, ChannelDraw], FloatArray]] = {
    "bits": lambda load, draw: load.bits,
    "bits_per_unit": lambda load, draw: load.bits,
    "cycles": lambda load, draw: load.cycles,
    "cycles_per_unit": lambda load, draw: load.cycles,
    "compute_seconds": lambda load, draw: load.ready_seconds(draw.network),
    "seconds_per_unit": lambda load, draw: load.ready_seconds(draw.network),
    "snr_hz": lambda load, draw: draw.snr_hz,
    "gain_per_noise": lambda load, draw: draw.gain_per_noise,
    "max_power_watts": lambda load, draw: draw.network.transmit_power_w,
    "max_cpu_hz": lambda load, draw: draw.network.cpu_hz,
    "kappa": lambda load, draw: draw.network.switched_capacitance,
}
"""Arguments [..., clients] that a load and a channel draw give."""


class TakesLoad(Protocol[P, R]):
    """A solver that takes a load and a channel draw, or arrays."""

    @overload
    def __call__(self, load: Load, draw: ChannelDraw, /, *args: Any, **others: Any) -> R: ...
    @overload
    def __call__(self, *args: P.args, **others: P.kwargs) -> R: ...


def takes_load(solve: Callable[P, R]) -> TakesLoad[P, R]:
    """Let a solver take a ``Load`` and the ``ChannelDraw`` of its clients in place of arrays.

    They give ``bandwidth_hz`` and the solver's arguments in ``_ARRAYS``, one problem or row per
    cell; other arguments follow in their order.
    """
    names = list(inspect.signature(solve).parameters)

    @wraps(solve)
    def taking(*args: Any, **others: Any) -> R:
        if not args or not isinstance(args[0], Load):
            return solve(*args, **others)
        load, draw = args[0], args[1] if len(args) > 1 else None
        if not isinstance(draw, ChannelDraw):
            raise TypeError(
                f"{solve.__name__} got a Load: give the ChannelDraw of its clients after it."
            )
        arrays = load_arrays(names, load, draw)
        if twice := sorted(arrays.keys() & others.keys()):
            raise TypeError(
                f"{twice[0]} is given twice: leave it out, as the load and the draw give it."
            )
        names_left = [name for name in names if name not in arrays | others]
        rest = dict(zip(names_left, args[2:], strict=False))
        if len(rest) < len(args) - 2:
            raise TypeError(f"{solve.__name__} got {len(args)} arguments, which are too many.")
        return solve(**arrays, **rest, **others)  # type: ignore[call-arg]

    return taking


def load_arrays(names: list[str], load: Load, draw: ChannelDraw) -> dict[str, Any]:
    """The arguments that a load and a draw give to a solver with parameters of these names."""
    load.check_fits(draw)
    draw.check_flat("this solver")
    draw = draw.in_bands()
    names_of_seconds = ("after_seconds", "start_seconds", "pilot_symbols")
    unused = {name: getattr(load, name).any() for name in names_of_seconds}
    if {"compute_seconds", "seconds_per_unit"} & set(names):
        del unused["start_seconds"], unused["pilot_symbols"]  # part of these
    unused["deadline_seconds"] = np.isfinite(load.deadline_seconds).any()
    for name, present in unused.items():
        if present:
            raise ValueError(
                f"{name} of the load has no effect on this solver: leave it out, or serve the load "
                "by an access, e.g. solvers.EnergyWithinDeadline."
            )
    network = draw.network
    if "kappa" in names:
        network.check_clocks()
    arrays = {name: _ARRAYS[name](load, draw) for name in names if name in _ARRAYS}
    rows = {name: cell_rows(network, values) for name, values in arrays.items()}
    return rows | {"bandwidth_hz": network.bandwidth_hz}


def by_client(network: Network, values: Values) -> Values:
    """Values [..., clients] of [..., cells, clients of the largest cell]; see ``by_cell``."""
    if _even(network):
        return values.reshape(*values.shape[:-2], network.clients)
    places = np.arange(network.clients) - network.cell_starts[network.cell_of]
    listed: Values = values[..., network.cell_of, places]
    return listed


def cell_rows(network: Network, values: FloatArray) -> FloatArray:
    """Real values [..., clients], or one number, by cell; places without a client have 0."""
    lead = np.shape(values)[:-1]
    if not network.clients:  # solvers want a place for at least one
        return np.zeros((*lead, network.cells, 1))
    values = np.broadcast_to(values, (*lead, network.clients)).real
    if _even(network):  # without looking for the clients of each cell
        return np.array(values).reshape(*lead, network.cells, -1)
    return np.asarray(network.by_cell(values))


def _even(network: Network) -> bool:
    """Whether all cells have as many clients."""
    sizes = network.cell_sizes
    return bool(network.clients) and bool((sizes == sizes[0]).all())


def channel_rows(draw: ChannelDraw) -> ComplexArray:
    """Channels [..., cells, clients of the largest cell, antennas]; 1 where there is no client."""
    network = draw.network
    if not network.clients:
        return np.ones((*draw.h.shape[:-2], network.cells, 1, network.antennas), np.complex128)
    return np.asarray(network.by_cell(draw.h, fill=1.0), dtype=np.complex128)


def heard_bits(load: Load, draw: ChannelDraw) -> tuple[FloatArray, BoolArray]:
    """Bits of clients that can send, and which clients have bits and rate 0, [..., clients]."""
    draw.check_flat("a decision on bands")
    snr_hz = draw.snr_hz
    bits = np.broadcast_to(load.bits, np.broadcast_shapes(load.bits.shape, snr_hz.shape))
    stuck = (bits > 0) & (snr_hz == 0)
    return np.where(stuck, 0.0, bits), stuck
