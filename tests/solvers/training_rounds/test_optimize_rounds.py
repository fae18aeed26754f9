"""``optimize_rounds`` against enumeration with solvers of single rounds, and its certificate."""

import itertools

import numpy as np
import pytest

import solvers
from solvers import Status, optimize_masks_and_bands, optimize_masks_and_energy
from tests.solvers.training_rounds.networks import (
    besides,
    best_weighted,
    drawn,
    evaluated,
    least_joules,
    least_seconds,
    loads,
    rounds,
    solved,
    splits,
)

LOCAL, EDGE = [1, 2, 4], [1, 2, 3]
GRID = {"local_steps": LOCAL, "edge_rounds": EDGE}
LINKS = {
    "extra_seconds": [[0.05, 0.2, 0.1], [0.0, 0.1, 0.3]],
    "extra_seconds_per_unit": [0.02, 0.0, 0.05],
    "start_seconds": [[0.02, 0.01, 0.0], [0.03, 0.01, 0.04]],
    "start_seconds_per_unit": [[0.03, 0.05, 0.01], [0.01, 0.04, 0.02]],
}
"""Backhaul and downloads of three cells in two draws."""
TWO = {name: np.array(values)[..., :2] for name, values in LINKS.items()}


def assert_proven(solution, least):
    """The bound is no larger than the least cost, and the objective no smaller."""
    assert solution.status is Status.OPTIMAL
    assert solution.bound <= least * (1 + 1e-7)
    assert least * (1 - 1e-7) <= solution.objective <= least * (1 + 1e-4)
    assert solution.gap <= 1e-4


def points(local=LOCAL, edge=EDGE):
    return itertools.product(enumerate(local), enumerate(edge))


@pytest.mark.thorough(every=8)
@pytest.mark.parametrize(
    ("seed", "others"),
    [(0, {}), (1, {"extra_seconds": [[0.05, 0.4, 0.1]]}), (2, LINKS)],
)
def test_seconds_agree_with_enumeration(seed, others):
    network = drawn(seed, cells=3)
    found = solved(rounds(LOCAL, EDGE), **network, total=5, **others, **GRID)
    costs = {}
    for local in LOCAL:
        for sizes in splits(5, 3):
            phases = least_seconds(network, sizes, local)
            for edge in EDGE:
                ends = (edge * phases + besides(others, sizes, edge)).max(-1)
                costs[local, edge, sizes] = rounds([local], [edge])[0, 0] * ends.mean()
    best = min(costs, key=costs.get)
    assert_proven(found, costs[best])
    plan = found.value
    assert costs[plan.local_steps, plan.edge_rounds, tuple(plan.sizes)] == pytest.approx(
        found.objective, rel=1e-9
    )
    for (i, local), (k, edge) in points():
        least = min(costs[local, edge, sizes] for sizes in splits(5, 3))
        assert plan.bounds[i, k] <= least * (1 + 1e-9)
        assert not plan.costs[i, k] < least * (1 - 1e-9)


@pytest.mark.thorough(every=8)
@pytest.mark.parametrize(
    ("seed", "others", "weights"),
    [
        (0, {}, (1.0, 20.0)),
        (1, {"extra_seconds": [[0.2, 0.5], [0.1, 0.0]]}, (1.0, 20.0)),
        (2, TWO, (0.5, 1.0)),
    ],
)
def test_weighted_sums_agree_with_enumeration(seed, others, weights):
    network, local, edge = drawn(seed), [1, 3], [2]
    found = solved(
        rounds(local, edge), **network, total=3, local_steps=local, edge_rounds=edge,
        weights=weights, **others,
    )  # fmt: skip

    def lost(sizes, edge):
        return np.broadcast_to(besides(others, sizes, edge), (2, 2))

    least = min(
        rounds([h], [e])[0, 0] * best_weighted(network, sizes, h, e, lost(sizes, e), weights)
        for h in local for e in edge for sizes in splits(3, 2)
    )  # fmt: skip
    assert_proven(found, least)


