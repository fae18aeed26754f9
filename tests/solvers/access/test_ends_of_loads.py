"""Deadlines of loads, clients that stay out, and ends that weigh seconds against joules."""

from itertools import combinations

import numpy as np
import pytest

from channels import ChannelDraw, Load, Network, Stream
from solvers import (
    DeadlineCheck,
    DeadlineMissedError,
    EnergyWithinDeadline,
    LeastTimeAndEnergy,
    OptimalBands,
)

CELLS = np.array([0, 0, 0, 0, 1, 2, 2])


def example(seed=0, **more):
    random = np.random.default_rng(seed)
    network = Network.from_snr(
        CELLS,
        cpu_hz=random.uniform(0.5e9, 2e9, 7),
        snr_db=random.uniform(-10, 20, 7),
        bandwidth_hz=[1e6, 2e6, 5e5],
        transmit_power_w=random.uniform(0.05, 0.2, 7),
    )
    amounts = random.uniform(1e7, 5e8, 7), random.uniform(1e3, 1e4, 7)
    return amounts, network.draws(Stream(seed), range(2)), more


def loaded(amounts, **more):
    return Load(*amounts, **more)


def soonest(load, draw):
    return OptimalBands().serve(load, draw).seconds.max()


def test_deadlines_of_loads_include_what_follows():
    """The earlier deadline counts, and the cell ends before it by what follows."""
    amounts, draw, _ = example()
    end = 2 * soonest(loaded(amounts), draw)
    after = np.array([0.1, 0.1, 0.1, 0.1, 0.2, 0.3, 0.3])
    load = loaded(amounts, after_seconds=after, deadline_seconds=end + 0.4)
    for access in (EnergyWithinDeadline(), EnergyWithinDeadline(end + 9)):
        served = access.serve(load, draw)
        np.testing.assert_allclose(served.seconds + after, end + 0.4, rtol=1e-12)
        np.testing.assert_array_equal(access.seconds(load, draw), served.seconds)
    same = EnergyWithinDeadline(end + 0.2).serve(loaded(amounts), draw)
    np.testing.assert_allclose(served.joules[:, 4], same.joules[:, 4], rtol=1e-9)
    with pytest.raises(ValueError, match="deadline_seconds is missing"):
        EnergyWithinDeadline().serve(loaded(amounts), draw)
    with pytest.raises(ValueError, match="deadline_seconds contains -1"):
        loaded(amounts, deadline_seconds=-1)


def test_seconds_of_cells_that_miss_the_deadline_are_infinite():
    amounts, draw, _ = example()
    ends = OptimalBands().serve(loaded(amounts), draw).seconds
    slowest = np.array([[block[cell == CELLS].max() for cell in range(3)] for block in ends])
    deadline = np.sort(slowest.ravel())[3] * 1.01
    seconds = EnergyWithinDeadline(deadline).seconds(loaded(amounts), draw)
    late = (slowest > deadline)[:, CELLS]
    assert np.isinf(seconds[late]).all()
    np.testing.assert_allclose(seconds[~late], deadline, rtol=1e-12)
    for access in (EnergyWithinDeadline(deadline), DeadlineCheck(deadline)):
        with pytest.raises(DeadlineMissedError) as caught:
            access.serve(loaded(amounts), draw)
        block, cell = np.unravel_index(slowest.argmax(), slowest.shape)
        assert (*caught.value.item, caught.value.cell) == (block, cell)
        assert caught.value.needed == pytest.approx(slowest.max())
    checked = DeadlineCheck(2 * ends.max()).serve(loaded(amounts), draw)
    assert (checked.seconds == 2 * ends.max()).all()
    assert checked.arrived.all()


@pytest.mark.thorough(every=8)
@pytest.mark.parametrize("share", [0.05, 0.4, 0.7, 0.95])
def test_as_many_clients_as_can_take_part(share):
    """Brute force over the subsets of each cell; who stays out spends nothing and waits."""
    amounts, draw, _ = example(2)
    deadline = share * soonest(loaded(amounts), draw)
    served = EnergyWithinDeadline(deadline, late="lost").serve(loaded(amounts), draw)
    for block in range(2):
        for cell in range(3):
            mine = np.flatnonzero(cell == CELLS)
            most = max(
                (
                    size
                    for size in range(1, len(mine) + 1)
                    for some in combinations(mine, size)
                    if soonest(
                        Load(*(each[[*some]] for each in amounts)), draw.block(block).of([*some])
                    )
                    <= deadline
                ),
                default=0,
            )
            assert served.arrived[block, mine].sum() == most
    out = ~served.arrived
    assert (served.joules[out] == 0).all()
    assert (served.decision.bands_hz[out] == 0).all()
    np.testing.assert_allclose(served.seconds, deadline, rtol=1e-12)
    assert out.any()
    assert (served.transmissions == ~out).all()


