"""Clients that move are served by the base station with the largest mean gain."""

from dataclasses import replace

import numpy as np
import pytest

import channels
from channels import (
    Hexagonal,
    LogDistance,
    Positions,
    PositionTrace,
    RandomWaypoint,
    Stream,
    Umi,
    placed_network,
)

STREAM, BLOCKS = Stream(5), Stream(5, ("channel",))
STATIONS = [[0.0, 0.0], [400.0, 0.0]]


def network(mobility, layout=None, path_loss=None, **others):
    values = {"cells": 3, "clients": 30, "antennas": 2, "cpu_hz": 1e9} | others
    layout, path_loss = layout or Hexagonal(200.0), path_loss or Umi()
    return placed_network(layout, path_loss, stream=STREAM, mobility=mobility, **values)


def walker(tmp_path, **others):
    """Client 1 of cell 0 walks from x = 60 m to x = 340 m, past the middle after block 1."""
    path = tmp_path / "walk.csv"
    path.write_text("client,round,x_m,y_m\n1,1,60,0\n1,5,340,0\n")
    where = Positions(STATIONS, [[50, 0], [60, 0], [430, 0], [0, 80]], cell_of=[0, 0, 1, 1])
    values = {
        "cells": None,
        "clients": None,
        "mobility": PositionTrace(path),
        "path_loss": LogDistance(shadowing_db=0.0),
        "cpu_hz": [1e9, 2e9, 3e9, 4e9],
        "bandwidth_hz": [4e6, 9e6],
    }
    return network(layout=where, **values | others)


def test_the_serving_cell_of_a_walk_is_that_of_the_nearer_base_station(tmp_path):
    """At x = 60, 130, 200, 270 and 340 m; client 3, near station 0, was placed in cell 1."""
    moving = walker(tmp_path, handover="strongest")
    cells, order = [], []
    for block in range(5):
        served = moving.served(block)
        order.append(served.numbers.tolist())
        cells.append(served.cell_of[served.places(np.arange(4))].tolist())
    assert cells == [[0, 0, 1, 0], [0, 0, 1, 0], [0, 0, 1, 0], [0, 1, 1, 0], [0, 1, 1, 0]]
    assert order == [[0, 1, 3, 2]] * 3 + [[0, 3, 1, 2]] * 2
    assert moving.hands_over
    assert not walker(tmp_path).hands_over


def test_gains_in_the_serving_cell_follow_from_the_path_loss(tmp_path):
    """The walker is 60 m from station 1 in block 4, and has the same fading in every cell."""
    model = LogDistance(shadowing_db=0.0)
    moving, own = (walker(tmp_path, handover=rule) for rule in ("strongest", "none"))
    served = moving.served(4)
    draw, kept = served.draws(BLOCKS, [3, 4]), own.draws(BLOCKS, [3, 4])
    place = served.places(np.array([1]))[0]
    assert served.gain_db[place] == pytest.approx(-float(model.loss_db(340.0, False)), abs=1e-12)
    change = model.loss_db(340.0, False) - model.loss_db([130.0, 60.0], False)
    assert np.allclose(draw.changes_db[:, place], change, atol=1e-12)
    rate = [10 * np.log10(each.snr_hz[:, row]) for each, row in ((draw, place), (kept, 1))]
    nearer = model.loss_db([270.0, 340.0], False) - model.loss_db([130.0, 60.0], False)
    assert np.allclose(rate[0] - rate[1], nearer, atol=1e-5)  # channels have single precision
    assert served.cpu_hz.tolist() == [1e9, 4e9, 2e9, 3e9]
    snr = -model.loss_db(340.0, False) + 20 - channels.noise_power_dbm(9e6)
    assert served.snr_db[place] == pytest.approx(float(snr), abs=1e-12)


@pytest.mark.parametrize("association", ["strongest", "placed"])
def test_clients_that_stand_are_served_by_the_strongest_cell(association):
    """To the bit as a network whose association is the strongest; there, none is handed over."""
    frozen = network(RandomWaypoint(0.0), association=association, handover="strongest")
    plain = network(None, association="strongest")
    served = frozen.served(7)
    assert served.cell_of.tolist() == plain.cell_of.tolist()
    assert (served is frozen) == (association == "strongest")
    assert np.array_equal(served.gain_db, plain.gain_db)
    if association == "strongest":
        assert np.array_equal(served.draws(BLOCKS, [0, 7]).h, plain.draws(BLOCKS, [0, 7]).h)
    else:
        assert (np.diff(served.numbers) < 0).any()


def test_served_clients_are_those_of_the_largest_gain_of_all_cells():
    """Brute force over the gains of all links, from their losses in block 0 and changes."""
    moving = network(RandomWaypoint((200.0, 400.0)), handover="strongest", block_seconds=2.0)
    links, clients = moving.fading.links, np.arange(30)
    gains = []
    for cell in range(3):
        losses = np.add(*links.losses_db(clients, np.full(30, cell)))
        gains.append(links.changes_db([9], clients, cell)[0] - losses)
    served = moving.served(9)
    assert np.array_equal(served.cell_of, np.argmax(gains, 0)[served.numbers])
    assert (served.cell_of != moving.cell_of[served.numbers]).any()
    gain_db = served.gain_db + served.draws(BLOCKS, [9]).changes_db[0]
    assert np.allclose(gain_db, np.max(gains, 0)[served.numbers], atol=1e-9)


def test_some_clients_are_served_as_all_of_them():
    moving = network(RandomWaypoint(300.0), handover="strongest", block_seconds=2.0)
    whole, some = moving.served(9), moving.served(9, [3, 4, 17, 29])
    draws = whole.draws(BLOCKS, [9, 10])
    part = draws.of(some.numbers)
    assert part.network.cell_of.tolist() == some.cell_of.tolist()
    again = some.draws(BLOCKS, [9, 10])
    assert np.array_equal(part.h, again.h)
    assert np.array_equal(part.changes_db, again.changes_db)
    assert whole.of(whole.numbers) is whole
    with pytest.raises(ValueError, match=r"list each client once, in the order of Network\.numb"):
        whole.of(np.arange(30))
    with pytest.raises(ValueError, match="clients contains 30: choose from"):
        whole.of([30])


def test_a_sample_of_blocks_hands_over_at_the_positions_of_its_blocks():
    moving = network(RandomWaypoint(300.0), handover="strongest", block_seconds=2.0)
    sampled = replace(moving, fading=moving.fading.sampled(100))
    expected = moving.served(int(100 * (3 * ((5**0.5 - 1) / 2) % 1)))
    assert sampled.served(3).numbers.tolist() == expected.numbers.tolist()


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"handover": "nearest"}, 'handover is .nearest.: choose "none" or "strongest"'),
        ({"mobility": None}, "clients stand still: give mobility"),
        ({"cells": 1}, "there is one cell: give several cells"),
        ({"reuse_factor": 1}, "hear the clients that were placed in other cells: omit one"),
    ],
)
def test_refusals(values, words):
    with pytest.raises(ValueError, match=words):
        network(**{"mobility": RandomWaypoint(), "handover": "strongest"} | values)
    moving = replace(network(RandomWaypoint(), handover="strongest"), placement=None)
    with pytest.raises(ValueError, match="placement is None, and clients are handed over"):
        moving.served(0)
