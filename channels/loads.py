"""What a plan asks of clients, and what it costs them: loads and services."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from channels.arguments import checked
from channels.arrays import BoolArray, ComplexArray, FloatArray, IntArray
from channels.network import ChannelDraw, Network
from channels.summaries import span
from channels.validation import LEAST, MOST, common_shape

BITS_PER_ELEMENT = 32
"""Bits per element (one number), in digital and analog transmission."""


@dataclass(frozen=True, eq=False, init=False)
class Load:
    """What each client does in a local phase: CPU cycles, then elements to send.

    Leading axes index rounds, or alternatives such as submodel sizes; they broadcast with the
    blocks of the channel draw. One number applies to all clients.

    >>> import channels
    >>> network = channels.section_vi_c(cells=2, clients=4, stream=channels.Stream(1))
    >>> draw = network.draw(channels.Stream(1, ("channel",)))
    >>> load = channels.Load(cycles=1e6, elements=[1000.0, 2000.0, 1000.0, 500.0])
    >>> channels.EqualBands().serve(load, draw).seconds.shape
    (4,)

    Args:
        cycles: [..., clients], CPU cycles, >= 0.
        elements: [..., clients], elements of one vector that a client sends, >= 0.
        vectors: [..., clients], number of vectors that a client sends, one after another, >= 0.
        jointly: [..., clients], elements of one vector that at least one client of the cell sends:
            over the air, all clients of the cell take the time of these. None for ``elements``.
        weights: [..., clients], relative weights in the cell's mean, which precoders apply over
            the air; None for equal weights.
        start_seconds: [..., clients], seconds until local training starts, e.g. of the download.
        after_seconds: [..., clients], seconds that follow the local phase, e.g. of the backhaul.
        deadline_seconds: [..., clients], when the phase must have ended with what follows it; inf
            for no deadline. Only an access that decides when a cell ends uses these two.
        pilot_symbols: [..., clients], pilot symbols that a client sends over the whole band before
            its local training, >= 0: the clients of a cell send theirs in turn, after
            ``start_seconds``, and all wait for the last one.
        bits_per_element: [..., clients], mean bits of an element on digital uplinks, > 0: below 32
            where updates are compressed, with their scales and indices. Over the air, elements are
            analog numbers, and it has no effect.
    """

    cycles: FloatArray
    elements: FloatArray
    vectors: FloatArray
    jointly: FloatArray
    weights: FloatArray | None
    start_seconds: FloatArray
    after_seconds: FloatArray
    deadline_seconds: FloatArray
    pilot_symbols: FloatArray
    bits_per_element: FloatArray

    def __repr__(self) -> str:
        """One line."""
        return (
            f"<Load: shape {list(self.shape)}, {span(self.cycles, 'cycles')}, "
            f"{span(self.bits, 'bits')}>"
        )

    @checked()
    def __init__(
        self,
        cycles: ArrayLike = 0.0,
        elements: ArrayLike = 0.0,
        *,
        vectors: ArrayLike = 1.0,
        jointly: ArrayLike | None = None,
        weights: ArrayLike | None = None,
        start_seconds: ArrayLike = 0.0,
        after_seconds: ArrayLike = 0.0,
        deadline_seconds: ArrayLike = np.inf,
        pilot_symbols: ArrayLike = 0.0,
        bits_per_element: ArrayLike = BITS_PER_ELEMENT,
    ) -> None:
        values = {
            "cycles": usual_amounts("cycles", cycles),
            "elements": usual_amounts("elements", elements),
            "vectors": usual_amounts("vectors", vectors),
            "jointly": usual_amounts("jointly", elements if jointly is None else jointly),
            "weights": None if weights is None else usual_amounts("weights", weights),
            "start_seconds": usual_amounts("start_seconds", start_seconds),
            "after_seconds": usual_amounts("after_seconds", after_seconds),
            "deadline_seconds": _ends(deadline_seconds),
            "pilot_symbols": usual_amounts("pilot_symbols", pilot_symbols),
            "bits_per_element": usual_amounts("bits_per_element", bits_per_element),
        }
        for name, value in values.items():
            object.__setattr__(self, name, value)
        self._check_shapes()

    def _check_shapes(self) -> None:
        shapes = self._shapes
        common_shape(shapes, shapes.values(), "one number or [..., clients] arrays that broadcast")
        if (self.bits_per_element == 0).any():
            raise ValueError("bits_per_element contains 0.0: give finite numbers > 0.")

    @property
    def _shapes(self) -> dict[str, tuple[int, ...]]:
        """Shape of each field that is given."""
        return {name: value.shape for name, value in vars(self).items() if value is not None}

    def check_fits(self, draw: ChannelDraw) -> None:
        """Raise unless this is a load of the clients and blocks of ``draw``.

        Raises:
            ValueError: the number of clients differs, or the leading axes do not broadcast.
        """
        clients, blocks = draw.network.clients, draw.h.shape[:-2]
        for name, shape in self._shapes.items():
            if shape and shape[-1] not in {1, clients}:
                raise ValueError(
                    f"{name} of the load has shape {shape}, and the draw has {clients} clients: "
                    "give one number, or [..., clients] for the clients of the draw."
                )
        leading = {f"{name} of the load": shape[:-1] for name, shape in self._shapes.items()}
        leading["blocks of the draw"] = blocks
        common_shape(leading, leading.values(), "leading axes that broadcast")

    def of_rows(self, rows: IntArray) -> Load:
        """The load of some clients.

        Args:
            rows: their places on the last axis; values that apply to all clients do not change.
        """

        def some(values: FloatArray) -> FloatArray:
            by_client = values.ndim > 0 and values.shape[-1] > 1
            return np.asarray(values[..., rows]) if by_client else values

        weights = None if self.weights is None else some(self.weights)
        by_name: dict[str, Any] = {
            name: some(getattr(self, name)) for name in self._shapes if name != "weights"
        }
        return replace(self, weights=weights, **by_name)

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape [..., clients] of the load; () if one number applies to all clients."""
        return np.broadcast_shapes(*self._shapes.values())

    @property
    def bits(self) -> FloatArray:
        """Bits that each client sends [..., clients]."""
        return self.bits_per_element * self.vectors * self.elements

    def begin_seconds(self, network: Network) -> FloatArray:
        """Seconds until local training begins, [..., clients]: after the pilots of the cell."""
        if not self.pilot_symbols.any():
            return self.start_seconds
        symbols = np.broadcast_to(
            self.pilot_symbols, (*self.pilot_symbols.shape[:-1], network.clients)
        )
        turns = network.over_cells(np.add, symbols)[..., network.cell_of]
        return np.asarray(self.start_seconds + turns / network.bandwidth_hz[network.cell_of])

    def ready_seconds(self, network: Network) -> FloatArray:
        """Seconds until each client has trained at its CPU speed and can send, [..., clients]."""
        return np.asarray(self.begin_seconds(network) + self.cycles / network.cpu_hz)

    def compute_joules(self, network: Network) -> FloatArray:
        """Energy until clients can send, [..., clients]: pilots, kappa F_i^2 joules per cycle."""
        training = network.switched_capacitance * network.cpu_hz**2 * self.cycles
        return np.asarray(self.pilot_joules(network) + training)

    def pilot_joules(self, network: Network) -> FloatArray:
        """Energy of each client's pilots at full power, [..., clients]."""
        if not self.pilot_symbols.any():
            return np.zeros(())
        seconds = self.pilot_symbols / network.bandwidth_hz[network.cell_of]
        return np.asarray(network.sending_watts() * seconds)