@pytest.mark.thorough(every=8)
@pytest.mark.parametrize("others", [{}, {"extra_seconds": LINKS["extra_seconds"]}, LINKS])
def test_joules_by_a_deadline_agree_with_enumeration(others):
    network, total = drawn(0, cells=3), 4
    fastest = solved(rounds(LOCAL, EDGE), **network, total=total, **others, **GRID).objective
    found = solved(
        rounds(LOCAL, EDGE), **network, total=total, **others, **GRID,
        weights=(0.0, 1.0), max_seconds=3 * fastest,
    )  # fmt: skip
    least = np.inf
    for local, edge in itertools.product(LOCAL, EDGE):
        reached = rounds([local], [edge])[0, 0]
        for sizes in splits(total, 3):
            lost = np.broadcast_to(besides(others, sizes, edge), (2, 3))
            ends = (3 * fastest / reached - lost) / edge
            if (ends >= least_seconds(network, sizes, local)).all():
                joules = edge * least_joules(network, sizes, local, ends).mean()
                least = min(least, reached * joules)
    assert_proven(found, least)
    assert (found.value.rounds * found.value.seconds <= 3 * fastest * (1 + 1e-12)).all()
    assert found.value.total_joules == pytest.approx(found.objective, rel=1e-12)


def test_a_weighted_sum_with_a_limit_agrees_with_enumeration():
    network, weights = drawn(5), (1.0, 50.0)
    local, edge = [1, 3], [2]
    grid = {"local_steps": local, "edge_rounds": edge}
    free = solved(rounds(local, edge), **network, total=2, weights=weights, **grid)
    limit = 0.7 * float(free.value.rounds * free.value.seconds.max())
    found = solved(
        rounds(local, edge), **network, total=2, weights=weights, max_seconds=limit, **grid
    )
    least = min(
        reached * best_weighted(network, sizes, h, e, np.zeros((2, 2)), weights, limit / reached)
        for h in local for e in edge for sizes in splits(2, 2)
        for reached in [rounds([h], [e])[0, 0]]
    )  # fmt: skip
    assert_proven(found, least)
    assert found.objective > free.objective


@pytest.mark.thorough
def test_one_draw_and_point_agrees_with_the_joint_solvers():
    network = drawn(7, draws=1, cells=4, clients=5)
    one = {"local_steps": [3], "edge_rounds": [2]}
    snr = network["max_power_watts"] * network["gain_per_noise"]
    ready = 3 * network["cycles_per_unit"] / network["max_cpu_hz"]
    fast = optimize_masks_and_bands(
        network["bits_per_unit"], ready, snr[0], network["bandwidth_hz"], 100
    )
    found = solved([[10.0]], **network, total=100, **one)
    assert found.objective == pytest.approx(10 * 2 * fast.objective, rel=1e-6)
    changed = network | {"cycles_per_unit": 3 * network["cycles_per_unit"]}
    changed["gain_per_noise"] = network["gain_per_noise"][0]
    both = optimize_masks_and_energy(**changed, total=100, weights=(1.0, 7.0))
    found = solved([[10.0]], **network, total=100, weights=(1.0, 7.0), **one)
    assert found.objective == pytest.approx(10 * 2 * both.objective, rel=1e-4)
    end = 2 * fast.objective
    least = optimize_masks_and_energy(**changed, total=100, deadline_seconds=end)
    found = solved([[10.0]], **network, total=100, weights=(0.0, 1.0), max_seconds=20 * end, **one)
    assert found.objective == pytest.approx(20 * least.objective, rel=1e-4)
    assert_proven(found, 20 * least.objective)


def test_shared_layers_in_proportion_count():
    """Three units that all cells share, in bits and in cycles."""
    network, total = drawn(8), 5
    offsets = 3 * network["bits_per_unit"], 3 * network["cycles_per_unit"]
    shared = {"offset_bits": offsets[0], "offset_cycles": offsets[1]}
    found = solved(rounds(LOCAL, EDGE), **network, **shared, total=total, **GRID)
    least = min(
        rounds([h], [e])[0, 0] * e * least_seconds(network, sizes, h, offsets).max(-1).mean()
        for h in LOCAL for e in EDGE for sizes in splits(total, 2)
    )  # fmt: skip
    assert_proven(found, least)


