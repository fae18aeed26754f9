"""Turns with the power of each client in its best subcarriers."""

from dataclasses import replace

import numpy as np
import pytest

import channels
from channels import DelayProfile, EqualSlots, Load, Network, ReadyOrder, Stream
from solvers import WaterFilled, water_filling

LOAD = Load([1e6, 2e6, 3e6, 4e6], [1e5, 2e5, 3e5, 4e5])


def cells(gain_db, subcarriers=8):
    fading = DelayProfile(300e-9, "tdl-a", subcarriers)
    return Network(
        [0, 0, 1, 1], cpu_hz=1e9, gain_db=gain_db, antennas=2, bandwidth_hz=[9e6, 4e6],
        transmit_power_w=[0.1, 0.2, 0.1, 0.05], fading=fading,
    )  # fmt: skip


@pytest.mark.parametrize("gain_db", [-135.0, -120.0, -100.0])
def test_rates_are_the_objective_of_the_solver(gain_db):
    """To the rounding of channels in single precision; no more power is sent."""
    network = cells(gain_db)
    draws = network.draws(Stream(1), range(3))
    service = WaterFilled().serve(LOAD, draws)
    power, band = network.transmit_power_w, network.bandwidth_hz[network.cell_of]
    gain = (draws.snr_hz / power)[..., None] * draws.spectrum
    best = water_filling(gain, power, band)
    upload = 2 * LOAD.bits / best.objective
    np.testing.assert_allclose(service.seconds - LOAD.cycles / 1e9, upload, rtol=1e-6)
    np.testing.assert_allclose(service.joules - LOAD.compute_joules(network), power * upload / 2,
                               rtol=1e-6)  # fmt: skip
    equal = EqualSlots().serve(LOAD, draws)
    assert (service.seconds <= equal.seconds).all()
    np.testing.assert_array_equal(WaterFilled().seconds(LOAD, draws), service.seconds)


def test_in_order_of_readiness():
    draw, counts = cells(-125.0).draw(Stream(2)), np.array([1, 1])
    access = WaterFilled(ReadyOrder())
    assert access.coupled
    service = access.serve(LOAD, draw)
    assert (service.seconds <= ReadyOrder().serve(LOAD, draw).seconds).all()
    assert service.decision.order.tolist() == [0, 1, 0, 1]
    assert access.soonest(LOAD, draw, counts).sum() == 2
    assert WaterFilled().ranks_alone
    assert not access.ranks_alone


def test_flat_channels_leave_nothing_to_choose():
    """To the bit."""
    draw = cells(-120.0, subcarriers=1).draw(Stream(3))
    for name in ("seconds", "joules"):
        one, two = (getattr(a.serve(LOAD, draw), name) for a in (EqualSlots(), WaterFilled()))
        np.testing.assert_array_equal(one, two)


def test_a_client_without_a_channel_never_arrives():
    draw = cells(-120.0).draw(Stream(3))
    silent = replace(draw, h=draw.h * [[0], [1], [1], [1]])
    assert WaterFilled().serve(LOAD, silent).arrived.tolist() == [False, True, True, True]


def test_other_accesses_are_refused():
    with pytest.raises(TypeError, match=r"access is .*: give EqualSlots\(\) or ReadyOrder"):
        WaterFilled(channels.EqualBands())
    with pytest.raises(ValueError, match="law 'mcs', and water-filling maximises"):
        WaterFilled(EqualSlots("mcs"))