@dataclass(frozen=True, eq=False)
class Decision:
    """What an access decided; None where there was nothing to decide.

    >>> import channels
    >>> decision = channels.Decision(bands_hz=[1e6, 2e6])
    >>> decision.bands_hz, decision.order
    ([1000000.0, 2000000.0], None)

    Args:
        bands_hz: [..., clients], band of each client.
        powers_w: [..., clients], mean power of each client while it sends.
        cpu_hz: [..., clients], clock of each client.
        order: [..., clients], place of each client in its cell's order of sending, from 0.
        beamformers: [..., cells, antennas], receive beamformer of each cell.
    """

    bands_hz: FloatArray | None = None
    powers_w: FloatArray | None = None
    cpu_hz: FloatArray | None = None
    order: FloatArray | None = None
    beamformers: ComplexArray | None = None


NOTHING_DECIDED = Decision()


@dataclass(frozen=True, eq=False)
class Service:
    """What serving a load costs.

    >>> import channels
    >>> network = channels.section_vi_c(cells=2, clients=4, stream=channels.Stream(1))
    >>> draw = network.draw(channels.Stream(1, ("channel",)))
    >>> service = channels.EqualSlots().serve(channels.Load(1e6, 1000.0), draw)
    >>> service.arrived.tolist()
    [True, True, True, True]

    Args:
        seconds: [..., clients], seconds from the start of the local phase until a client's update
            has arrived; inf if it never does.
        joules: [..., clients], energy for training and sending.
        arrived: [..., clients] boolean, whether the update arrives.
        decision: what the access decided.
        transmissions: [..., clients], how often each client sends its update; None for once.
        airtime_seconds: [..., clients], seconds in which each client sends; None if it sends from
            the end of its training until its update has arrived.
    """

    seconds: FloatArray
    joules: FloatArray
    arrived: BoolArray
    decision: Decision = NOTHING_DECIDED
    transmissions: FloatArray | None = None
    airtime_seconds: FloatArray | None = None

    def __repr__(self) -> str:
        """One line."""
        arrived = int(np.count_nonzero(self.arrived))
        return (
            f"<Service: shape {list(np.shape(self.seconds))}, {span(self.seconds, 's')}, "
            f"{span(self.joules, 'J')}, {arrived} of {np.size(self.arrived)} arrive>"
        )