def with_offsets(network, seed):
    """Shared layers of 0.1 to 10 units, other ones for the bits and cycles of each client."""
    random = np.random.default_rng(seed)
    units = 10 ** random.uniform(-1, 1, (2, *network["bits_per_unit"].shape))
    units[0] *= random.integers(0, 2, units[0].shape)
    return network | {
        "offset_bits": units[0] * network["bits_per_unit"],
        "offset_cycles": units[1] * network["cycles_per_unit"],
    }


@pytest.mark.thorough(every=8)
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("goal", ["seconds", "joules", "both", "limit", "equal"])
def test_shared_layers_in_other_proportions_agree_with_enumeration(seed, goal):
    network, total, grid = with_offsets(drawn(seed), seed), 3, ([1, 3], [2])
    network |= [{}, TWO][seed % 2]
    goals = {
        "seconds": {},
        "joules": {"weights": (0.0, 1.0)},
        "both": {"weights": (1.0, 10.0)},
        "limit": {"weights": (1.0, 10.0)},
        "equal": {"bands": "equal", "weights": (1.0, 3.0)},
    }[goal]

    def solve(h, e, **changes):
        return solved(
            rounds(h, e), **network, total=total, local_steps=h, edge_rounds=e, **goals, **changes
        )

    if goal in ("joules", "limit"):
        latest = solved(
            rounds(*grid), **network, total=total, local_steps=grid[0], edge_rounds=grid[1]
        ).value
        goals["max_seconds"] = 1.2 * float(latest.rounds * latest.seconds.max())
    found = solve(*grid)
    every = [
        solve([h], [e], cap=sizes, lower=sizes)
        for h in grid[0]
        for e in grid[1]
        for sizes in splits(total, 2)
    ]
    assert_proven(found, min(each.objective for each in every))
    again = evaluated(found.value, **network, **goals)
    assert not again.late.any()
    assert again.cost == pytest.approx(found.objective, rel=1e-4)
    if goal == "seconds":  # by another function
        offsets = network["offset_bits"], network["offset_cycles"]
        least = min(
            rounds([h], [e])[0, 0] * (e * least_seconds(network, sizes, h, offsets)
            + besides([{}, TWO][seed % 2], sizes, e)).max(-1).mean()
            for h in grid[0] for e in grid[1] for sizes in splits(total, 2)
        )  # fmt: skip
        assert_proven(found, least)


def test_shared_layers_in_other_proportions_and_a_short_limit_say_what_the_fastest_needs():
    """The limit is long enough for the part of the offsets that bounds count."""
    network = with_offsets(drawn(0), 0)
    fast = solved(rounds(LOCAL, EDGE), **network, total=4, **GRID)
    goal = {"weights": (1.0, 0.0), "total": 4, **GRID}
    least = float(fast.value.rounds * fast.value.seconds.max())
    found = solved(rounds(LOCAL, EDGE), **network, **goal, max_seconds=0.9 * least)
    assert found.status is Status.INFEASIBLE
    needed = float(found.message.split("needs ")[1].split(" s,")[0])
    assert 0.9 * least < needed <= least * (1 + 1e-5)
    assert solved(rounds(LOCAL, EDGE), **network, **goal, max_seconds=needed * 1.001).value


