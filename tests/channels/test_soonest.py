"""The clients that end soonest, against all sets of clients, served by the access itself."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from channels import (
    Access,
    ChannelDraw,
    EqualBands,
    EqualSlots,
    FixedRate,
    Load,
    Network,
    ReadyOrder,
    Simultaneous,
)
from channels.access.groups import seconds_in_groups
from channels.access.on_time import soonest_in_turn
from channels.cells import smallest_by_cell
from solvers import EnergyWithinDeadline, OptimalBands, OverTheAir

ACCESSES = [
    EqualSlots(),
    EqualBands(),
    FixedRate(2e6),
    ReadyOrder(),
    Simultaneous(),
    OverTheAir(),
    OptimalBands(),
    EnergyWithinDeadline(1e6),
]
CELLS = [0, 0, 0, 0, 2, 2, 2]  # of 3: cell 1 is empty
CLIENTS = len(CELLS)


def scene(seed, *, rise=False, stuck=()):
    """A draw of a network and a load of clients that differ in everything."""
    rng = np.random.default_rng(seed)
    network = Network.from_snr(
        [0, 0, 0, 0, 1, 2, 2, 2],
        cpu_hz=rng.uniform(1e9, 3e9, 8),
        snr_db=rng.uniform(0, 20, 8),
        bandwidth_hz=[1e6, 2e6, 3e6],
        antennas=2,
    ).of([0, 1, 2, 3, 5, 6, 7])
    h = rng.standard_normal((2, CLIENTS, 2, 2)) @ [1, 1j]
    h[:, list(stuck)] = 0
    noise_rise = 1 + rng.exponential(2.0, (2, 3)) if rise else None
    elements = rng.integers(1, 2e5, CLIENTS) * (rng.random(CLIENTS) < 0.9)
    load = Load(rng.uniform(0, 6e9, CLIENTS), elements, start_seconds=rng.uniform(0, 1, CLIENTS))
    return load, ChannelDraw(network, h, noise_rise)


def ends(access, load, draw, chosen):
    """When the last of the chosen clients of each cell ends, [cells]: the access serves them."""
    part = draw.of(draw.network.numbers[chosen])
    load = load.of_rows(np.flatnonzero(chosen))
    if isinstance(access, EnergyWithinDeadline):  # at full power and speed
        access = OptimalBands()
    return part.network.over_cells(np.maximum, access.seconds(load, part))


@pytest.mark.thorough(every=8)
@pytest.mark.parametrize("access", ACCESSES, ids=lambda access: type(access).__name__)
@pytest.mark.parametrize("rise", [False, True], ids=["alone", "interference"])
def test_no_other_clients_end_sooner(access, rise):
    cell_of = np.array(CELLS)
    for seed, counts in ((0, [2, 1, 2]), (1, [3, 0, 1]), (2, [1, 0, 3]), (3, [2, 0, 0])):
        load, draw = scene(seed, rise=rise)
        found = access.soonest(load, draw, np.array(counts))
        assert found.shape == (2, CLIENTS)
        for block in range(2):
            sizes = np.bincount(cell_of[found[block]], minlength=3)
            assert sizes.tolist() == [counts[0], 0, counts[2]]
            best = np.full(3, np.inf)
            for pair in itertools.product(
                itertools.combinations(range(4), counts[0]),
                itertools.combinations(range(4, CLIENTS), counts[2]),
            ):
                chosen = np.zeros(CLIENTS, dtype=bool)
                chosen[[*pair[0], *pair[1]]] = True
                best = np.minimum(best, ends(access, load, draw.block(block), chosen))
            got = ends(access, load, draw.block(block), found[block])
            assert got == pytest.approx(best, rel=1e-9)


@pytest.mark.parametrize("access", ACCESSES, ids=lambda access: type(access).__name__)
def test_who_cannot_send_is_left_out(access):
    """Clients 1 and 5 have no channel; links of a fixed rate need none."""
    load, draw = scene(4, stuck=(1, 5))
    load = Load(load.cycles, load.elements + 1, start_seconds=load.start_seconds)
    for counts in ([3, 0, 2], [4, 1, 3]):
        found = access.soonest(load, draw, np.array(counts))
        if not isinstance(access, FixedRate | Simultaneous):
            assert found.tolist() == [[True, False, True, True, True, False, True]] * 2
        elif counts[0] == 4:
            assert found.all()


@pytest.mark.parametrize("access", ACCESSES, ids=lambda access: type(access).__name__)
def test_one_client(access):
    network = Network.from_snr([0], cpu_hz=1e9, snr_db=10.0)
    draw = ChannelDraw(network, np.ones((1, 1)))
    for count in (0, 1, 2):
        found = access.soonest(Load(1e6, 100), draw, np.array([count]))
        assert found.tolist() == [count > 0]


def test_a_load_of_leading_axes():
    load, draw = scene(5)
    sizes = Load(load.cycles, load.elements * np.array([[[1.0]], [[50.0]]]))
    for access in (EqualSlots(), ReadyOrder(), OptimalBands()):
        found = access.soonest(sizes, draw, np.array([2, 0, 1]))
        assert found.shape == (2, 2, CLIENTS)
        for size, block in np.ndindex(2, 2):
            one = Load(load.cycles, sizes.elements[size, 0])
            alone = access.soonest(one, draw.block(block), np.array([2, 0, 1]))
            assert (found[size, block] == alone).all()


@pytest.mark.parametrize("counts", [[2, 1, 3], [3, 0, 2], [9, 1, 1]])
def test_seconds_in_groups_are_those_among_so_many_clients(counts):
    """With interference of the client's own cell, and as if no others of the cell were there."""
    load, draw = scene(7, rise=True)
    found = seconds_in_groups(EqualBands().seconds, load, draw, np.array(counts))
    for client, cell in enumerate(CELLS):
        others = [i for i in range(CLIENTS) if CELLS[i] == cell and i != client]
        group = np.sort([client, *others[: counts[cell] - 1]])
        alone = EqualBands().seconds(load.of_rows(group), draw.of(draw.network.numbers[group]))
        np.testing.assert_allclose(found[:, client], alone[:, group == client][:, 0])
    unwanted = seconds_in_groups(EqualBands().seconds, load, draw, np.array([1, 0, 0]))
    assert np.isinf(unwanted[:, 4:]).all()


