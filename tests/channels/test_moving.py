"""Clients that move: their ways, and the gains that follow from them."""

from dataclasses import dataclass, replace

import numpy as np
import pytest
from scipy.special import j0
from scipy.stats import multivariate_normal, norm

import channels
from channels import (
    Disc,
    FileLayout,
    Hexagonal,
    LogDistance,
    Mobility,
    Positions,
    PositionTrace,
    RandomWaypoint,
    Ring,
    Stream,
    Uma,
    Umi,
    Variant,
    placed_network,
    save_network,
)

LINKS = 10_000
STREAM, BLOCKS = Stream(5), Stream(5, ("channel",))


def network(mobility, layout=None, path_loss=None, **others):
    values = {"cells": 3, "clients": 30, "antennas": 2} | others
    layout, path_loss = layout or Hexagonal(200.0), path_loss or Umi()
    return placed_network(layout, path_loss, stream=STREAM, cpu_hz=1e9, mobility=mobility, **values)


@dataclass(frozen=True)
class Jumps(Mobility):
    """Every client is in block b where ``to`` says, relative to its base station."""

    to: tuple[tuple[float, float], ...]

    def motion(self, where, layout, block_seconds, stream, shortest_m):
        stations = where.base_stations_m[where.cell_of]
        return At(replace(where, clients_m=stations + self.to[0]), self.to)


@dataclass(frozen=True, eq=False)
class At:
    where: Positions
    to: tuple[tuple[float, float], ...]

    def positions_m(self, blocks, clients):
        station = self.where.base_stations_m[self.where.cell_of[clients]]
        return station + np.array([self.to[block] for block in blocks])[:, None]


def ways(rule, layout, blocks, clients=30, seconds=1.0):
    moving = network(rule, layout, clients=clients, block_seconds=seconds)
    links = moving.fading.links
    return moving.positions_m(blocks), links.where


@pytest.mark.parametrize("reuse_factor", [None, 1])
def test_clients_at_speed_0_have_the_channels_of_a_network_that_stands(reuse_factor):
    still, plain = (
        network(rule, reuse_factor=reuse_factor) for rule in (RandomWaypoint(0.0), None)
    )
    assert np.array_equal(still.gain_db, plain.gain_db)
    draws = [each.draws(BLOCKS, [0, 1, 77]) for each in (still, plain)]
    assert np.array_equal(draws[0].h, draws[1].h)
    assert np.array_equal(draws[0].snr_hz, draws[1].snr_hz)
    assert draws[1].changes_db is None
    assert np.array_equal(still.positions_m([0, 9]), plain.positions_m([0, 9]))
    moves = network(RandomWaypoint(3.0), reuse_factor=reuse_factor)
    assert np.array_equal(moves.draw(BLOCKS, 0).h, plain.draw(BLOCKS, 0).h)
    assert not np.array_equal(moves.draw(BLOCKS, 9).h, plain.draw(BLOCKS, 9).h)


@pytest.mark.parametrize("layout", [Disc(120.0), Hexagonal(240.0), Ring(90.0)])
def test_walks_have_their_speed_and_stay_in_their_cell(layout):
    """Chords of two steps are 2 v T long but at corners; a step is never longer than v T."""
    points, where = ways(RandomWaypoint(36.0), layout, range(400), seconds=0.5)
    steps = np.hypot(*np.diff(points, axis=0).T)
    assert steps.max() <= 5.0 + 1e-9
    assert np.median(steps) == pytest.approx(5.0, abs=1e-9)
    assert (steps > 5.0 - 1e-9).mean() > 0.9
    assert np.array_equal(points[0], where.clients_m)
    apart = points - where.base_stations_m[where.cell_of]
    corner = {"Disc": 120.0, "Hexagonal": 240 / np.sqrt(3), "Ring": 90.0}[type(layout).__name__]
    assert np.hypot(*apart.T).max() <= corner + 1e-9
    if isinstance(layout, Hexagonal):
        normals = np.array([(np.cos(a), np.sin(a)) for a in np.pi / 3 * np.arange(6)])
        assert (apart @ normals.T).max() <= 120.0 + 1e-6