@pytest.mark.parametrize("seed", range(3))
def test_many_sizes_with_offsets_in_other_proportions_have_a_true_bound(seed):
    """Too many to be enumerated: the bound holds, and no unit is in the wrong cell."""
    network, total = with_offsets(drawn(seed, draws=1, cells=3), seed), 60
    found = solved([[10.0]], **network, total=total, local_steps=[2], edge_rounds=[1])
    every = np.array(list(splits(total, 3)))[..., None]
    bits = network["offset_bits"] + every * network["bits_per_unit"]
    cycles = network["offset_cycles"] + every * network["cycles_per_unit"]
    snr = network["max_power_watts"] * network["gain_per_noise"]
    seconds = solvers.allocate_bandwidth(
        bits, 2 * cycles / network["max_cpu_hz"], snr, network["bandwidth_hz"]
    ).objective.max(-1)
    least = 10 * seconds.min()
    assert found.bound <= least
    assert found.status is Status.of_gap(found.gap, 1e-4)
    assert found.objective == pytest.approx(least, rel=1e-6)


@pytest.mark.parametrize("weights", [(1.0, 0.0), (1.0, 3.0)])
def test_equal_bands_agree_with_enumeration(weights):
    network, total = drawn(10, cells=3), 5
    found = solved(
        rounds(LOCAL, EDGE), **network, total=total, bands="equal", weights=weights, **GRID
    )
    band = network["bandwidth_hz"][:, None] / 2
    power, speed = network["max_power_watts"], network["max_cpu_hz"]
    rate = band * np.log2(1 + power * network["gain_per_noise"] / band)
    least = np.inf
    for h, e, sizes in itertools.product(LOCAL, EDGE, splits(total, 3)):
        bits, cycles = loads(network, sizes, h)
        seconds = (cycles / speed + bits / rate).max((-1, -2))
        joules = (network["kappa"] * cycles * speed**2 + power * bits / rate).sum((-1, -2))
        cost = e * (weights[0] * seconds + weights[1] * joules).mean()
        least = min(least, rounds([h], [e])[0, 0] * cost)
    assert_proven(found, least)
    used = found.value.sizes > 0
    assert np.allclose(found.value.bandwidth_hz[:, used], band[used])
    best = solved(rounds(LOCAL, EDGE), **network, total=total, weights=weights, **GRID)
    assert best.objective < found.objective


@pytest.mark.thorough(every=8)
@pytest.mark.parametrize("weights", [(1.0, 0.0), (1.0, 20.0)])
def test_the_largest_mask_counts(weights):
    """R grows with the largest mask: each m is a problem with a cap of its own."""
    network, total, largest = drawn(11, spread=1.5), 6, [1.0, 4 / 3, 5 / 3, 2.0]
    grid = {"weights": weights, "total": total, **GRID}
    reached = rounds(LOCAL, EDGE, largest)
    found = solved(reached, **network, **grid, largest=largest)
    each = [
        solved(one, **network, **grid, cap=cap).objective
        for one, cap in zip(reached, (3, 4, 5, 6), strict=True)
    ]
    assert found.objective == pytest.approx(min(each), rel=1e-4)
    assert found.value.largest == largest[int(np.argmin(each))]
    assert found.value.sizes.max() * 2 / total <= found.value.largest + 1e-9


def test_fixed_masks_and_whole_models():
    """Equal bounds fix the masks; without masks, the load is that of a unit."""
    network = drawn(12, cells=3)
    reached = rounds(LOCAL, EDGE)
    for goal in ({}, {"weights": (1.0, 5.0)}, {"weights": (0.0, 1.0), "max_seconds": 1e3}):
        given = network | LINKS
        fixed = solved(reached, **given, total=6, cap=2, lower=2, **goal, **GRID)
        double = {name: 2 * np.array(given[name]) for name in given if name.endswith("_per_unit")}
        whole = solved(reached, **(given | double), total=None, **goal, **GRID)
        assert fixed.objective == pytest.approx(whole.objective, rel=1e-6)
        assert fixed.value.sizes.tolist() == [2, 2, 2]
        assert whole.value.sizes.tolist() == [1, 1, 1]
        best = solved(reached, **given, total=6, **goal, **GRID)
        assert best.objective <= fixed.objective * (1 + 1e-4)


