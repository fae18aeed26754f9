"""Rings of clients, and path loss with given lines of sight and shadowing."""

import math

import numpy as np
import pytest

from channels import LogDistance, Ring, Stream, Umi, Variant, placed_network


def test_clients_of_a_ring_have_its_distance():
    where = Ring(250.0).place(3, 200, Stream(1))
    np.testing.assert_allclose(where.distance_m, 250.0)
    offsets = where.clients_m - where.base_stations_m[where.cell_of]
    assert (np.abs(offsets.mean(axis=0)) < 250 * 4 / math.sqrt(2 * 200)).all()  # 4 deviations
    for first in range(3):
        for second in range(first):
            apart = where.base_stations_m[first] - where.base_stations_m[second]
            assert np.hypot(*apart) == pytest.approx(500.0)
    few = Ring(250.0).place(1, 5, Stream(1)).clients_m
    np.testing.assert_array_equal(few - few[0], where.clients_m[:5] - where.clients_m[0])


@pytest.mark.parametrize("sight", [None, True, False])
@pytest.mark.parametrize("shadowing_db", [None, 0.0, 5.0])
def test_variants_change_only_what_they_name(sight, shadowing_db):
    distance, seen = np.array([20.0, 80.0, 900.0]), np.array([True, False, True])
    plain, variant = Umi(3.5), Variant(Umi(3.5), sight, shadowing_db)
    assert variant.range_m == plain.range_m
    np.testing.assert_array_equal(variant.loss_db(distance, seen), plain.loss_db(distance, seen))
    probability = plain.los_probability(distance) if sight is None else np.full(3, float(sight))
    np.testing.assert_array_equal(variant.los_probability(distance), probability)
    own = plain.shadowing_std_db(distance, seen)
    expected = own if shadowing_db is None else np.full(3, shadowing_db)
    np.testing.assert_array_equal(variant.shadowing_std_db(distance, seen), expected)


def test_without_shadowing_the_gain_is_the_median_loss():
    model = Variant(LogDistance(2.0, 40.0), shadowing_db=0.0)
    network = placed_network(
        Ring(100.0), model, cells=1, clients=3, stream=Stream(1), cpu_hz=1e9, antenna_gain_db=5.0
    )
    np.testing.assert_allclose(network.gain_db, 5.0 - 40.0 - 20 * math.log10(100))