def test_speeds_are_uniform_and_each_client_keeps_its_own():
    points, _ = ways(RandomWaypoint((18.0, 54.0)), Disc(3000.0), [10, 11, 50, 51], clients=2000)
    speeds = [np.hypot(*(points[i + 1] - points[i]).T) for i in (0, 2)]
    straight = np.abs(speeds[0] - speeds[1]) < 1e-6
    assert straight.mean() > 0.97
    speeds = speeds[0][straight]
    assert speeds.min() >= 5 - 1e-9
    assert speeds.max() <= 15 + 1e-9
    assert abs(speeds.mean() - 10) < 4 * 10 / np.sqrt(12 * 2000)


def test_positions_are_those_of_uniform_legs():
    """At any time a client is at a uniform place of a leg, weighted by its length.

    E r^2 from a million pairs of ends; standard error 0.0035 R^2 of the 4000 clients.
    """
    points, where = ways(RandomWaypoint(360.0), Disc(1000.0), [700], clients=4000, seconds=3.0)
    squares = ((points[0] - where.base_stations_m[where.cell_of]) ** 2).sum(-1) / 1000.0**2
    random = np.random.default_rng(1)
    ends = np.sqrt(random.random((2, 10**6))) * np.exp(2j * np.pi * random.random((2, 10**6)))
    length = np.abs(ends[1] - ends[0])
    mean_square = (np.abs(ends) ** 2).sum(0) + (ends[0] * ends[1].conj()).real
    assert squares.std() / np.sqrt(4000) < 0.004
    assert abs(squares.mean() - (length * mean_square).sum() / 3 / length.sum()) < 0.015


def test_a_way_is_walked_again_after_its_last_leg():
    """After 128 legs of 0.905 R on average, with a standard deviation of 0.042 sqrt(128) R."""
    moving = network(RandomWaypoint(36.0), Disc(100.0), cells=1, clients=1, block_seconds=0.1)
    points = moving.positions_m(range(15_000), np.array([0]))[:, 0]
    windows = np.lib.stride_tricks.sliding_window_view(points, 50, axis=0)
    away = np.abs(windows[2000:] - windows[0]).max((1, 2))
    metres = 2000 + int(away.argmin())
    assert away.min() < 1.0
    assert abs(metres - 128 * 90.5) < 4 * 42 * np.sqrt(128)


@pytest.mark.parametrize("rule", [RandomWaypoint((5.0, 60.0)), Jumps(((50, 0), (60, 0), (70, 9)))])
def test_some_clients_and_blocks_have_the_channels_of_all(rule):
    moving = network(rule, reuse_factor=1, block_seconds=2.0)
    whole = moving.draws(BLOCKS, [0, 1, 2])
    for block in (2, 0, 1):
        some = moving.draw(BLOCKS, block, [1, 11, 29])
        assert np.array_equal(some.h, whole.h[block][[1, 11, 29]])
        assert np.array_equal(some.noise_rise, whole.noise_rise[block])
        assert np.array_equal(some.changes_db, whole.changes_db[block][[1, 11, 29]])
        assert np.array_equal(whole.block(block).of([1, 11, 29]).path_gain, some.path_gain)
    assert np.array_equal(
        moving.fading.draw(BLOCKS, 2, np.array([11]), moving._root), whole.h[2][[11]]
    )