@pytest.mark.thorough(every=8)
@pytest.mark.parametrize("seed", range(3))
def test_random_instances_are_proven(seed):
    """Gaps up to 1e-4 for all goals, on grids in which the best point is inside."""
    random = np.random.default_rng(seed)
    network = drawn(100 + seed, draws=4, cells=int(random.integers(1, 6)), clients=3)
    local, edge = np.arange(1, 9), np.arange(1, 5)
    number = len(network["bandwidth_hz"])
    extra = random.uniform(0, 0.2, number) if seed % 2 else 0.1
    given = network | {"total": 20 * number, "extra_seconds": extra}
    if seed:
        given["start_seconds_per_unit"] = random.uniform(0, 1e-2, number)
    if seed == 2:
        given |= {"start_seconds": 0.1, "extra_seconds_per_unit": random.uniform(0, 2e-2, number)}
    grid = {"local_steps": local, "edge_rounds": edge}
    fast = solved(rounds(local, edge), **given, **grid)
    weight = 10 ** random.uniform(-2, 3)
    both = solved(rounds(local, edge), **given, **grid, weights=(1.0, weight))
    limit = fast.value.rounds * fast.value.seconds.max() * random.uniform(1.0, 4.0)
    frugal = solved(rounds(local, edge), **given, **grid, weights=(0.0, 1.0), max_seconds=limit)
    for found in (fast, both, frugal):
        assert found.status is Status.OPTIMAL
        assert 0 <= found.gap <= 1e-4
    assert fast.value.total_seconds <= both.value.total_seconds * (1 + 1e-4)
    later = solved(
        rounds(local, edge), **given, **grid, weights=(0.0, 1.0), max_seconds=1.5 * limit
    )
    assert later.objective <= frugal.objective * (1 + 1e-4)


def test_the_plan_delivers_what_it_promises():
    """Bands, ends, powers and clocks keep their limits, and have the seconds and joules."""
    network, total, weights = drawn(13, cells=3) | {"lower": 1}, 9, (1.0, 30.0)
    found = solved(rounds(LOCAL, EDGE), **network, total=total, weights=weights, **LINKS, **GRID)
    plan = found.value
    bits, cycles = loads(network, plan.sizes, plan.local_steps)
    band, gain = plan.bandwidth_hz, network["gain_per_noise"]
    sent = plan.upload_seconds * band * np.log2(1 + plan.power_watts * gain / band)
    np.testing.assert_allclose(sent, np.broadcast_to(bits, sent.shape), rtol=1e-9)
    busy = cycles / plan.cpu_hz + plan.upload_seconds
    assert (busy <= plan.phase_seconds[..., None] * (1 + 1e-9)).all()
    assert (band.sum(-1) <= network["bandwidth_hz"] * (1 + 1e-9)).all()
    assert (plan.power_watts <= network["max_power_watts"] * (1 + 1e-12)).all()
    assert (plan.cpu_hz <= network["max_cpu_hz"] * (1 + 1e-12)).all()
    lost = besides(LINKS, plan.sizes, plan.edge_rounds)
    seconds = (plan.edge_rounds * plan.phase_seconds + lost).max(-1)
    np.testing.assert_allclose(plan.seconds, seconds, rtol=1e-9)
    energy = network["kappa"] * cycles * plan.cpu_hz**2 + plan.power_watts * plan.upload_seconds
    np.testing.assert_allclose(plan.joules, plan.edge_rounds * energy.sum((-1, -2)), rtol=1e-9)
    mean = (weights[0] * seconds + weights[1] * plan.joules).mean()
    assert found.objective == pytest.approx(plan.rounds * mean, rel=1e-9)


def test_whole_grids_are_solved_on_request():
    network, total = drawn(14, cells=3), 30
    given = {**network, "total": total, "extra_seconds": [0.1, 0.0, 0.3], **GRID}
    few = solved(rounds(LOCAL, EDGE), **given, weights=(1.0, 5.0)).value
    every = solved(rounds(LOCAL, EDGE), **given, weights=(1.0, 5.0), within=np.inf).value
    assert np.isnan(few.costs).any()
    assert np.isfinite(every.costs).all()
    assert (every.bounds <= every.costs).all()
    assert (every.costs <= 1.02 * every.bounds).all()
    assert (few.bounds <= every.costs).all()
    assert few.costs.min(where=np.isfinite(few.costs), initial=np.inf) == every.costs.min()


