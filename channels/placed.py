"""Networks from positions: distance, line of sight, path loss and shadowing give the gains."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Literal, overload

import numpy as np
from numpy.typing import ArrayLike

from channels.arguments import checked
from channels.arrays import IntArray
from channels.association import PLACED, Association
from channels.decibels import gains_in_range
from channels.devices import devices_of
from channels.doppler import check_block_seconds
from channels.drops import TOGETHER, drops
from channels.interference import ActiveInterference, Interference, sorted_watts
from channels.layouts import Layout, Positions
from channels.layouts.grid import GridLayout
from channels.layouts.layout import bands_in_turn
from channels.mobility import Mobility, Motion
from channels.moving import Moving, MovingLinks
from channels.network import Network
from channels.networks import Networks
from channels.path_loss import PathLoss
from channels.path_loss.path_loss import check_setting
from channels.placed_links import PlacedLinks
from channels.placement import Placement
from channels.streams import Stream, StreamOrStreams
from channels.validation import shown

DERIVED = ("cell_of", "gain_db", "snr_db", "path_gain_db", "interference", "placement", "part")
"""Arguments of a network that follow from positions."""
Interferers = Literal["one", "active"]
Handover = Literal["none", "strongest"]
BY_CLIENT = ("cpu_hz", "transmit_power_w", "switched_capacitance")
BY_NETWORK = (*BY_CLIENT, "bandwidth_hz")
"""Arguments that can have a first axis of networks."""
ALONE = ("reuse_factor", "mobility")
"""Arguments that networks of a list of streams cannot have: each has links of its own."""
LARGEST_ANTENNA_DB = 60.0


@overload
def placed_network(
    layout: Layout | Positions,
    path_loss: PathLoss,
    *,
    cells: int | None = None,
    clients: int | None = None,
    stream: Stream,
    cpu_hz: ArrayLike | None = None,
    **others: Any,
) -> Network: ...
@overload
def placed_network(
    layout: Layout | Positions,
    path_loss: PathLoss,
    *,
    cells: int | None = None,
    clients: int | None = None,
    stream: Sequence[Stream],
    cpu_hz: ArrayLike | None = None,
    **others: Any,
) -> Networks: ...
@checked()
def placed_network(
    layout: Layout | Positions,
    path_loss: PathLoss,
    *,
    cells: int | None = None,
    clients: int | None = None,
    stream: StreamOrStreams,
    cpu_hz: ArrayLike | None = None,
    antenna_gain_db: float = 0.0,
    reuse_factor: int | None = None,
    interferers: Interferers = "one",
    association: Association = PLACED,
    mobility: Mobility | None = None,
    block_seconds: float = 1.0,
    handover: Handover = "none",
    **others: Any,
) -> Network | Networks:
    """A network whose gains follow from positions, with the terms kept in its ``placement``.

    The gain of a client is ``antenna_gain_db`` minus path loss and shadowing. Whether a link has a
    line of sight, and its shadowing, are drawn once per client and base station, independently of
    each other and of other links. They depend only on the stream and the indices of both ends.

    >>> import channels
    >>> network = channels.placed_network(
    ...     channels.Ring(100.0),
    ...     channels.LogDistance(shadowing_db=0.0),
    ...     cells=1,
    ...     clients=3,
    ...     stream=channels.Stream(1),
    ...     cpu_hz=1e9,
    ... )
    >>> network.gain_db.round(1).tolist()
    [-90.5, -90.5, -90.5]

    Your own positions, with the path loss of 3GPP's urban micro cell:

    >>> metres = channels.Positions([[0, 0]], [[60, 80], [-30, 40], [0, 90]], cell_of=[0, 0, 0])
    >>> network = channels.placed_network(
    ...     metres, channels.Umi(), stream=channels.Stream(1), cpu_hz=[1e9, 2e9, 3e9]
    ... )
    >>> network.placement.distance_m.tolist()
    [100.0, 50.0, 90.0]

    Args:
        layout: positions of base stations and clients, or a rule that draws them.
        path_loss: path loss of all links.
        cells: number of cells; None if the layout has its own, as positions have.
        clients: total number of clients; None if the layout has its own, as positions have.
        stream: randomness of positions, lines of sight and shadowing; or a list of streams, for a
            network from each of them, which equals that of the stream alone. Networks with
            ``reuse_factor`` or ``mobility`` are built one by one, without a list.
        cpu_hz: [clients], CPU cycles per second; None with ``devices``. Like all values of clients,
            it is in the order in which the layout's clients were given; the network sorts clients
            by cell.
        antenna_gain_db: gain of the antenna elements of both ends together, within [-60, 60] dB.
        reuse_factor: number of bands that are reused over the cells, each of ``bandwidth_hz``;
            cells of the same band interfere, see :class:`Interference`. 1 if all cells share one
            band. On a hexagonal grid the pattern is regular, for 1, 3, 4, 7, ...; otherwise cells
            take bands in turn. None for no interference. A client of another cell outside the path
            loss's range is heard as at the closest distance in it.
        interferers: whose signals are heard in other cells: "one" random client of each cell, see
            :class:`Interference`, or all "active" ones, which take part in the block, see
            :class:`ActiveInterference`. "one" without ``reuse_factor``.
        association: the cell of each client: "placed" for that in which the layout placed it,
            "nearest" for the nearest base station, "strongest" for that of the largest mean gain;
            [clients] cells, in the order in which the layout's clients were given; or a function of
            the mean gains in dB [clients, cells] that returns them, e.g. with
            ``solvers.assign_cells``. Each cell needs a client. With a list of streams each cell
            must have as many clients in all networks: "placed" ensures it, and other rules may not,
            which raises ValueError; build these networks one by one.
        mobility: how clients move, :class:`RandomWaypoint` or :class:`PositionTrace`; None for
            clients that stand still. Gains and ``placement`` are those of block 0, and channels h
            of a block include the change of the mean gain since then.
        block_seconds: time from one block to the next, if clients move.
        handover: which cell serves a client that moves in a block, see :meth:`Network.served`:
            "none" for its own, which ``association`` chooses; "strongest" for that of the base
            station with the largest mean gain there. Draws of the network itself are of the
            clients' own cells.
        others: further arguments of :class:`Network`, by name. Of several networks, values of
            clients and cells can differ: [networks, clients], [networks, cells].

    Returns:
        A network; :class:`Networks` of a list of streams. Those on discs, hexagons and rings are
        drawn all at once if ``association`` is "placed"; others one by one.

    Raises:
        ValueError: a client is out of the path loss's range, or a value is out of range.
        TypeError: an argument has the wrong type, or follows from the positions.
    """
    if not isinstance(stream, Stream):
        settings: dict[str, Any] = {
            "antenna_gain_db": antenna_gain_db,
            "reuse_factor": reuse_factor,
            "interferers": interferers,
            "association": association,
            "mobility": mobility,
            "block_seconds": block_seconds,
            "handover": handover,
        }
        values = {"cpu_hz": cpu_hz, **others}
        return _of_streams(layout, path_loss, cells, clients, stream, settings, values)
    wrong = [name for name in DERIVED if name in others]
    if wrong:
        raise TypeError(f"{wrong[0]} follows from the positions: omit it.")
    if interferers not in ("one", "active"):
        raise ValueError(f'interferers is {interferers!r}: choose "one" or "active".')
    if interferers == "active" and reuse_factor is None:
        raise ValueError('interferers is "active", which needs reuse_factor: set it.')
    check_setting("antenna_gain_db", antenna_gain_db, -LARGEST_ANTENNA_DB, LARGEST_ANTENNA_DB, "dB")
    where = _placed(layout, cells, clients, stream.child("positions"), path_loss.range_m[0])
    motion, placed_as = None, where.given_as
    if handover not in ("none", "strongest"):
        raise ValueError(f'handover is {handover!r}: choose "none" or "strongest".')
    if handover != "none" and mobility is None:
        raise ValueError(f'handover is "{handover}", and clients stand still: give mobility.')
    if handover != "none" and len(where.base_stations_m) == 1:
        raise ValueError(f'handover is "{handover}", and there is one cell: give several cells.')
    if handover != "none" and reuse_factor is not None:
        raise ValueError(
            f'handover is "{handover}", and cells with reuse_factor={reuse_factor} hear the '
            "clients that were placed in other cells: omit one of them, or give "
            "interference_watts."
        )
    if mobility is not None:
        check_block_seconds(block_seconds)
        if interferers == "active":
            raise ValueError('interferers is "active", and clients move: choose "one".')
        motion = mobility.motion(
            where, layout, block_seconds, stream.child("mobility"), path_loss.range_m[0]
        )
        where = motion.where
        _check_heights(motion, path_loss)
    given = isinstance(layout, Positions) or where.given_as is not None
    links = PlacedLinks(where, path_loss, stream, given)
    if isinstance(association, str) and association == PLACED:
        loss, shadowing, sight = links.own()
        links_db = None if reuse_factor is None else links.losses()
    else:
        where, (loss, shadowing, sight), links_db = links.chosen(association, antenna_gain_db)
    number = len(where.base_stations_m)
    values = {
        name: sorted_by_cell(name, value, where.given_as, number)
        for name, value in {"cpu_hz": cpu_hz, **others}.items()
    }
    if where.interference_watts is not None:
        if values.get("interference_watts") is not None:
            raise ValueError(
                "interference_watts conflicts with that of the layout's clients: leave one out."
            )
        values["interference_watts"] = where.interference_watts
    placement = Placement(
        base_stations_m=where.base_stations_m,
        clients_m=where.clients_m,
        distance_m=where.distance_m,
        line_of_sight=sight,
        path_loss_db=loss,
        shadowing_db=shadowing,
        antenna_gain_db=float(antenna_gain_db),
    )
    gain = gains_in_range(antenna_gain_db - loss - shadowing, ("clients", len(loss)))
    interference = None
    if reuse_factor is not None and links_db is not None:
        bands = (
            layout.bands(number, reuse_factor)
            if isinstance(layout, Layout)
            else bands_in_turn(number, reuse_factor)
        )
        gain_db = antenna_gain_db - links_db
        ends = np.searchsorted(where.cell_of, np.arange(len(bands)), side="right")
        kind = ActiveInterference if interferers == "active" else Interference
        interference = kind(10 ** (gain_db / 10), ends, bands)
    network = Network(
        where.cell_of,
        gain_db=gain,
        interference=interference,
        placement=placement,
        **values,
    )
    if mobility is None or motion is None:
        return network
    drawn_as = where.given_as
    if placed_as is not None and drawn_as is not None:
        drawn_as = placed_as.argsort()[drawn_as]
    moving = MovingLinks(where, path_loss, stream, motion, drawn_as)
    if interference is not None:
        interference = replace(interference, moving=moving)
    carrier_ghz, stream = getattr(path_loss, "carrier_ghz", None), stream.child("mobility")
    fading = mobility.fading(network.fading, carrier_ghz, block_seconds, stream)
    fading = Moving(fading, moving, handover=handover == "strongest")
    return replace(network, fading=fading, interference=interference)


def _of_streams(
    layout: Layout | Positions,
    path_loss: PathLoss,
    cells: int | None,
    clients: int | None,
    streams: Sequence[Stream],
    settings: dict[str, Any],
    values: dict[str, Any],
) -> Networks:
    """Networks from several streams: as arrays if possible, or else one by one."""
    listed = streams_in(streams)
    for name in ALONE:
        if settings[name] is not None:
            raise ValueError(
                f"{name} is {shown(settings[name])}, and stream is a list: build the networks one "
                f"by one, or omit {name}."
            )
    for name in BY_NETWORK:
        if name in values and np.ndim(values[name]) == 2 and len(values[name]) != len(listed):
            raise ValueError(
                f"the numbers of networks differ: stream has {len(listed)}, {name} has "
                f"{len(values[name])}. Give the same number."
            )
    build = partial(placed_network, layout, path_loss, cells=cells, clients=clients, **settings)

    def built(number: int) -> Network:
        rows = {
            name: value[number] if name in BY_NETWORK and np.ndim(value) == 2 else value
            for name, value in values.items()
        }
        return build(stream=listed[number], **rows)

    first = built(0)  # it checks the arguments
    if (
        isinstance(layout, GridLayout)
        and type(layout) in TOGETHER
        and isinstance(settings["association"], str)
        and settings["association"] == PLACED
    ):
        gain_db = settings["antenna_gain_db"]
        return drops(layout, path_loss, cells, clients, listed, gain_db, **values)
    return Networks.stack([first, *map(built, range(1, len(listed)))])


def streams_in(stream: StreamOrStreams) -> list[Stream]:
    """The streams of one network or of several."""
    streams = [stream] if isinstance(stream, Stream) else stream
    if not isinstance(streams, Sequence) or not all(isinstance(one, Stream) for one in streams):
        raise TypeError(f"stream is {shown(stream)}: give a channels.Stream, or a list of them.")
    if not streams:
        raise ValueError("stream is an empty list: give at least one stream.")
    return list(streams)


def sorted_by_cell(name: str, value: Any, order: IntArray | None, cells: int) -> Any:
    """An argument of a network, with values of clients in its order.

    Args:
        name: name of the argument.
        value: its value; values of clients are in the order in which these were given.
        order: [clients], place of each client of the network in that order; None if it is the same.
        cells: number of cells.
    """
    if order is not None and name == "devices" and value is not None:
        return devices_of(value, len(order)).at(order)
    if order is not None and name == "interference_watts":
        return sorted_watts(value, order, cells)
    if order is None or name not in BY_CLIENT or np.shape(value) != order.shape:
        return value
    return np.asarray(value)[order]


def _check_heights(motion: Motion, path_loss: PathLoss) -> None:
    """Raise unless the path loss has the heights between which clients move."""
    stations = motion.where.base_stations_m
    heights = np.unique(stations[:, 2]).tolist() if stations.shape[1] > 2 else [None]
    for client_m in getattr(motion, "heights_m", ()):
        for station_m in heights:
            try:
                path_loss.at_heights(station_m, client_m)
            except ValueError as error:
                raise ValueError(
                    f"clients move at a height of {client_m:g} m, the z_m of a trace: {error}"
                ) from None


def _placed(
    layout: Layout | Positions,
    cells: int | None,
    clients: int | None,
    stream: Stream,
    shortest_m: float,
) -> Positions:
    """The positions of a layout."""
    if isinstance(layout, Layout):
        return layout.place(cells, clients, stream, shortest_m)
    for name, number in (("cells", cells), ("clients", clients)):
        if number is not None:
            raise ValueError(f"{name} is {number}, but positions have their own: omit it.")
    return layout