def test_what_clients_do_alone_does_not_rank_those_that_wait_for_each_other():
    class Waiting(EqualSlots):
        coupled = True

    ranked = [type(access) for access in ACCESSES if access.ranks_alone]
    assert ranked == [EqualSlots, EqualBands, FixedRate, Simultaneous]
    assert not Waiting().ranks_alone


def test_a_users_access_gets_groups_of_the_cell():
    """The default asks for the seconds of as many clients per cell as there will be."""
    seen = []

    class Counting(Access):
        def serve(self, load, draw):
            raise NotImplementedError

        def seconds(self, load, draw):
            seen.append(draw.network.cell_sizes.tolist())
            network = draw.network
            return load.elements * network.cell_sizes[network.cell_of]

    draw = scene(6)[1]
    found = Counting().soonest(Load(0.0, [4, 3, 2, 1, 1, 3, 2]), draw, np.array([3, 0, 2]))
    assert found.tolist() == [[False, True, True, True, True, False, True]] * 2
    assert seen == [[3, 3, 2, 2]]  # the last group of each cell is filled up


@pytest.mark.parametrize("seed", range(20))
def test_uploads_in_turn_with_ties(seed):
    """Whole numbers, so that equal ends and uploads of 0 occur."""
    rng = np.random.default_rng(seed)
    size = int(rng.integers(2, 9))
    ready, alone = rng.integers(0, 6, size) * 1.0, rng.integers(0, 4, size) * 1.0
    alone[rng.random(size) < 0.1] = np.inf
    able = np.flatnonzero(np.isfinite(alone))

    def last(chosen):
        free, latest = 0.0, 0.0
        for i in sorted(chosen, key=lambda i: ready[i]):
            done = ready[i]
            if alone[i]:
                free = done = max(free, ready[i]) + alone[i]
            latest = max(latest, done)
        return latest

    for count in range(1, size + 1):
        found = np.flatnonzero(soonest_in_turn(ready, alone, count))
        assert len(found) == min(count, len(able))
        assert np.isfinite(alone[found]).all()
        best = min(map(last, itertools.combinations(able, len(found))))
        assert last(found) == pytest.approx(best, rel=1e-12)


def test_smallest_values_of_each_cell():
    cell_of = np.array([0, 0, 0, 2, 2])
    found = smallest_by_cell(
        [[3, 1, 1, np.inf, 5], [2, 2, 2, np.nan, 1]], cell_of, np.array([2, 1, 2])
    )
    assert found.tolist() == [
        [False, True, True, False, True],
        [True, True, False, False, True],
    ]
    tied = smallest_by_cell([1, 1, 1, 0, 0], cell_of, np.array([1, 0, 1]), ties=[3, 2, 1, 1, 0])
    assert tied.tolist() == [False, False, True, False, True]


@given(seed=st.integers(0, 10**6), lazily=st.booleans())
def test_smallest_values_agree_with_sorting(seed, lazily):
    """Few different values, so that most are equal; some are infinite or NaN."""
    random = np.random.default_rng(seed)
    sizes, cells = random.integers(0, 6, 3), 3
    cell_of = np.repeat(np.arange(cells), sizes)
    counts = random.integers(0, 5, cells)
    values = random.choice([0.0, 1.0, 2.0, np.inf, np.nan], len(cell_of))
    ties = random.choice([0.0, 1.0, 2.0], len(cell_of))
    asked = (lambda places: ties[places]) if lazily else ties
    found = smallest_by_cell(values, cell_of, counts, asked)
    for cell, count in enumerate(counts):
        mine = [i for i in np.flatnonzero(cell_of == cell) if values[i] < np.inf]
        best = sorted(mine, key=lambda i: (values[i], ties[i], i))[:count]
        assert np.flatnonzero(found & (cell_of == cell)).tolist() == sorted(best)


def test_clients_that_only_train_end_when_they_are_ready():
    """One upload and the earlier of the idle clients end at 3.5 s; both idle clients at 4.4 s."""
    ready, alone = np.array([0.0, 0.0, 4.4, 3.5]), np.array([3.0, 3.0, 0.0, 0.0])
    found = soonest_in_turn(ready, alone, 2)
    assert found[3]
    assert found[:2].sum() == 1
