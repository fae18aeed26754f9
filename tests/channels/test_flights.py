"""Clients that move in three dimensions."""

from dataclasses import dataclass, replace

import numpy as np
import pytest

from channels import (
    AirToGround,
    Disc,
    FileLayout,
    LogDistance,
    Positions,
    PositionTrace,
    RandomWaypoint,
    Stream,
    UmaAv,
    Variant,
    placed_network,
)

STREAM, BLOCKS = Stream(5), Stream(5, ("channel",))
FLIGHT = "0,1,60,0,30", "0,3,60,0,90", "1,1,100,0,200", "1,3,300,0,100"
GROUND = Positions([[0.0, 0.0]], [[60, 0], [100, 0]], cell_of=[0, 0])


def flight(tmp_path, *rows, header="client,round,x_m,y_m,z_m"):
    path = tmp_path / "flight.csv"
    path.write_text("\n".join((header, *rows)))
    return PositionTrace(path)


def network(layout, path_loss, mobility, **others):
    values = {"stream": STREAM, "cpu_hz": 1e9, "mobility": mobility} | others
    return placed_network(layout, path_loss, **values)


def test_gains_are_those_of_the_height_in_each_block(tmp_path):
    """Client 0 climbs from 30 to 90 m at one place; client 1 flies out and down."""
    sight = Variant(UmaAv(), line_of_sight=True, shadowing_db=0.0)
    moving = network(GROUND, sight, flight(tmp_path, *FLIGHT))
    assert moving.positions_m([1])[0].tolist() == [[60, 0, 60], [200, 0, 150]]
    heights = [[30, 200], [60, 150], [90, 100], [90, 100]]
    distances = [[60, 100], [60, 200], [60, 300], [60, 300]]
    loss = [
        [float(UmaAv(client_height_m=h).loss_db(d, True)) for h, d in zip(*block, strict=True)]
        for block in zip(heights, distances, strict=True)
    ]
    gain_db = moving.gain_db + moving.draws(BLOCKS, range(4)).changes_db
    assert np.allclose(gain_db, -np.array(loss), atol=1e-12)


def test_a_client_that_climbs_keeps_the_shadowing_of_its_place(tmp_path):
    """Its standard deviation falls by exp(-0.0066 h) with the height."""
    moving = network(GROUND, Variant(UmaAv(), line_of_sight=True), flight(tmp_path, *FLIGHT))
    change_db = moving.draws(BLOCKS, [2]).changes_db[0, 0]
    shadowing_db = float(moving.placement.shadowing_db[0])
    assert shadowing_db != 0
    loss = [float(UmaAv(client_height_m=h).loss_db(60.0, True)) for h in (30, 90)]
    expected = loss[0] - loss[1] + shadowing_db * (1 - np.exp(-0.0066 * 60))
    assert change_db == pytest.approx(expected, abs=1e-9)


def test_lines_of_sight_follow_the_height(tmp_path):
    """Above 100 m all links have one: those without it at 23 m gain it, and no link loses it."""
    clients = 2000
    rows = (f"{c},{r},500,{c / 1000},{h}" for c in range(clients) for r, h in ((1, 23), (2, 101)))
    where = Positions([[0.0, 0.0]], np.full((clients, 2), 500.0), np.zeros(clients, dtype=int))
    moving = network(where, Variant(UmaAv(), shadowing_db=0.0), flight(tmp_path, *rows))
    share = moving.placement.line_of_sight.mean()
    likely = float(UmaAv(client_height_m=23.0).los_probability(500.0))
    assert abs(share - likely) < 4 * np.sqrt(likely * (1 - likely) / clients)
    gain_db = moving.gain_db + moving.draws(BLOCKS, [1]).changes_db[0]
    loss = UmaAv(client_height_m=101.0).loss_db(moving.placement.distance_m, True)
    assert np.allclose(gain_db, -loss, atol=1e-9)