@dataclass(frozen=True, eq=False)
class Rates:
    """Progress of the clients that upload at the moment.

    >>> import numpy as np
    >>> import channels
    >>> channels.EqualSlots().rates(np.array([3.0, 3.0]), 1e6).duty.tolist()
    [0.5, 0.5]

    Args:
        bps: [uploading], bits per second of each; 0 for no progress.
        duty: [uploading], fraction of the time in which each transmits at its power.
    """

    bps: FloatArray
    duty: FloatArray


def _ends(deadline_seconds: ArrayLike) -> FloatArray:
    """Deadlines as float64, > 0."""
    ends = np.asarray(deadline_seconds, dtype=np.float64)
    if not (ends > 0).all():
        raise ValueError(
            f"deadline_seconds contains {ends[~(ends > 0)].flat[0]}: give seconds > 0, or inf "
            "for no deadline."
        )
    return ends


def amounts(name: str, values: ArrayLike) -> FloatArray:
    """``values`` as float64, finite and >= 0."""
    array = np.asarray(values, dtype=np.float64)
    bad = ~(np.isfinite(array) & (array >= 0))
    if bad.any():
        raise ValueError(f"{name} contains {array[bad].flat[0]}: give finite numbers >= 0.")
    return array


def usual_amounts(name: str, values: ArrayLike) -> FloatArray:
    """As :func:`amounts`, and neither too small nor too large to compute with."""
    array = amounts(name, values)
    bad = (array != 0) & ~((array >= LEAST) & (array <= MOST))
    if bad.any():
        raise ValueError(
            f"{name} contains {array[bad].flat[0]}: give 0 or finite numbers from {LEAST:g} to "
            f"{MOST:g}."
        )
    return array
