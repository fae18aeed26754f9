"""Networks from the channels of Sionna: impulse responses, or responses of OFDM subcarriers."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from channels.arguments import checked
from channels.arrays import BoolArray, ComplexArray, FloatArray, IntArray
from channels.decibels import LARGEST_DB
from channels.fading import offsets, over_band
from channels.interference import Interference
from channels.layouts.layout import checked_reuse
from channels.network import DEFAULT_DBM, Network
from channels.notes import Notes
from channels.placed import sorted_by_cell
from channels.placement import Placement
from channels.recorded import LARGEST_GAIN_DB, Recorded
from channels.validation import as_array, checked_rows, in_range, number_of, whole_number

Direction = Literal["uplink", "downlink"]
IMPULSES = "[batch, rx, rx_ant, tx, tx_ant, paths, time]"
RESPONSES = "[batch, rx, rx_ant, tx, tx_ant, symbols, subcarriers]"
DELAYS = "[batch, rx, tx, paths], or with the antennas [batch, rx, rx_ant, tx, tx_ant, paths]"
DERIVED = (
    *("gain_db", "snr_db", "path_gain_db", "antennas", "antenna_correlation", "fading"),
    *("interference", "placement", "part"),
)
"""Arguments of a network that follow from the channels."""
LARGEST_HZ = 1e12
"""Largest offset of a frequency."""
LONGEST_SECONDS = 1.0
"""Longest delay; those of paths without power, which pad the arrays, have any length."""
USUAL_AMPLITUDE = 1e-3
"""Largest amplitude with which a recording is made, whose gains the network then sets."""


@checked(complex_valued=("a", "h"))
def from_sionna(
    a: ArrayLike | None = None,
    tau: ArrayLike | None = None,
    *,
    h: ArrayLike | None = None,
    cpu_hz: ArrayLike | None = None,
    direction: Direction = "uplink",
    frequency_hz: float = 0.0,
    subcarrier: int | None = None,
    mean_power: bool = False,
    subcarriers: int | None = None,
    bandwidth_hz: ArrayLike = 9e6,
    path_loss_db: ArrayLike | None = None,
    cell_of: ArrayLike | None = None,
    clients_m: ArrayLike | None = None,
    base_stations_m: ArrayLike | None = None,
    line_of_sight: ArrayLike | None = None,
    reuse_factor: int | None = None,
    **others: Any,
) -> Network:
    """A network that replays channels of Sionna (or Sionna RT), block by block.

    Give either impulse responses ``a`` and ``tau``, or frequency responses ``h`` of OFDM
    subcarriers, as Sionna returns them: arrays of NumPy or PyTorch, or others that ``np.asarray``
    reads. Without the axis ``batch``, as from the ray tracer, there is one batch. Sionna is not
    imported. The batches and their time steps (or OFDM symbols) are the blocks of a
    :class:`Recorded`, in this order: block t + T b of batch b and step t. A block lasts as long as
    the network's coherence, e.g. a round, so leave out steps of the same few milliseconds.

    With ``subcarriers`` channels differ over the band, see :class:`ChannelDraw`. Otherwise it is
    flat, with one of these channels per block, client and antenna:

    - by default, the response at one frequency: sum_p a_p exp(-2 pi i f tau_p) at the offset
      ``frequency_hz`` from the carrier, or that of one ``subcarrier`` of ``h``;
    - with ``mean_power``, the root of the mean of abs(h)^2 over the band, with the phase of the
      response at that frequency: over ``bandwidth_hz`` around it, in closed form, or over the
      subcarriers of ``h``. Rates are then those of a flat channel of this power: upper bounds, by
      Jensen's inequality.

    In the uplink, Sionna's transmitters are the clients and its receivers the edge servers, one a
    cell. In the downlink it is the other way round, and channels are reciprocal: the same h. A
    client belongs to the cell that receives it with the greatest mean power, unless ``cell_of``
    says otherwise; the network sorts clients by cell.

    Channels whose mean abs(h)^2 is near 1 are normalised (``normalize=True``, or a model without
    path loss): a :class:`Note` says so, and their SNR is that of a path loss of 0 dB.

    >>> import numpy as np
    >>> import channels
    >>> a = 1e-5 * np.array([1.0, 1j]).reshape(1, 1, 1, 1, 1, 2, 1)  # one client, two paths
    >>> tau = np.array([0.0, 0.25e-6]).reshape(1, 1, 1, 2)
    >>> network = channels.from_sionna(a, tau, cpu_hz=1e9, frequency_hz=1e6)
    >>> network.gain_db.round(1).tolist()  # 1 + 1j exp(-1j pi / 2) = 2
    [-94.0]

    Args:
        a: [batch, rx, rx_ant, tx, tx_ant, paths, time] complex, coefficients of the paths.
        tau: [batch, rx, tx, paths] or [batch, rx, rx_ant, tx, tx_ant, paths], delays in seconds; it
            may be omitted at the carrier.
        h: [batch, rx, rx_ant, tx, tx_ant, symbols, subcarriers] complex, in place of both.
        cpu_hz: [clients], CPU cycles per second; None with ``devices``. Like all values of clients,
            it is in Sionna's order.
        direction: who sends in Sionna's arrays: ``uplink`` if clients do, else ``downlink``.
        frequency_hz: with ``a``, offset from the carrier in hertz.
        subcarrier: with ``h``, index of the subcarrier; None for the middle one, at the carrier.
        mean_power: whether the gain is the mean power of the band.
        subcarriers: number of parts of equal width of the band, with the response in the middle of
            each: with ``a`` over ``bandwidth_hz`` around ``frequency_hz``; with ``h`` a divisor of
            the number of its subcarriers. None for a flat band.
        bandwidth_hz: B [cells], > 0; one number with ``a`` and ``mean_power`` or ``subcarriers``.
        path_loss_db: [clients], loss of normalised channels, within [0, 300] dB; None if the
            channels have it.
        cell_of: [clients], receiver (downlink: transmitter) of each client.
        clients_m: [clients, 2 or 3], positions in metres, kept in ``placement``.
        base_stations_m: [cells, 2 or 3], positions in metres; both or neither.
        line_of_sight: [clients], with positions; None if unknown.
        reuse_factor: number of bands that cells use in turn; cells of one band interfere by their
            mean gains, see :class:`Interference`. None for no interference.
        others: further arguments of :class:`Network`, by name.

    Raises:
        ValueError: shapes do not fit, clients have several antennas, a cell has no client, or a
            value is not finite or out of range.
        TypeError: an argument has the wrong type, or follows from the channels.
    """
    wrong = [name for name in DERIVED if name in others]
    if wrong:
        raise TypeError(f"{wrong[0]} follows from the channels: omit it.")
    if direction not in ("uplink", "downlink"):
        raise ValueError(f"direction is {direction!r}: give 'uplink' or 'downlink'.")
    if (h is None) == (a is None):
        raise ValueError("give impulse responses a (and tau), or frequency responses h: not both.")
    if subcarriers is not None and (mean_power or subcarrier is not None):
        name = "mean_power" if mean_power else "subcarrier"
        raise ValueError(f"{name} makes the band flat, and subcarriers is set: omit one of them.")
    if h is not None:
        if tau is not None or frequency_hz != 0:
            name = "frequency_hz" if tau is None else "tau"
            raise ValueError(f"{name} belongs to impulse responses a: omit it with h.")
        by_subcarrier = _complex("h", h, RESPONSES)
        if subcarriers is None:
            response = _of_subcarriers(by_subcarrier, subcarrier, bool(mean_power))
        else:
            response = _evenly(by_subcarrier, subcarriers)
    else:
        if subcarrier is not None:
            raise ValueError("subcarrier belongs to h: give frequency_hz with a and tau.")
        wide = mean_power or subcarriers is not None
        band = in_range("bandwidth_hz", bandwidth_hz, ("", 1), above=0)[0] if wide else None
        paths = _complex("a", a, IMPULSES)
        if subcarriers is None or band is None:
            response = _of_paths(paths, tau, frequency_hz, band)
        else:
            places = frequency_hz + band * offsets(number_of("subcarriers", subcarriers))
            at = [_of_paths(paths, tau, place, None) for place in places.tolist()]
            response = np.stack(at, axis=-1)
    every, bands = _by_client(response, direction), None
    if subcarriers is not None:
        bands, every = every, over_band(every)[0]
    cells, clients = every.shape[1:3]
    cell = _cells(every, cell_of)
    rows = np.arange(clients)
    links = every[:, cell, rows]
    power = (links.real**2 + links.imag**2).mean(axis=(0, 2))
    largest = np.sqrt(power.max())
    usual = USUAL_AMPLITUDE / largest if 0 < largest < np.inf else 1.0
    Recorded(links * usual)  # raise errors with the client's index in Sionna's order
    gain_db = 10 * np.log10(power)
    normalised = bool(gain_db.max() > LARGEST_GAIN_DB)
    if path_loss_db is not None:
        loss_db = in_range("path_loss_db", path_loss_db, ("clients", clients), limit=LARGEST_DB)
        _check_loss(gain_db, loss_db)
        gain_db = gain_db - loss_db
    order = cell.argsort(kind="stable")
    values = {"cpu_hz": cpu_hz, **others}
    placement = _placed(clients_m, base_stations_m, line_of_sight, cell, cells, -gain_db, order)
    interference = None
    if reuse_factor is not None:
        if normalised:
            raise ValueError(
                "reuse_factor needs the gains to all cells, and the channels are normalised: give "
                "channels with their path loss."
            )
        heard = (every.real**2 + every.imag**2).mean(axis=(0, 3)).T[order]
        ends = np.searchsorted(cell[order], np.arange(cells), side="right")
        interference = Interference(heard, ends, np.arange(cells) % checked_reuse(reuse_factor))
    noted = normalised and path_loss_db is None
    recorded = links if bands is None else np.swapaxes(bands[:, cell, rows], 2, 3)
    network = Network(
        cell[order],
        gain_db=np.minimum(gain_db, 0.0)[order] if noted else gain_db[order],
        antennas=links.shape[2],
        fading=Recorded((recorded * usual)[:, order]),
        bandwidth_hz=bandwidth_hz,
        interference=interference,
        placement=None if noted else placement,
        **{name: sorted_by_cell(name, value, order, cells) for name, value in values.items()},
    )
    if noted:
        network = network.with_snr(
            gain_db[order] + DEFAULT_DBM - network.noise_dbm[network.cell_of]
        )
        Notes()(
            f"the mean of abs(h)^2 is {power.mean():.3g}, as of normalised channels, which have no "
            "path loss: give path_loss_db, channels with normalize=False, or an SNR by "
            "network.with_snr."
        )
    return network


def _complex(name: str, values: ArrayLike | None, layout: str) -> ComplexArray:
    """An array of seven axes; without a batch, of one."""
    array = as_array(name, values)
    if array.dtype.kind != "c":
        raise ValueError(
            f"{name} has dtype {array.dtype}: give complex channels {layout}; Sionna RT returns "
            "them with out_type='numpy'."
        )
    array = array[None] if array.ndim == 6 else array
    if array.ndim != 7 or not array.size:
        raise ValueError(f"{name} has shape {array.shape}: give {layout}, at least one each.")
    bad = ~np.isfinite(array)
    if bad.any():
        place = np.argwhere(bad)[0].tolist()
        raise ValueError(f"{name}{place} is {array[bad][0]}: give finite channels {layout}.")
    return array.astype(np.complex128)


def _of_subcarriers(h: ComplexArray, subcarrier: int | None, mean_power: bool) -> ComplexArray:
    """Flat channels [batch, rx, rx_ant, tx, tx_ant, symbols]."""
    count = h.shape[-1]
    place = count // 2 if subcarrier is None else whole_number("subcarrier", subcarrier)
    if not 0 <= place < count:
        raise ValueError(f"subcarrier is {place}: h has {count}, give 0 to {count - 1}.")
    if not mean_power:
        return h[..., place]
    return _with_phase((h.real**2 + h.imag**2).mean(-1), h[..., place])


def _evenly(h: ComplexArray, subcarriers: int) -> ComplexArray:
    """Evenly spaced subcarriers [..., subcarriers] of h."""
    count, number = h.shape[-1], number_of("subcarriers", subcarriers)
    if count % number:
        raise ValueError(f"subcarriers is {number}: h has {count}, give a divisor of that number.")
    step = count // number
    return h[..., step // 2 :: step]


def _of_paths(
    a: ComplexArray, tau: ArrayLike | None, frequency_hz: float, band_hz: float | None
) -> ComplexArray:
    """Flat channels [batch, rx, rx_ant, tx, tx_ant, time]."""
    if not abs(frequency_hz) <= LARGEST_HZ:
        raise ValueError(
            f"frequency_hz is {frequency_hz}: give an offset from the carrier, at most "
            f"{LARGEST_HZ:g} Hz."
        )
    if tau is None:
        if frequency_hz == 0 and band_hz is None:
            return np.asarray(a.sum(5))  # at the carrier delays have no effect
        raise ValueError(f"tau is None: give delays {DELAYS}, in seconds.")
    delays = as_array("tau", tau).astype(np.float64)
    if delays.ndim in (3, 5):
        delays = delays[None]
    by_antenna = a.shape[:6]
    used: BoolArray = np.asarray(a.any(axis=6))
    if delays.shape == tuple(by_antenna[axis] for axis in (0, 1, 3, 5)):
        delays = delays[:, :, None, :, None]
        used = np.asarray(used.any((2, 4), keepdims=True))
    elif delays.shape != by_antenna:
        raise ValueError(
            f"tau has shape {np.shape(tau)} and a {a.shape}: give {DELAYS}, with the numbers of a."
        )
    bad = ~(np.abs(delays) <= LONGEST_SECONDS) & (used | ~np.isfinite(delays))
    if bad.any():
        raise ValueError(
            f"tau contains {delays[bad].flat[0]}: give delays in seconds, at most "
            f"{LONGEST_SECONDS:g}."
        )
    delays = np.where(used, delays, 0.0)
    turned = a * np.exp(-2j * np.pi * frequency_hz * delays)[..., None]
    response: ComplexArray = turned.sum(5)
    if band_hz is None:
        return response
    power = np.empty(response.shape)
    for b, r, m, t, n in np.ndindex(*delays.shape[:5]):
        link = delays[b, r, m, t, n]
        # Mean over the band of exp(-2 pi i f (tau_p - tau_q)) is sinc(B (tau_p - tau_q)).
        over_band = np.sinc(band_hz * (link[:, None] - link))
        of_link = (
            b,
            r,
            slice(None) if delays.shape[2] == 1 else m,
            t,
            slice(None) if delays.shape[4] == 1 else n,
        )
        some = turned[of_link]
        power[of_link] = (some.conj() * (over_band @ some)).sum(-2).real
    return _with_phase(power.clip(min=0), response)


def _with_phase(power: FloatArray, phase_of: ComplexArray) -> ComplexArray:
    return np.asarray(np.sqrt(power) * np.exp(1j * np.angle(phase_of)))


def _by_client(response: ComplexArray, direction: Direction) -> ComplexArray:
    """Channels [blocks, cells, clients, antennas of a cell, ...], from [batch, ..., time, ...]."""
    order = (0, 5, 1, 3, 2, 4) if direction == "uplink" else (0, 5, 3, 1, 4, 2)
    ends = response.transpose(*order, *range(6, response.ndim))
    blocks, (cells, clients) = ends.shape[0] * ends.shape[1], ends.shape[2:4]
    if cells > clients:
        axis, other = ("tx", "downlink") if direction == "uplink" else ("rx", "uplink")
        raise ValueError(
            f"direction is {direction!r}, so that {clients} {axis} are the clients of {cells} "
            f"cells: give direction={other!r}, or more clients."
        )
    client_antennas = ends.shape[5]
    if client_antennas > 1:
        axis = "tx_ant" if direction == "uplink" else "rx_ant"
        raise ValueError(
            f"clients have {client_antennas} antennas ({axis}), and a client of a network has one: "
            "give one of them, as an axis of length 1."
        )
    return ends[:, :, :, :, :, 0].reshape(blocks, *ends.shape[2:5], *ends.shape[6:])


def _cells(every: ComplexArray, cell_of: ArrayLike | None) -> IntArray:
    """The cell of each client [clients], in Sionna's order."""
    cells, clients = every.shape[1:3]
    gain = (every.real**2 + every.imag**2).mean(axis=(0, 3))
    if cell_of is None:
        if cells > 1 and gain.max() > 10 ** (LARGEST_GAIN_DB / 10):
            raise ValueError(
                "the channels are normalised, so that their gains do not tell the cell of a "
                "client: give cell_of, or channels with their path loss."
            )
        cell = np.asarray(gain.argmax(axis=0), dtype=np.int64)
    else:
        cell = checked_rows("cell_of", cell_of)
        if len(cell) != clients or cell.max() >= cells:
            raise ValueError(
                f"cell_of is for {len(cell)} clients, up to cell {cell.max(initial=0)}: give "
                f"[{clients}], from 0 to {cells - 1}."
            )
    empty = np.flatnonzero(np.bincount(cell, minlength=cells) == 0)
    if empty.size:
        raise ValueError(
            f"cell {empty[0]} has no client: give cell_of, or leave out the cells that receive no "
            "client with the greatest power."
        )
    return cell


