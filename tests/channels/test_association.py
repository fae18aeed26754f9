"""Which cell clients of a placed network belong to."""

import numpy as np
import pytest

from channels import Hexagonal, LogDistance, Positions, Stream, Umi, placed_network

LAYOUT = {"cells": 4, "clients": 40, "stream": Stream(3), "cpu_hz": np.arange(1, 41) * 1e9}
METRES = Positions([[0, 0], [100, 0]], [[10, 0], [60, 0], [95, 0]], cell_of=[0, 0, 1])
"""Client 1 is nearer to the base station of cell 1."""


def placed(association, **others):
    return placed_network(Hexagonal(300.0), Umi(), association=association, **LAYOUT, **others)


def test_placed_is_the_default_to_the_bit():
    default, named = placed_network(Hexagonal(300.0), Umi(), **LAYOUT), placed("placed")
    np.testing.assert_array_equal(default.gain_db, named.gain_db)
    # On a hexagonal grid each client is placed in the cell of the nearest base station.
    nearest = placed("nearest")
    np.testing.assert_array_equal(default.gain_db, nearest.gain_db)
    np.testing.assert_array_equal(default.cpu_hz, nearest.cpu_hz)


def test_each_client_keeps_its_links():
    """By its CPU, which is in the order of the layout: gains do not depend on the rule."""
    before, after = placed("placed", reuse_factor=1), placed("strongest", reuse_factor=1)
    client = (after.cpu_hz / 1e9 - 1).astype(int)
    assert sorted(client) == list(range(40))
    gain = before.interference.gain[client]
    np.testing.assert_array_equal(after.interference.gain, gain)
    np.testing.assert_array_equal(after.cell_of, gain.argmax(1))
    assert (after.cell_of != before.cell_of[client]).any()
    np.testing.assert_allclose(10 ** (after.gain_db / 10), gain.max(1), rtol=1e-12)
    np.testing.assert_array_equal(after.placement.clients_m, before.placement.clients_m[client])


def test_positions_by_hand():
    model = LogDistance(shadowing_db=0.0)
    values = {"stream": Stream(1), "cpu_hz": [1e9, 2e9, 3e9]}
    nearest = placed_network(METRES, model, association="nearest", **values)
    assert nearest.cell_of.tolist() == [0, 1, 1]
    assert nearest.placement.distance_m.tolist() == [10, 40, 5]
    given = placed_network(METRES, model, association=[1, 0, 0], **values)
    assert given.placement.distance_m.tolist() == [60, 95, 90]
    assert given.cpu_hz.tolist() == [2e9, 3e9, 1e9]
    heard = []

    def second(gain_db):
        heard.append(gain_db)
        return [0, 1, 0]

    own = placed_network(METRES, model, association=second, **values)
    assert own.placement.distance_m.tolist() == [10, 95, 40]
    distance = np.abs(np.array([[10, 60, 95], [-90, -40, -5]])).T
    np.testing.assert_allclose(heard[0], -model.loss_db(distance, False))


@pytest.mark.parametrize(
    ("association", "message"),
    [
        ("nearset", "association is 'nearset': Do you mean \"nearest\""),
        ([0, 0, 0], "association is your own, and cell 1 has no client: remove its base station"),
        ([0, 1], "association is .*: give the cell of each of the 3 clients"),
        ([0, 1, 2], r"association\[2\] is 2: give a cell, 0 to 1"),
    ],
)
def test_wrong_associations_are_refused(association, message):
    with pytest.raises(ValueError, match=message):
        placed_network(METRES, Umi(), stream=Stream(1), cpu_hz=1e9, association=association)