def test_gains_follow_the_path_loss():
    """Without shadowing: the gains, and the interference, are those of a network at that place."""
    model = LogDistance(shadowing_db=0.0)
    moving = network(RandomWaypoint(90.0), path_loss=model, reuse_factor=1, block_seconds=2.0)
    links = moving.fading.links
    points = moving.positions_m([7], np.arange(30))[0]
    there = placed_network(
        replace(links.where, clients_m=points), model, stream=STREAM, cpu_hz=1e9, antennas=2,
        reuse_factor=1,
    )  # fmt: skip
    draws = [each.draw(BLOCKS, 7) for each in (moving, there)]
    changes = there.gain_db - moving.gain_db
    assert np.allclose(draws[0].changes_db, changes, atol=1e-9)
    assert np.abs(changes).max() > 3
    assert np.allclose(draws[0].noise_rise, draws[1].noise_rise, rtol=1e-9)
    assert np.allclose(draws[0].snr_hz, draws[1].snr_hz, rtol=1e-5)
    assert np.allclose(10 * np.log10(draws[0].path_gain), changes)
    # Nearer than the model's range, a client is heard as at its shortest distance.
    near = network(Jumps(((50, 0), (1, 0))), path_loss=Umi(), clients=3)
    edge = network(Jumps(((50, 0), (10, 0))), path_loss=Umi(), clients=3)
    sight = Variant(Umi(), line_of_sight=True, shadowing_db=0.0)
    changes = [
        replace(each.fading.links, path_loss=sight).changes_db([1], np.arange(3))
        for each in (near, edge)
    ]
    assert np.array_equal(changes[0], changes[1])


@pytest.mark.thorough(every=4)
@pytest.mark.parametrize(
    ("model", "sight", "reach"),
    [
        (LogDistance(shadowing_db=8.0), None, 50.0),
        (Umi(), True, 10.0),
        (Umi(), False, 13.0),
        (Uma(), True, 37.0),
        (Uma(), False, 50.0),
        (channels.Rma(), False, 120.0),
        (channels.InH(), True, 10.0),
        (channels.InH(), False, 6.0),
        (channels.Tr36814(), None, 50.0),
    ],
)
def test_shadowing_has_gudmundsons_correlation(model, sight, reach):
    """Three points of a ring: var of differences 2 s^2 (1 - exp(-d / d_corr)), which are normal.

    10,000 links; the relative standard error of a variance is 1.4 %.
    """
    points = [(60.0 * np.cos(a), 60.0 * np.sin(a)) for a in (0.0, 0.15, 0.5)]
    std = 5.0 if sight is not None else model.std_db
    if sight is not None:
        model = Variant(model, line_of_sight=sight, shadowing_db=std)
    moving = network(Jumps(tuple(points)), Ring(60.0), model, cells=1, clients=LINKS)
    one, two = moving.fading.links.changes_db([1, 2], np.arange(LINKS))
    for change, first, second in ((one, 0, 1), (two, 0, 2), (two - one, 1, 2)):
        apart = np.hypot(*np.subtract(points[first], points[second]))
        variance = 2 * std**2 * (1 - np.exp(-apart / reach))
        assert change.var() == pytest.approx(variance, rel=0.06)
        assert abs(change.mean()) < 4 * np.sqrt(variance / LINKS)
        ranks = (np.abs(change) < np.sqrt(variance)).mean()
        assert abs(ranks - 0.6827) < 0.025
    start = -moving.placement.shadowing_db
    assert (start + one).std() == pytest.approx(std, rel=0.03)


def test_lines_of_sight_have_their_probability_and_correlation():
    """At 30 m and back at 80 m elsewhere: P is the model's; P of both that of a normal copula."""
    model, clients = Variant(Umi(), shadowing_db=0.0), LINKS
    places = ((80.0, 0.0), (30.0, 0.0), (80 * np.cos(0.4), 80 * np.sin(0.4)))
    moving = network(Jumps(places), Ring(80.0), model, cells=1, clients=clients)
    sight = [moving.placement.line_of_sight]
    for block, metres in ((1, 30.0), (2, 80.0)):
        loss = -moving.gain_db - moving.fading.links.changes_db([block], np.arange(clients))[0]
        clear, blocked = (float(model.loss_db(metres, s)) for s in (True, False))
        sight.append(np.isclose(loss, clear))
        assert (np.isclose(loss, clear) | np.isclose(loss, blocked)).all()
        assert abs(sight[-1].mean() - model.los_probability(metres)) < 4 * 0.5 / np.sqrt(clients)
    for first, second in ((0, 1), (0, 2), (1, 2)):
        apart = np.hypot(*np.subtract(places[first], places[second]))
        limits = [norm.ppf(model.los_probability(np.hypot(*places[i]))) for i in (first, second)]
        copula = multivariate_normal([0, 0], [[1, np.exp(-apart / 50)], [np.exp(-apart / 50), 1]])
        both = (sight[first] & sight[second]).mean()
        assert abs(both - copula.cdf(limits)) < 4 * 0.5 / np.sqrt(clients)