def test_unreachable_points_are_left_out():
    network, reached = drawn(15), rounds(LOCAL, EDGE)
    found = solved(reached, **network, total=4, **GRID).value
    reached[LOCAL.index(found.local_steps), EDGE.index(found.edge_rounds)] = np.inf
    again = solved(reached, **network, total=4, **GRID)
    plan = again.value
    assert (plan.local_steps, plan.edge_rounds) != (found.local_steps, found.edge_rounds)
    assert np.isinf(plan.costs).sum() == 1


@pytest.mark.extras
@pytest.mark.parametrize("weights", [(1.0, 1.0), (1.0, 30.0)])
def test_a_geometric_program_bounds_real_local_steps(weights):
    """Fact B: with fixed masks and real H, cvxpy's optimum is a little below that of integers."""
    cvxpy = pytest.importorskip("cvxpy")
    network, local = drawn(16, draws=1, cells=1), np.arange(1, 31)
    found = solved(
        rounds(local, [1]), **network, total=None, local_steps=local, edge_rounds=[1],
        weights=weights, start_seconds_per_unit=0.05, extra_seconds_per_unit=0.1,
    )  # fmt: skip
    nodes, means = np.polynomial.legendre.leggauss(14)
    band, seconds, speed = (cvxpy.Variable(2, pos=True) for _ in range(3))  # MHz, s, GHz
    end, steps = cvxpy.Variable(pos=True), cvxpy.Variable(pos=True)
    limits = [cvxpy.sum(band) <= network["bandwidth_hz"][0] / 1e6, steps >= 1, steps <= 30]
    spent = 0
    for i in range(2):
        nats = network["bits_per_unit"][0, i] * np.log(2)
        load = nats / 1e6 / (band[i] * seconds[i])
        mean = sum(m / 2 * cvxpy.exp((1 + v) / 2 * load) for v, m in zip(nodes, means, strict=True))
        sent = nats / network["gain_per_noise"][0, 0, i] * mean
        cycles = network["cycles_per_unit"][0, i] / 1e9
        spent += sent + network["kappa"] * 1e27 * cycles * steps * speed[i] ** 2
        limits += [
            sent <= network["max_power_watts"][0, i] * seconds[i],
            0.15 + cycles * steps / speed[i] + seconds[i] <= end,
            speed[i] <= network["max_cpu_hz"][0, i] / 1e9,
        ]
    reached = 60 / steps + 10 + 2.0 * steps + 3.0
    cost = reached * (weights[0] * end + weights[1] * spent)
    relaxed = cvxpy.Problem(cvxpy.Minimize(cost), limits).solve(gp=True, solver="CLARABEL")
    assert relaxed * (1 - 1e-6) <= found.objective <= relaxed * 1.01
    assert 1 < found.value.local_steps < 30


def test_what_is_impossible_says_why():
    network, reached = drawn(17), rounds(LOCAL, EDGE)

    def message(**changes):
        given = {"rounds": reached, **network, "total": 4, **GRID} | changes
        found = solved(**given)
        assert found.status is Status.INFEASIBLE
        assert found.value is None
        return found.message

    assert "never" in message(rounds=np.full((3, 3), np.inf)) or "inf everywhere" in message(
        rounds=np.full((3, 3), np.inf)
    )
    assert "caps add up to 2 units, 2 units short" in message(cap=1)
    fastest = solved(reached, **network, total=4, **GRID)
    text = message(max_seconds=0.5 * fastest.objective)
    assert "max_seconds is" in text
    assert "s more" in text
    needed = float(text.split("needs ")[1].split(" s,")[0])
    assert needed >= fastest.objective * (1 - 1e-6)
    assert solved(reached, **network, total=4, max_seconds=needed * 1.001, **GRID).value
    silent = network["gain_per_noise"].copy()
    silent[1, 1, 0] = 0
    text = message(gain_per_noise=silent, lower=1)
    assert "cell 1 of draw 1" in text
    assert "client 0" in text
    assert "whole" not in text