def _check_loss(gain_db: FloatArray, loss_db: FloatArray) -> None:
    if gain_db.max() <= LARGEST_GAIN_DB:
        raise ValueError(
            f"path_loss_db is given, but the channels have theirs: a mean gain of up to "
            f"{gain_db.max():.4g} dB. Give one of them."
        )
    if (loss_db < gain_db).any():
        client = int((loss_db < gain_db).argmax())
        raise ValueError(
            f"path_loss_db[{client}] is {loss_db[client]:g}, and the mean of abs(h)^2 is "
            f"{gain_db[client]:.3g} dB: give a path loss >= this, e.g. 100."
        )


def _placed(
    clients_m: ArrayLike | None,
    base_stations_m: ArrayLike | None,
    line_of_sight: ArrayLike | None,
    cell: IntArray,
    cells: int,
    loss_db: FloatArray,
    order: IntArray,
) -> Placement | None:
    """The placement of clients, sorted by cell; its path loss is minus the mean gain."""
    if clients_m is None and base_stations_m is None:
        if line_of_sight is not None:
            raise ValueError("line_of_sight is kept with positions: give clients_m too.")
        return None
    if clients_m is None or base_stations_m is None:
        missing = "clients_m" if clients_m is None else "base_stations_m"
        raise ValueError(f"{missing} is None: give the positions of both ends, or of none.")
    ends = _positions("clients_m", clients_m, len(cell))
    stations = _positions("base_stations_m", base_stations_m, cells)
    sight = None
    if line_of_sight is not None:
        sight = as_array("line_of_sight", line_of_sight)
        if sight.shape != cell.shape or not np.isin(sight, (0, 1)).all():
            raise ValueError(
                f"line_of_sight has shape {sight.shape}: give [{len(cell)}] true or false."
            )
        sight = sight.astype(np.bool_)[order]
    return Placement(
        base_stations_m=stations,
        clients_m=ends[order],
        distance_m=np.hypot(*(ends - stations[cell]).T)[order],
        line_of_sight=sight,
        path_loss_db=loss_db[order],
        shadowing_db=np.zeros(len(cell)),
    )


def _positions(name: str, values: ArrayLike, count: int) -> FloatArray:
    """Horizontal positions [count, 2]."""
    array = as_array(name, values).astype(np.float64)
    if array.ndim != 2 or len(array) != count or array.shape[1] not in (2, 3):
        raise ValueError(f"{name} has shape {array.shape}: give [{count}, 2 or 3], in metres.")
    bad = ~np.isfinite(array)
    if bad.any():
        raise ValueError(f"{name} contains {array[bad][0]}: give finite metres.")
    return np.array(array[:, :2])
