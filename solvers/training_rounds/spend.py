"""What local phases with given sizes cost, with the best bands, powers, clocks and ends."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from channels.arrays import BoolArray, FloatArray
from solvers.bands.least_band import upload_seconds
from solvers.bands.least_time import least_time
from solvers.energy.common_end import common_end
from solvers.energy.least_energy import least_energy
from solvers.joint.sized_energy_cells import SizedEnergyCells
from solvers.training_rounds.units import at_full_power

_LATE = 1e-12
"""Relative excess over the latest end that is due to rounding, e.g. of ``common_end``."""


class Phases(NamedTuple):
    """Local phases.

    Args:
        ends: of each draw's phases, [cases, draws].
        joules: of all clients, [cases, draws].
        late: whether a cell cannot end by the latest end, [cases, draws].
        until: end of each cell's own phase, [cases, draws, cells].
        clients: bands, windows, powers and clocks, [cases, draws, cells, clients] each.
    """

    ends: FloatArray
    joules: FloatArray
    late: BoolArray
    until: FloatArray
    clients: tuple[FloatArray, ...]


def spend(
    cells: SizedEnergyCells,
    steps: FloatArray,
    lost: FloatArray,
    latest: FloatArray,
    weights: tuple[float, float],
    equal: bool,
) -> Phases:
    """Cheapest phases of cells with sizes.

    Args:
        cells: [cases x draws x cells].
        steps: [cases, draws, cells].
        lost: seconds that each cell cannot use, [cases, draws, cells].
        latest: ends, [cases, draws]; inf for no limit. Those that are too soon are raised.
        weights: w_T and w_E; w_T > 0 where ``latest`` is infinite.
        equal: whether clients share the band equally, at full power and speed.
    """
    shape = steps.shape
    ends_shape, groups = shape[:-1], lost.reshape(-1, shape[-1])
    sizes, last = steps.reshape(-1), latest.reshape(-1)
    second, joule = weights
    if equal:
        return _at_full_power(cells, steps, lost, latest, weights)
    problem = cells.rounds(sizes, 1.0)
    if second:
        optimum = common_end(problem, groups, joule / second, last)
        plans, ends, until = optimum.plans, optimum.end, optimum.until
    else:
        works = ((problem.bits > 0) | (problem.cycles > 0)).any(-1)
        at, shortest = np.flatnonzero(works), np.zeros(len(sizes))
        if at.size:
            shortest[at] = least_time(problem.cells(at))[1]
        shortest = shortest.reshape(groups.shape)
        ends = np.maximum(last, (shortest + groups).max(-1))
        until = np.maximum(ends[:, None] - groups, shortest)
        plans = least_energy(replace(problem, deadline=until.ravel()), until.ravel())
        until = np.where(works.reshape(groups.shape), until, 0.0)
    joules = plans.energy.reshape(groups.shape).sum(-1)
    joules = np.where(np.isfinite(joules), joules, np.inf)
    return Phases(
        ends.reshape(ends_shape),
        joules.reshape(ends_shape),
        (ends > last * (1 + _LATE)).reshape(ends_shape),
        until.reshape(shape),
        tuple(x.reshape(*shape, -1) for x in plans[:4]),
    )


def _at_full_power(
    cells: SizedEnergyCells,
    steps: FloatArray,
    lost: FloatArray,
    latest: FloatArray,
    weights: tuple[float, float],
) -> Phases:
    """As ``spend``, with equal bands."""
    shape, size = steps.shape, steps.reshape(-1)[:, None]
    none = np.zeros(cells.bits.shape)
    whole = cells._replace(
        bits=cells.more_bits + size * cells.bits,
        cycles=cells.more_cycles + size * cells.cycles,
        more_bits=none,
        more_cycles=none,
    )
    sends, works = whole.bits > 0, whole.cycles > 0
    count = np.count_nonzero(sends, axis=-1)
    band = np.where(sends, (cells.band / np.maximum(count, 1))[:, None], 0.0)
    until, sent, computed = (x.reshape(shape) for x in at_full_power(whole, band))
    ends = (until + lost).max(-1)
    if not weights[0]:
        ends = np.maximum(ends, latest)
    joules = (sent + computed).sum(-1)
    snr = cells.gain * cells.power
    heard = sends & (snr > 0)
    window = upload_seconds(
        np.where(heard, whole.bits, 0.0), np.where(heard, band, 1.0), np.where(heard, snr, 1.0)
    )
    power, clock = np.where(sends, cells.power, 0.0), np.where(works, cells.speed, 0.0)
    return Phases(
        ends,
        joules,
        ends > latest * (1 + _LATE),
        until,
        tuple(x.reshape(*shape, -1) for x in (band, window, power, clock)),
    )
