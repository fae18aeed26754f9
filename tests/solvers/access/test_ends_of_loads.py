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
@pytest.mark.parametrize("each", [0.25, 0.3])
def test_what_surrounds_a_phase_must_fit_into_its_deadline(access, each):
    """Nobody can be left out if the download and the backhaul alone take as long, or longer."""
    amounts, draw, _ = example()
    load = loaded(amounts, start_seconds=each, after_seconds=each, deadline_seconds=0.5)
    with pytest.raises(DeadlineMissedError, match=r"deadline_seconds is 0\.5: cell \d"):
        access.serve(load, draw)


@pytest.mark.parametrize("own", [None, 1e6, 2.0])
def test_the_earliest_deadline_of_a_cell_counts(own):
    """Those of its clients and that of the access; all of a cell wait for its last start."""
    amounts, draw, _ = example()
    need = soonest(loaded(amounts), draw)
    own = None if own is None else own * need + 0.8
    deadline = need * np.array([5.0, 3.0, 4.0, 9.0, 1.5, 2.5, 6.0]) + 0.8
    start, after = 0.1 * np.arange(1, 8), np.array([0.0, 0.0, 0.1, 0.0, 0.0, 0.1, 0.0])
    load = loaded(amounts, start_seconds=start, after_seconds=after, deadline_seconds=deadline)
    served = EnergyWithinDeadline(own).serve(load, draw)
    for cell in range(3):
        mine = cell == CELLS
        end = min(deadline[mine].min(), np.inf if own is None else own)
        phase = end - start[mine].max() - after[mine].max()
        seconds = start[mine] + phase
        np.testing.assert_allclose(served.seconds[:, mine], np.tile(seconds, (2, 1)), rtol=1e-9)
        part = draw.of(np.flatnonzero(mine))
        alone = Load(*(each[mine] for each in amounts), deadline_seconds=phase)
        joules = EnergyWithinDeadline().serve(alone, part).joules
        np.testing.assert_allclose(served.joules[:, mine], joules, rtol=1e-6)
    assert served.transmissions is None


def test_clients_stay_by_the_bands_that_they_need():
    """Client 0 has few bits and needs 80 % of the band; the next two have more, and need as much.

    Clients 3 and 4 only train, until the deadline and until after it.
    """
    network = Network.from_snr(np.zeros(5, int), cpu_hz=1e9, snr_db=10.0, bandwidth_hz=1e6)
    draw = ChannelDraw(network, np.ones((5, 1)))
    window, band = np.array([0.01, 0.5, 0.5]), np.array([0.8e6, 0.3e6, 0.5e6])
    bits = 0.999 * window * band * np.log2(1 + 1e7 / band)
    assert bits[0] < bits[1:].min()
    cycles = [*1e9 * (1 - window), 1e9, 1.001e9]
    load = Load(
        cycles, [*bits / 32, 0, 0], start_seconds=0.25, after_seconds=0.25, deadline_seconds=1.5
    )
    for access in (EnergyWithinDeadline(late="lost"), EnergyWithinDeadline(9.0, late="lost")):
        served = access.serve(load, draw)
        assert served.arrived.tolist() == [False, True, True, True, False]
        assert served.transmissions.tolist() == [0, 1, 1, 1, 0]
        assert served.seconds == pytest.approx(np.full(5, 1.25), rel=1e-9)
        assert served.joules[[0, 4]].tolist() == [0, 0]
        needed = served.decision.bands_hz
        assert needed[1:3].sum() <= 1e6 * (1 + 1e-12)
        np.testing.assert_array_equal(access.seconds(load, draw), served.seconds)


def test_ends_that_are_not_decided():
    """Cells end at their deadlines but for what follows; who has no channel never does."""
    amounts, draw, _ = example()
    h = draw.h.copy()
    h[1, 4] = 0
    draw, after = ChannelDraw(draw.network, h), 0.1 * np.arange(1, 8)
    end = 3 * soonest(loaded(amounts), ChannelDraw(draw.network, np.where(h == 0, 1, h))) + 2
    served = DeadlineCheck(end).serve(loaded(amounts, after_seconds=after), draw)
    latest = np.array([0.4, 0.4, 0.4, 0.4, 0.5, 0.7, 0.7])
    wanted = np.tile(end - latest, (2, 1))
    wanted[1, 4] = np.inf
    np.testing.assert_allclose(served.seconds, wanted, rtol=1e-12)
    np.testing.assert_array_equal(served.arrived, np.isfinite(wanted))
    assert (served.joules == 0).all()


def test_the_cell_that_misses_its_deadline_most_is_named():
    """Cell 0 needs 9 s of 8.5 s; cell 1 needs 5 s of 1 s, 2 s of them before it trains."""
    network = Network.from_snr([0, 1], cpu_hz=1e9, snr_db=30.0)
    draw = ChannelDraw(network, np.ones((2, 1)))
    load = Load([9e9, 3e9], 1e-3, start_seconds=[0, 2], deadline_seconds=[8.5, 1.0])
    with pytest.raises(DeadlineMissedError) as caught:
        EnergyWithinDeadline().serve(load, draw)
    error = caught.value
    assert (error.cell, error.client, error.deadline) == (1, 1, 1.0)
    assert (error.needed, error.alone) == pytest.approx((5.0, 5.0), rel=1e-6)
    load = Load([1e9, 3e9], 1e-3, deadline_seconds=[8.5, 1.0])
    seconds = EnergyWithinDeadline().seconds(load, draw)
    assert seconds.tolist() == [pytest.approx(8.5), np.inf]