@pytest.mark.parametrize("weight", [0.1, 10.0])
def test_weighted_ends_are_the_best_deadlines(weight):
    """All cells end together, and no deadline of ``EnergyWithinDeadline`` costs less."""
    amounts, draw, _ = example(1)
    after = np.array([0.3, 0.3, 0.3, 0.3, 0.0, 0.1, 0.1])
    load = loaded(amounts, start_seconds=0.2, after_seconds=after)
    served = LeastTimeAndEnergy(weight).serve(load, draw)
    ends = served.seconds + after
    for block in range(2):
        end = ends[block].max()
        np.testing.assert_allclose(ends[block], end, rtol=1e-12)
        least = end + weight * served.joules[block].sum()
        for other in end * np.array([0.9, 0.99, 0.999, 1.001, 1.01, 1.1]):
            limited = loaded(
                amounts, start_seconds=0.2, after_seconds=after, deadline_seconds=other
            )
            try:
                joules = EnergyWithinDeadline().serve(limited, draw.block(block)).joules.sum()
            except DeadlineMissedError:
                continue
            assert other + weight * joules >= least * (1 - 1e-9)


def test_weights_within_a_deadline():
    amounts, draw, _ = example(1)
    free = LeastTimeAndEnergy(1e3).serve(loaded(amounts), draw).seconds
    first, second = np.sort(free.max(-1))
    load = loaded(amounts, deadline_seconds=(first + second) / 2)
    limited = LeastTimeAndEnergy(1e3).serve(load, draw).seconds
    np.testing.assert_allclose(np.sort(limited.max(-1)), [first, (first + second) / 2], rtol=1e-5)
    load = loaded(amounts, deadline_seconds=soonest(loaded(amounts), draw) / 2)
    with pytest.raises(DeadlineMissedError):
        LeastTimeAndEnergy(1.0).serve(load, draw)
    assert not LeastTimeAndEnergy(1.0, late="lost").serve(load, draw).arrived.all()


def test_without_weight_only_slack_saves_energy():
    """The round takes no longer than with the best bands, and the other cells save energy."""
    amounts, draw, _ = example()
    fast = OptimalBands().serve(loaded(amounts), draw)
    thrifty = LeastTimeAndEnergy(0).serve(loaded(amounts), draw)
    np.testing.assert_allclose(thrifty.seconds.max(-1), fast.seconds.max(-1), rtol=1e-12)
    assert (thrifty.joules.sum(-1) < fast.joules.sum(-1)).all()


def test_nobody_and_no_work():
    amounts, draw, _ = example()
    assert LeastTimeAndEnergy(1).serve(Load(), draw.of([])).joules.shape == (2, 0)
    idle = LeastTimeAndEnergy(1).serve(Load(start_seconds=0.3), draw)
    assert (idle.seconds == 0.3).all()
    assert (idle.joules == 0).all()
    part = LeastTimeAndEnergy(1).serve(Load(*(x[:5] for x in amounts)), draw.of(range(5)))
    np.testing.assert_allclose(part.seconds.std(-1), 0, atol=1e-12)
    h = draw.h.copy()
    h[:, 0] = 0
    stuck = LeastTimeAndEnergy(1).serve(loaded(amounts), ChannelDraw(draw.network, h))
    assert np.isinf(stuck.seconds[:, 0]).all()
    assert stuck.arrived[:, 1:].all()


@pytest.mark.parametrize(
    ("cells", "snr_db", "bits", "cycles", "weight"),
    [
        ([0, 0, 1], [13, 26, 22], [3e5, 5e5, 5e5], [5e8, 0, 2e8], 1e-3),
        ([0, 0, 1], [16, -6, 3], [0, 2e5, 3e5], [3e8, 1e8, 4e8], 1.0),
        ([0, 0], [-17, -43], [1e5, 1e5], [0, 1e8], 0.0),  # the least time is worth any energy
    ],
)
def test_common_ends_of_unequal_cells(cells, snr_db, bits, cycles, weight):
    """Without a numerical warning, and no other end costs less."""
    network = Network.from_snr(cells, cpu_hz=1e9, snr_db=np.array(snr_db, dtype=float))
    draw, load = network.draws(Stream(1), [0]), Load(cycles, bits)
    found = LeastTimeAndEnergy(weight).serve(load, draw)
    end, joules = found.seconds.max(), found.joules.sum()
    assert end >= soonest(load, draw) * (1 - 1e-9)
    for other in (1.000001 * soonest(load, draw), 0.98 * end, 1.02 * end):
        if other > soonest(load, draw):
            cost = other + weight * EnergyWithinDeadline(other).serve(load, draw).joules.sum()
            assert end + weight * joules <= cost * (1 + 1e-7)


@pytest.mark.parametrize(
    "access", [EnergyWithinDeadline(late="lost"), LeastTimeAndEnergy(1.0, "lost")]
)
def test_what_surrounds_a_phase_must_fit_into_its_deadline(access):
    """Nobody can be left out if the download and the backhaul alone take longer."""
    amounts, draw, _ = example()
    load = loaded(amounts, start_seconds=0.3, after_seconds=0.3, deadline_seconds=0.5)
    with pytest.raises(DeadlineMissedError, match=r"deadline_seconds is 0\.5: cell \d"):
        access.serve(load, draw)