def test_a_round_of_a_million_costs_its_participants(monkeypatch):
    rows = []
    offsets = Disc.offsets
    monkeypatch.setattr(Disc, "offsets", lambda *a: rows.append(len(a[1])) or offsets(*a))
    moving = network(RandomWaypoint(30.0), Disc(500.0), cells=1, clients=10**6)
    moving.draws(BLOCKS, range(5), [3, 500_000, 999_999])
    assert rows == [10**6, 3 * 127]


def trace(tmp_path, *rows, header="client,round,x_m,y_m"):
    path = tmp_path / "walk.csv"
    path.write_text("\n".join((header, *rows)), encoding="utf-8")
    return PositionTrace(path)


def test_gaps_of_a_trace_are_walked(tmp_path):
    rows = "2,3,30,0", "2,5,50,20", "0,1,0,40"
    moving = network(trace(tmp_path, *rows), Disc(100.0), cells=1, clients=4)
    way = moving.positions_m([0, 2, 3, 4, 99], np.arange(4))
    assert way[:, 2].tolist() == [[30, 0], [30, 0], [40, 10], [50, 20], [50, 20]]
    assert (way[:, 0] == [0, 40]).all()
    plain = network(None, Disc(100.0), cells=1, clients=4)
    assert np.array_equal(way[0, [1, 3]], plain.placement.clients_m[[1, 3]])
    assert moving.placement.distance_m[[0, 2]].tolist() == [40.0, 30.0]
    changes = moving.draws(BLOCKS, range(5)).changes_db
    assert (changes[:, [0, 1, 3]] == 0).all()
    assert (changes[:3, 2] == 0).all()
    assert (changes[3:, 2] != 0).all()


def test_times_of_a_trace_in_seconds(tmp_path):
    rule = trace(tmp_path, "0,0,10,0", "0,4,50,0", header="x_m, client, seconds, y_m")
    rule.path.write_text("x_m, client, seconds, y_m\n10, 0, 0, 0\n50, 0, 4, 0\n")
    moving = network(rule, Ring(30.0), cells=1, clients=1, block_seconds=0.5)
    way = moving.positions_m([0, 1, 4, 8], np.array([0]))
    assert way[:, 0, 0].tolist() == [10.0, 15.0, 30.0, 50.0]


def test_clients_of_a_trace_are_those_of_the_file(tmp_path):
    """Clients are sorted by cell; the trace has the order of the layout's file."""
    places = tmp_path / "places.csv"
    places.write_text(
        "kind,x_m,y_m\nbase_station,0,0\nbase_station,500,0\nclient,510,30\nclient,0,20\n"
    )
    rule = trace(tmp_path, "0,2,510,90")
    moving = network(rule, FileLayout(places), cells=None, clients=None)
    assert moving.placement.distance_m[0] == 20.0
    moves = moving.positions_m([1])[0]
    assert moves.tolist() == [[0.0, 20.0], [510.0, 90.0]]


