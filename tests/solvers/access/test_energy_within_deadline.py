"""``EnergyWithinDeadline`` against the solver called by hand, limits, and rates written out."""

import re

import numpy as np
import pytest

from channels import ChannelDraw, EqualBands, Load, Network, Stream
from solvers import EnergyWithinDeadline, OptimalBands, allocate_energy

CELLS = np.array([0, 0, 0, 1, 2, 2])


def example(seed=0, **more):
    random = np.random.default_rng(seed)
    network = Network.from_snr(
        CELLS,
        cpu_hz=random.uniform(0.5e9, 2e9, 6),
        snr_db=random.uniform(-10, 20, 6),
        bandwidth_hz=[1e6, 2e6, 5e5],
        transmit_power_w=random.uniform(0.05, 0.2, 6),
    )
    load = Load(random.uniform(1e7, 5e8, 6), random.uniform(1e3, 1e4, 6), **more)
    return load, network.draw(Stream(seed))


def soonest(load, draw):
    return OptimalBands().serve(load, draw).seconds.max()


def check(load, draw, service, deadline):
    """Limits hold, and seconds and joules follow from the decision."""
    network, decided = draw.network, service.decision
    bands, powers, clocks = decided.bands_hz, decided.powers_w, decided.cpu_hz
    assert (powers <= network.transmit_power_w).all()
    assert (clocks <= network.cpu_hz).all()
    assert (service.seconds <= deadline * (1 + 1e-12)).all()
    filled = network.over_cells(np.add, bands)
    assert (filled <= network.bandwidth_hz * (1 + 1e-12)).all()
    rate = bands * np.log2(1 + powers * draw.gain_per_noise / bands)
    upload = load.bits / rate
    np.testing.assert_allclose(
        service.seconds, load.start_seconds + load.cycles / clocks + upload, rtol=1e-9
    )
    joules = network.switched_capacitance * clocks**2 * load.cycles + powers * upload
    np.testing.assert_allclose(service.joules, joules, rtol=1e-9)


@pytest.mark.parametrize("slack", [1.001, 1.3, 10])
def test_each_cell_has_the_allocation_of_the_solver(slack):
    load, draw = example()
    network, deadline = draw.network, slack * soonest(load, draw)
    service = EnergyWithinDeadline(deadline).serve(load, draw)
    check(load, draw, service, deadline)
    for cell in range(3):
        mine = cell == CELLS
        by_hand = allocate_energy(
            load.bits[mine],
            load.cycles[mine],
            draw.gain_per_noise[mine],
            network.bandwidth_hz[cell],
            max_power_watts=network.transmit_power_w[mine],
            max_cpu_hz=network.cpu_hz[mine],
            kappa=1e-28,
            deadline_seconds=deadline,
        )
        assert service.joules[mine].sum() == pytest.approx(by_hand.objective, rel=1e-9)
        np.testing.assert_allclose(
            service.decision.bands_hz[mine], by_hand.value.bandwidth_hz, rtol=1e-6
        )


@pytest.mark.parametrize("seed", range(3))
def test_no_more_energy_than_equal_bands_within_their_time(seed):
    load, draw = example(seed)
    equal = EqualBands().serve(load, draw)
    service = EnergyWithinDeadline(equal.seconds.max()).serve(load, draw)
    before, after = (draw.network.over_cells(np.add, each.joules) for each in (equal, service))
    assert (after < before).all()


def test_leading_axes_starts_and_empty_cells():
    random = np.random.default_rng(3)
    network = example()[1].network.of([0, 1, 4, 5])
    draws = network.draws(Stream(1), range(2))
    share = np.array([0.2, 0.5, 1.0])[:, None, None]
    start = np.array([0.0, 0.4, 0.1, 0.1])
    load = Load(share * 1e8, share * random.uniform(1e3, 1e4, 4), start_seconds=start)
    deadline = 1.2 * soonest(load, draws) + 0.4
    service = EnergyWithinDeadline(deadline).serve(load, draws)
    assert service.joules.shape == (3, 2, 4)
    check(load, draws, service, deadline)
    for i, j in np.ndindex(3, 2):
        one = Load(load.cycles[i, 0], load.elements[i, 0], start_seconds=start)
        alone = EnergyWithinDeadline(deadline).serve(one, network.draw(Stream(1), j))
        np.testing.assert_allclose(service.joules[i, j].sum(), alone.joules.sum(), rtol=1e-9)


def test_clients_that_do_nothing_or_cannot_send():
    load, draw = example()
    h, elements, cycles = draw.h.copy(), load.elements.copy(), load.cycles.copy()
    h[0], elements[1], cycles[1] = 0, 0, 0
    deadline = 2 * soonest(load, draw)
    service = EnergyWithinDeadline(deadline).serve(
        Load(cycles, elements), ChannelDraw(draw.network, h)
    )
    assert service.arrived.tolist() == [False] + [True] * 5
    assert service.seconds[:2].tolist() == [np.inf, 0]
    assert service.joules[1] == 0
    clock = service.decision.cpu_hz[0]
    assert service.joules[0] == pytest.approx(1e-28 * clock**2 * cycles[0])
    assert service.decision.bands_hz[:2].tolist() == [0, 0]
    idle = EnergyWithinDeadline(1).serve(Load(), draw)
    assert (idle.joules == 0).all()
    assert (idle.seconds == 0).all()
    assert EnergyWithinDeadline(1).serve(Load(), draw.of([])).joules.shape == (0,)


def test_a_deadline_that_is_too_short_names_who_needs_more():
    load, draw = example()
    part = draw.of([1, 2, 4, 5])
    load = Load(load.cycles[[1, 2, 4, 5]] * [[1], [300]], load.elements[[1, 2, 4, 5]])
    first, ends = OptimalBands().serve(load, part).seconds
    rate = draw.network.bandwidth_hz[CELLS] * np.log2(1 + draw.snr * draw.gain)
    alone = load.cycles[1] / part.network.cpu_hz + load.bits / rate[[1, 2, 4, 5]]
    slowest = int(alone[:2].argmax())
    deadline = 1.1 * first.max()  # enough for item [0]
    assert (ends[:2] > deadline).any()
    message = (
        f"deadline_seconds is {deadline:g}: cell 0 of item [1] needs {ends[:2].max():.6g} s even "
        f"at full power and speed, {ends[:2].max() - deadline:.3g} s more; its slowest client, "
        f"{[1, 2][slowest]}, needs {alone[slowest]:.6g} s in the whole band. "
        'Raise deadline_seconds, or choose late "lost".'
    )
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        EnergyWithinDeadline(deadline).serve(load, part)
    with pytest.raises(ValueError, match="is 5: cell 2 needs 7"):
        EnergyWithinDeadline(5).serve(Load(1, 1, start_seconds=7), draw)


def test_interference_is_that_of_all_clients_in_their_bands():
    """Noise in the bands grows with the clients of a cell, and so do powers and bands."""
    load, draw = example()
    draw = ChannelDraw(draw.network, draw.h, [1.5, 2.0, 4.0])
    deadline = 2 * soonest(load, draw)
    service = EnergyWithinDeadline(deadline).serve(load, draw)
    check(load, draw.in_bands(), service, deadline)
    assert (draw.in_bands().snr_hz < draw.snr_hz)[CELLS != 1].all()