@pytest.mark.parametrize("handover", ["none", "strongest"])
def test_flights_at_the_height_of_the_path_loss_are_those_on_a_plane(tmp_path, handover):
    """With and without the column ``z_m``, to the bit."""
    where = Positions([[0.0, 0.0], [400, 0]], [[60, 0], [300, 0]], cell_of=[0, 1])
    ways = ("0,1,60,0", "0,9,390,30", "1,1,300,0", "1,9,200,80")
    plane = network(
        where,
        UmaAv(client_height_m=50.0),
        flight(tmp_path, *ways, header="client,round,x_m,y_m"),
        handover=handover,
    )
    high = flight(tmp_path, *(f"{row},50" for row in ways))
    space = network(where, UmaAv(client_height_m=120.0), high, handover=handover)
    for block in (0, 4, 8):
        draws = [each.served(block).draws(BLOCKS, [block, 9]) for each in (plane, space)]
        assert np.array_equal(draws[0].h, draws[1].h)
        assert np.array_equal(draws[0].snr_hz, draws[1].snr_hz)
        assert draws[0].network.numbers.tolist() == draws[1].network.numbers.tolist()


def test_clients_move_below_flying_edge_servers(tmp_path):
    """Heights of the layout file stay with those that walk; a trace with heights changes them."""
    places = tmp_path / "places.csv"
    places.write_text(
        "kind,x_m,y_m,z_m\nbase_station,0,0,150\nbase_station,900,0,400\n"
        "client,100,50,1.5\nclient,950,60,20\n"
    )
    model = Variant(AirToGround(), line_of_sight=True)
    walk = flight(tmp_path, "0,1,100,50", "0,2,300,50", header="client,round,x_m,y_m")
    moving = network(FileLayout(places), model, walk, reuse_factor=1)
    assert moving.positions_m([1])[0].tolist() == [[300, 50, 1.5], [950, 60, 20]]
    loss = [
        float(AirToGround(base_station_height_m=high).loss_db(np.hypot(x, 50), True))
        for high, x in ((150, 100), (150, 300), (400, 800), (400, 600))
    ]
    links = moving.fading.links
    near, far = (links.changes_db([1], np.array([0]), cell)[0, 0] for cell in (0, 1))
    assert near == pytest.approx(loss[0] - loss[1], abs=1e-9)
    assert far == pytest.approx(loss[2] - loss[3], abs=1e-9)
    falls = network(FileLayout(places), model, flight(tmp_path, "1,1,950,60,20", "1,2,950,60,2"))
    assert falls.positions_m([1])[0].tolist() == [[100, 50, 1.5], [950, 60, 2]]
    low, high = (
        AirToGround(base_station_height_m=400.0, client_height_m=h).loss_db(np.hypot(50, 60), True)
        for h in (2.0, 20.0)
    )
    change_db = falls.draws(BLOCKS, [1]).changes_db[0, 1]
    assert change_db == pytest.approx(float(high - low), abs=1e-9)


@dataclass(frozen=True)
class Roofs(Disc):
    """A disc whose clients are at 70 m."""

    def place(self, cells, clients, stream, shortest_m=10.0):
        where = super().place(cells, clients, stream, shortest_m)
        points = np.column_stack([where.clients_m, np.full(len(where.clients_m), 70.0)])
        return replace(where, clients_m=points)


def test_waypoints_keep_the_heights_of_the_layout():
    values = {"cells": 2, "clients": 6, "block_seconds": 9.0}
    high = network(Roofs(200.0), UmaAv(), RandomWaypoint(60.0), **values)
    plane = network(Disc(200.0), UmaAv(client_height_m=70.0), RandomWaypoint(60.0), **values)
    assert (high.positions_m([0, 5])[..., 2] == 70).all()
    assert np.array_equal(high.positions_m([0, 5])[..., :2], plane.positions_m([0, 5]))
    assert np.array_equal(high.draws(BLOCKS, [0, 5]).h, plane.draws(BLOCKS, [0, 5]).h)


@pytest.mark.parametrize(
    ("rows", "path_loss", "words"),
    [
        (FLIGHT[:2], UmaAv(), "it has z_m, and client 1 has no row and no height: give it a row"),
        (
            ("0,1,60,0,30", "0,3,60,0,400", FLIGHT[2]),
            UmaAv(),
            "at a height of 400 m, the z_m of a trace: client_",
        ),
        (FLIGHT, LogDistance(), "LogDistance has no client_height_m"),
    ],
)
def test_wrong_heights_are_refused(tmp_path, rows, path_loss, words):
    with pytest.raises(ValueError, match=words):
        network(GROUND, path_loss, flight(tmp_path, *rows))