@pytest.mark.parametrize(
    ("rows", "header", "words"),
    [
        (["0,1,1,1"], "client,x_m,y_m,z", "the columns are client, x_m, y_m, z. Give client"),
        (["0,1,90,1,2"], "client,round,x_m,y_m,z_m", "it has z_m, and client 1 has no row"),
        (["0,0,1,1"], "client,round,x_m,y_m", "line 2: round is 0. Give 1 or more"),
        (["0,1,1,1", "4,1,1,1"], "client,round,x_m,y_m", "line 3: client is 4. Give 0 to 3"),
        (["0.5,1,1,1"], "client,round,x_m,y_m", "line 2: client is 0.5"),
        (["0,-1,1,1"], "client,seconds,x_m,y_m", "seconds is -1. Give 0 or more"),
        (["0,1,a,1"], "client,round,x_m,y_m", "line 2: x_m is 'a'. Give a number"),
        (["0,1,5"], "client,round,x_m,y_m", "line 2: y_m is ''. Give a number"),
        (["0,1,30,1", "0,1,40,1"], "client,round,x_m,y_m", "two rows are of one client and time"),
        (["0,1,1,1,9"], "client,round,x_m,y_m,y_m", "two columns are called y_m. Remove one"),
        (["0,1,0,1"], "client,round,x_m,y_m", "distance_m contains 1: Umi needs metres from 10"),
    ],
)
def test_wrong_traces_are_refused(tmp_path, rows, header, words):
    with pytest.raises(ValueError, match=words.replace(".", r"\.")):
        network(trace(tmp_path, *rows, header=header), Disc(100.0), cells=1, clients=4)


def test_refusals(tmp_path):
    with pytest.raises(ValueError, match="the gains do not follow from positions"):
        channels.section_vi_c(cells=1, clients=2, stream=STREAM).positions_m([0])
    with pytest.raises(ValueError, match=r"speed_kmh is -1.0: give 0 to 1000 km/h"):
        RandomWaypoint(-1.0)
    with pytest.raises(ValueError, match=r"speed_kmh is \(3.0, 1.0\)"):
        RandomWaypoint((3.0, 1.0))
    with pytest.raises(ValueError, match="block_seconds is 0: give seconds above 0"):
        network(RandomWaypoint(), block_seconds=0)
    with pytest.raises(ValueError, match='interferers is "active", and clients move'):
        network(RandomWaypoint(), reuse_factor=1, interferers="active")
    own = Positions([[0, 0]], [[30, 40]], cell_of=[0])
    with pytest.raises(ValueError, match="need the area of a cell, which Positions does not have"):
        network(RandomWaypoint(), own, cells=None, clients=None)
    with pytest.raises(ValueError, match="cannot be stored: its clients move"):
        save_network(network(RandomWaypoint()), tmp_path / "network.npz")
    with pytest.raises(ValueError, match=r"cannot be read as CSV: No such file"):
        network(PositionTrace(tmp_path / "none.csv"))


def test_a_sample_spreads_its_positions_over_the_blocks():
    moving = network(Jumps(tuple((50.0 + b, 0.0) for b in range(20))), path_loss=LogDistance())
    sampled = moving.fading.sampled(20)
    changes = sampled.changes_db(range(8), np.arange(3))
    among = moving.fading.changes_db(range(20), np.arange(3))
    taken = [int(np.flatnonzero((among == row).all(1))[0]) for row in changes]
    assert taken == [int(20 * (0.6180339887498949 * n % 1)) for n in range(8)]
    assert min(taken) == 0
    assert max(taken) > 16