def test_a_cell_that_cannot_send_trains_nothing():
    network = drawn(18)
    silent = network["gain_per_noise"].copy()
    silent[1, 1, 0] = 0
    network["gain_per_noise"] = silent
    found = solved(rounds(LOCAL, EDGE), **network, total=4, weights=(1.0, 1.0), **GRID)
    assert found.value.sizes.tolist() == [4, 0]


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"rounds": [[1.0, 2.0]]}, "rounds has shape"),
        ({"local_steps": [1, 1, 2]}, "local_steps"),
        ({"weights": (0.0, 1.0)}, "max_seconds"),
        ({"weights": (0.0, 0.0)}, "weights"),
        ({"weights": 3.0}, "weights"),
        ({"weights": (1.0, -1.0)}, "weights"),
        ({"max_seconds": -1.0}, "max_seconds"),
        ({"bands": "best"}, "bands"),
        ({"total": None, "cap": 3}, "cap"),
        ({"total": None, "largest": [1.0], "rounds": rounds(LOCAL, EDGE, [1.0])}, "largest"),
        ({"largest": [2.0, 1.0], "rounds": rounds(LOCAL, EDGE, [1.0, 2.0])}, "largest"),
        ({"within": -1.0}, "within"),
        ({"extra_seconds": [1.0, 2.0, 3.0]}, "extra_seconds"),
    ],
)
def test_wrong_arguments_are_refused(changes, text):
    given = {"rounds": rounds(LOCAL, EDGE), **drawn(19), "total": 4, **GRID} | changes
    with pytest.raises(ValueError, match=text):
        solved(**given)


def test_nothing_to_do_costs_nothing():
    network = drawn(20) | {"bits_per_unit": 0.0, "cycles_per_unit": 0.0}
    for weights in ((1.0, 0.0), (1.0, 1.0)):
        found = solved(rounds(LOCAL, EDGE), **network, total=4, weights=weights, **GRID)
        assert found.objective == found.bound == 0


@pytest.mark.parametrize("bands", ["optimal", "equal"])
def test_an_evaluation_agrees_with_the_design(bands):
    network, weights = drawn(21) | TWO, (1.0, 10.0)
    found = solved(rounds(LOCAL, EDGE), **network, total=6, weights=weights, bands=bands, **GRID)
    again = evaluated(found.value, **network, weights=weights, bands=bands)
    assert again.cost == pytest.approx(found.objective, rel=1e-6)
    np.testing.assert_allclose(again.seconds, found.value.seconds, rtol=1e-4)
    assert not again.late.any()


def test_other_draws_are_late_where_the_deadline_is_too_short():
    network = drawn(22, draws=3)
    fast = solved(rounds(LOCAL, EDGE), **network, total=6, **GRID)
    limit = 1.05 * fast.value.rounds * fast.value.seconds.max()
    goal = {"weights": (0.0, 1.0), "max_seconds": limit}
    found = solved(rounds(LOCAL, EDGE), **network, total=6, **goal, **GRID)
    weak = network["gain_per_noise"] / np.array([1.0, 1.0, 30.0])[:, None, None]
    again = evaluated(found.value, **(network | {"gain_per_noise": weak}), **goal)
    assert again.late.tolist() == [False, False, True]
    assert again.seconds[2] > limit / found.value.rounds
    np.testing.assert_allclose(again.seconds[:2], limit / found.value.rounds, rtol=1e-9)
    weakest = network | {"gain_per_noise": 0.0 * weak}
    with pytest.raises(ValueError, match="gain_per_noise is 0"):
        evaluated(found.value, **weakest, **goal)
