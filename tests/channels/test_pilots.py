"""Pilots: what an estimate leaves unknown, and that no access forgets their seconds and joules."""

from dataclasses import replace

import numpy as np
import pytest

from channels import (
    EqualBands,
    EqualSlots,
    Load,
    Network,
    ReadyOrder,
    Simultaneous,
    Stream,
    estimation_error,
)
from solvers import EnergyWithinDeadline, LeastTimeAndEnergy, OptimalBands, OverTheAir

CELLS = np.array([0, 0, 0, 1, 1, 2])
SYMBOLS = 5000.0


@pytest.mark.parametrize(("symbols", "snr"), [(1, 0.1), (1, 2.0), (4, 0.5), (16, 1.0), (64, 10.0)])
def test_the_error_is_that_of_the_estimator(symbols, snr):
    """Monte Carlo of N pilots and the estimator of least mean squared error.

    40,000 squared errors have a standard error of 0.5 %; the estimate is uncorrelated with it.
    """
    draws, gain = 40_000, 3e-9
    dice = np.random.default_rng(symbols)

    def normals(*shape):
        return (dice.standard_normal((*shape, 2)) @ [1, 1j]) / np.sqrt(2)

    h = np.sqrt(gain) * normals(draws)
    received = h + np.sqrt(gain / snr) * normals(symbols, draws)
    estimate = symbols * snr / (1 + symbols * snr) * received.mean(0)
    error = h - estimate
    wanted = float(estimation_error(symbols, snr))
    assert (np.abs(error) ** 2).mean() / gain == pytest.approx(wanted, rel=0.02)
    assert abs((error * estimate.conj()).mean()) / gain < 0.02


def test_no_pilots_tell_nothing_and_many_tell_all():
    assert estimation_error(0, 5.0) == 1
    assert estimation_error(1e12, [1.0, 100.0]).max() < 1e-11
    with pytest.raises(ValueError, match="symbols contains -1"):
        estimation_error(-1, 5.0)


def network():
    return Network(
        CELLS,
        cpu_hz=[1e9, 2e9, 1e9, 3e9, 2e9, 1e9],
        gain_db=[-95.0, -100.0, -90.0, -98.0, -92.0, -101.0],
        transmit_power_w=[0.1, 0.2, 0.1, 0.1, 0.05, 0.1],
        bandwidth_hz=[1e6, 2e6, 1e6],
    )


ACCESSES = {
    "slots": EqualSlots(),
    "ready": ReadyOrder(),
    "equal": EqualBands(),
    "optimal": OptimalBands(),
    "weighted": LeastTimeAndEnergy(0.5),
    "deadline": EnergyWithinDeadline(),
    "analog": Simultaneous(),
    "air": OverTheAir(convention="physical"),
}


@pytest.mark.parametrize("name", ACCESSES)
def test_every_access_waits_for_the_pilots_of_its_cell_and_pays_for_them(name):
    """As a start that is later by n N / B in each cell, with P N / B joules more."""
    access, net = ACCESSES[name], network()
    draw = net.draws(Stream(1), range(2))
    load = Load(1e8, [5e4, 6e4, 4e4, 9e4, 3e4, 5e4], start_seconds=0.01, deadline_seconds=40.0)
    band = net.bandwidth_hz[CELLS]
    turns = np.bincount(CELLS)[CELLS] * SYMBOLS / band
    later = replace(load, start_seconds=0.01 + turns)
    with_pilots = replace(load, pilot_symbols=SYMBOLS)
    served, wanted = access.serve(with_pilots, draw), access.serve(later, draw)
    np.testing.assert_allclose(served.seconds, wanted.seconds, rtol=1e-12)
    np.testing.assert_allclose(access.seconds(with_pilots, draw), wanted.seconds, rtol=1e-12)
    joules = wanted.joules + net.transmit_power_w * SYMBOLS / band
    np.testing.assert_allclose(served.joules, joules, rtol=1e-9)
    assert turns.min() > 1e-3


def test_clients_that_are_left_out_have_sent_their_pilots():
    load = Load(1e8, 5e4, deadline_seconds=0.3, pilot_symbols=SYMBOLS)
    net = network()
    served = EnergyWithinDeadline(late="lost").serve(load, net.draw(Stream(1)))
    out = ~served.arrived
    assert 0 < out.sum() < len(out)
    np.testing.assert_allclose(served.joules[out], load.pilot_joules(net)[out])


def test_fewer_candidates_send_fewer_pilots():
    """``soonest`` compares groups of the wanted size, so only their pilots take time."""
    load, draw = Load(1e8, 5e4, pilot_symbols=SYMBOLS), network().draw(Stream(1))
    counts = np.array([2, 1, 1])
    for access in (EqualSlots(), ReadyOrder(), OptimalBands()):
        chosen = access.soonest(load, draw, counts)
        without = access.soonest(replace(load, pilot_symbols=0.0), draw, counts)
        assert (chosen == without).all()
        assert np.bincount(CELLS[chosen]).tolist() == counts.tolist()