@pytest.mark.parametrize("model", ["jakes", "ar1"])
def test_fading_has_the_doppler_shift_of_each_speed(model):
    """J0(2 pi v f_c T / c) between blocks, for v = 3 and 9 m/s; standard error 0.016."""
    rule, street = RandomWaypoint((10.8, 32.4), model), Umi(carrier_ghz=3.0)
    values = {"cells": 1, "clients": 40_000, "block_seconds": 0.004, "antennas": 1}
    moving = network(rule, Ring(80.0), street, **values)
    fading = moving.fading.fading
    speeds = rule.speeds(STREAM.child("mobility")).of(np.arange(40_000))
    steps = np.diff(moving.positions_m([0, 1], np.arange(9)), axis=0)[0]
    assert np.allclose(np.hypot(*steps.T), 0.004 * speeds[:9])
    h = [fading.draw(BLOCKS, block, np.arange(40_000), np.eye(1))[:, 0] for block in (6, 7)]
    for low in (3.0, 8.7):
        chosen = (speeds >= low) & (speeds < low + 0.3)
        actual = (h[0] * h[1].conj())[chosen].mean()
        middle = speeds[chosen].mean() * 3e9 / 3e8
        assert abs(actual - j0(2 * np.pi * middle * 0.004)) < 4 / np.sqrt(chosen.sum())
    some = np.array([7, 300])
    alone = fading.draw(BLOCKS, 7, some, np.eye(1))
    assert np.array_equal(alone, fading.draw(BLOCKS, 7, np.arange(400), np.eye(1))[some])


def test_one_speed_is_one_shift():
    moving = network(RandomWaypoint(36.0, "ar1"), path_loss=Variant(Umi(3.0)), block_seconds=0.1)
    assert moving.fading.fading == channels.Doppler(channels.Rayleigh(), 100.0, 0.1, "ar1")
    with pytest.raises(ValueError, match="doppler is 'ar1', and the path loss has no carrier"):
        network(RandomWaypoint(36.0, "ar1"), path_loss=LogDistance())
    with pytest.raises(TypeError, match="doppler_hz applies to Rayleigh and Rician fading"):
        network(RandomWaypoint(36.0, "ar1"), fading=channels.Doppler(doppler_hz=1.0))
    with pytest.raises(ValueError, match="doppler is 'clarke': choose none, jakes or ar1"):
        RandomWaypoint(36.0, "clarke")


@pytest.mark.parametrize("from_file", [False, True])
def test_clients_in_the_strongest_cell_move_as_they_were_placed(from_file, tmp_path):
    """Only the cell differs: ways, and links to the cell of each client, are those as placed."""
    rule, layout, sizes = RandomWaypoint(60.0), Hexagonal(200.0), {"cells": 3, "clients": 30}
    if from_file:
        placed = layout.place(3, 30, STREAM.child("positions"))
        order = np.random.default_rng(1).permutation(30)
        path = tmp_path / "places.csv"
        lines = ["kind,x_m,y_m,cell"]
        lines += [f"base_station,{x},{y}," for x, y in placed.base_stations_m.tolist()]
        where = placed.clients_m[order].tolist()
        cells = placed.cell_of[order].tolist()
        lines += [f"client,{x},{y},{c}" for (x, y), c in zip(where, cells, strict=True)]
        path.write_text("\n".join(lines))
        rows = (f"{i},{r},{x + 9 * r},{y}" for i, (x, y) in enumerate(where) for r in (1, 3))
        rule = trace(tmp_path, *rows)
        layout, sizes = FileLayout(path), {"cells": None, "clients": None}
    values = sizes | {"reuse_factor": 1, "block_seconds": 3.0}
    plain = network(rule, layout, **values)
    chosen = network(rule, layout, **values, association="strongest")
    assert not np.array_equal(chosen.cell_of, plain.cell_of)
    place = [
        int(np.flatnonzero((plain.placement.clients_m == point).all(1))[0])
        for point in chosen.placement.clients_m
    ]
    blocks = [0, 1, 2]
    assert np.array_equal(chosen.positions_m(blocks), plain.positions_m(blocks)[:, place])
    changes = chosen.fading.changes_db(blocks, np.arange(30))
    links = plain.fading.links
    for row, client in enumerate(place):
        cell = int(chosen.cell_of[row])
        expected = links.changes_db(blocks, np.array([client]), cell)[:, 0]
        assert np.allclose(changes[:, row], expected, atol=1e-9)
    assert np.abs(changes[2]).max() > 0
