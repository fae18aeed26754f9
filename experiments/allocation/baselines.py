"""Rules of the literature for bands, powers, speeds and clients, on many cells at once."""

from __future__ import annotations

import numpy as np
from scipy.special import lambertw

from channels.arrays import FloatArray, IntArray
from experiments.allocation.networks import KAPPA, Cells
from solvers import allocate_bandwidth
from solvers.bands.least_band import least_band

LN2 = float(np.log(2))
_HALVINGS = 60


def upload_seconds(cells: Cells, bands: FloatArray) -> FloatArray:
    """Seconds of each upload within its band at full power, [problems, clients]."""
    return cells.bits * LN2 / (bands * np.log1p(cells.snr_hz / bands))


def equal_bands(cells: Cells) -> FloatArray:
    """The band of each client if all have the same, [problems, clients] in Hz."""
    return np.full(cells.bits.shape, cells.bandwidth_hz / cells.bits.shape[-1])


def seconds_of_equal_bands(cells: Cells) -> FloatArray:
    """When the last client ends, [problems]."""
    return np.asarray((cells.compute_seconds + upload_seconds(cells, equal_bands(cells))).max(-1))


def some_clients(cells: Cells, part: IntArray) -> Cells:
    """Cells with the clients ``part`` [problems, some] only."""
    chosen = [np.take_along_axis(array, part, 1) for array in cells[:4]]
    return Cells(*chosen, *cells[4:])


def best_channels(cells: Cells, count: int) -> IntArray:
    """The clients with the best channels, [problems, count]."""
    return np.argsort(-cells.gain_per_noise, axis=-1)[:, :count]


def greedy_selection(cells: Cells, count: int) -> tuple[IntArray, FloatArray]:
    """Clients [problems, count] added one by one, and when they end [problems].

    Each is the one with which the chosen ones end soonest, with the best bands (the rule of Shi et
    al., IEEE TWC 20(1) (2021), arXiv:2007.07174, for updates of one size).
    """
    problems, clients = cells.bits.shape
    chosen = np.zeros((problems, 0), dtype=np.int64)
    end = np.zeros(problems)
    for _ in range(count):
        others = np.broadcast_to(np.arange(clients), (problems, clients))
        tried = np.concatenate([chosen.repeat(clients, 0), others.reshape(-1, 1)], 1)
        every = Cells(*(array.repeat(clients, 0) for array in cells[:4]), *cells[4:])
        group = some_clients(every, tried)
        solution = allocate_bandwidth(
            group.bits, group.compute_seconds, group.snr_hz, cells.bandwidth_hz
        )
        seconds = solution.objective.reshape(problems, clients)
        np.put_along_axis(seconds, chosen, np.inf, 1)
        best = seconds.argmin(-1)
        chosen = np.concatenate([chosen, best[:, None]], 1)
        end = seconds[np.arange(problems), best]
    return chosen, end


def joules(cells: Cells, bands: FloatArray, window: FloatArray, deadline: FloatArray) -> FloatArray:
    """Energy [problems] of uploads that take ``window`` seconds in ``bands``.

    Clients compute in the rest of the time until ``deadline`` [problems].
    """
    amount = bands * window
    with np.errstate(over="ignore"):
        sent = amount / cells.gain_per_noise * np.expm1(cells.bits * LN2 / amount)
    speed = cells.cycles / (deadline[:, None] - window)
    return np.asarray((sent + KAPPA * cells.cycles * speed**2).sum(-1))


def best_windows(cells: Cells, bands: FloatArray, deadline: FloatArray) -> FloatArray:
    """Upload seconds [problems, clients] of least energy within given bands.

    Each client divides its time between computing and sending: a convex problem of one variable,
    whose derivative is bisected between full power and full speed.
    """
    low = upload_seconds(cells, bands)
    high = np.maximum(deadline[:, None] - cells.compute_seconds, low)
    for _ in range(_HALVINGS):
        window = (low + high) / 2
        x = cells.bits * LN2 / (bands * window)
        with np.errstate(over="ignore"):
            saved = bands / cells.gain_per_noise * (1 + (x - 1) * np.exp(x))
        rest = deadline[:, None] - window
        spent = 2 * KAPPA * cells.cycles**3 / rest**3
        longer = saved > spent
        low, high = np.where(longer, window, low), np.where(longer, high, window)
    return low


def best_bands(cells: Cells, window: FloatArray, least: FloatArray) -> FloatArray:
    """Bands [problems, clients] of least energy for given upload seconds.

    Args:
        cells: the cells.
        window: [problems, clients].
        least: bands that each client needs at full power, [problems, clients].
    """
    low, high = np.full(len(window), -80.0), np.full(len(window), 60.0)
    bands = least
    for _ in range(_HALVINGS):
        price = np.exp((low + high) / 2)[:, None]
        argument = (price * cells.gain_per_noise / window - 1) / np.e
        x = 1 + lambertw(argument, 0).real
        bands = np.maximum(cells.bits * LN2 / (window * np.maximum(x, 1e-12)), least)
        many = bands.sum(-1) > cells.bandwidth_hz
        low = np.where(many, (low + high) / 2, low)
        high = np.where(many, high, (low + high) / 2)
    free = bands > least
    rest = cells.bandwidth_hz - np.where(free, 0.0, bands).sum(-1)
    total = np.maximum(np.where(free, bands, 0.0).sum(-1), 1e-300)
    return np.where(free, np.maximum(bands * (rest / total)[:, None], least), bands)


def best_end(
    cells: Cells, window: FloatArray, seconds: FloatArray, joules_weight: FloatArray
) -> FloatArray:
    """Ends [problems] of least ``seconds`` T + ``joules_weight`` E for given upload seconds.

    Clients compute as slowly as the rest of the time allows; the derivative is bisected.
    """
    low = (window + cells.compute_seconds).max(-1)
    high = 1000 * low
    for _ in range(_HALVINGS):
        end = np.sqrt(low * high)
        rest = end[:, None] - window
        saved = joules_weight * (2 * KAPPA * cells.cycles**3 / rest**3).sum(-1)
        later = saved > seconds
        low, high = np.where(later, end, low), np.where(later, high, end)
    return low


def least_bands(cells: Cells, window: FloatArray) -> FloatArray:
    """Bands with which full power delivers the bits in ``window`` seconds, [problems, clients]."""
    return least_band(cells.bits, window, cells.snr_hz)[0]
