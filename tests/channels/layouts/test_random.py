"""Discs and hexagons: where clients are, and which cells share a band."""

import math

import numpy as np
import pytest

from channels import Disc, Hexagonal, Stream
from channels.layouts.grid import axial, centres, hexagonal_bands

STREAM = Stream(7)


def in_hexagon(points, apothem):
    """Whether points are within the half-planes towards the six neighbours."""
    angles = np.radians(np.arange(0, 360, 60))
    return ((points @ np.stack([np.cos(angles), np.sin(angles)])) <= apothem + 1e-9).all(1)


def test_a_disc_is_uniform_in_area():
    where = Disc(100.0).place(1, 20_000, STREAM)
    distance = where.distance_m
    assert distance.min() >= 10
    assert distance.max() <= 100
    # P(distance <= r) = (r^2 - 10^2) / (100^2 - 10^2), within 4 standard errors of the fraction
    for r in (30.0, 60.0, 90.0):
        wanted = (r**2 - 100) / 9900
        assert abs((distance <= r).mean() - wanted) < 4 * 0.5 / math.sqrt(20_000)
    assert np.abs(where.clients_m.mean(0)).max() < 4 * 50 / math.sqrt(20_000)


def test_a_hexagon_is_uniform_in_area():
    where = Hexagonal(200.0).place(1, 20_000, STREAM)
    points = where.clients_m
    assert in_hexagon(points, 100.0).all()
    assert where.distance_m.min() >= 10
    # By symmetry each sixth between two corners has as many clients; inner circle by area.
    turns = np.arctan2(points[:, 1], points[:, 0]) % math.tau / math.tau
    sixths = np.bincount((6 * turns).astype(int))
    assert np.abs(sixths / 20_000 - 1 / 6).max() < 4 * 0.38 / math.sqrt(20_000)
    hexagon = 200**2 * math.sqrt(3) / 2 - math.pi * 10**2
    for r in (50.0, 100.0):
        wanted = math.pi * (r**2 - 100) / hexagon
        assert abs((where.distance_m <= r).mean() - wanted) < 4 * 0.5 / math.sqrt(20_000)


@pytest.mark.parametrize("layout", [Disc(80.0), Hexagonal(160.0)])
def test_a_client_depends_on_its_index_alone(layout):
    """Few or many clients: the offset of a client from its base station is the same."""

    def offsets(cells, clients):
        where = layout.place(cells, clients, STREAM)
        return where.clients_m - where.base_stations_m[where.cell_of]

    np.testing.assert_allclose(offsets(3, 12), offsets(1, 40)[:12], atol=1e-9)
    assert np.abs(offsets(1, 12) - layout.place(1, 12, Stream(8)).clients_m).max() > 1


def test_base_stations_spiral_outwards():
    """1 + 6 + 12 sites; every site has a neighbour at the spacing, and none is closer."""
    sites = centres(19, 200.0)
    apart = np.hypot(*(sites[:, None] - sites).T)
    np.fill_diagonal(apart, np.inf)
    np.testing.assert_allclose(apart.min(0), 200.0)
    radius = np.hypot(*sites.T)
    assert (radius[1:7] < 200.1).all()
    assert (radius[7:] > 300).all()
    assert len({*map(tuple, axial(500).tolist())}) == 500
    np.testing.assert_array_equal(centres(7, 200.0), sites[:7])
    # Discs of the radius touch, and do not overlap.
    np.testing.assert_allclose(Disc(100.0).place(7, 7, STREAM).base_stations_m, sites[:7])


@pytest.mark.parametrize("reuse", [1, 3, 4, 7, 9, 12, 13])
def test_reuse_patterns_are_regular(reuse):
    """The nearest cells of one band are sqrt(3 r) cell radii apart, for all bands (MacDonald)."""
    bands = hexagonal_bands(217, reuse)
    assert set(bands) == set(range(reuse))
    sites = centres(217, 1.0)
    for band in range(reuse):
        same = sites[bands == band]
        apart = np.hypot(*(same[:, None] - same).T)
        np.fill_diagonal(apart, np.inf)
        np.testing.assert_allclose(apart.min(0), math.sqrt(reuse))


def test_reuse_without_a_pattern_is_refused():
    for layout in (Disc(), Hexagonal()):
        with pytest.raises(ValueError, match=r"^reuse_factor is 2: .* 1, 3, 4, 7"):
            layout.bands(4, 2)
        with pytest.raises(ValueError, match=r"^reuse_factor is 1000000000000: give 1 .* to 1000"):
            layout.bands(4, 10**12)
        assert layout.bands(3, 3).tolist() == [0, 1, 2]


@pytest.mark.parametrize(
    ("layout", "message"),
    [
        (Disc(5.0), "radius_m is 5: give metres above 10.*A kilometre is 1000 metres"),
        (Hexagonal(2.0), "inter_site_distance_m is 2: give metres above 20.*A kilometre"),
    ],
)
def test_cells_are_larger_than_the_minimum_distance(layout, message):
    with pytest.raises(ValueError, match=message):
        layout.place(1, 4, STREAM)
    assert layout.place(1, 4, STREAM, 0.5).distance_m.min() >= 0.5


def test_settings_and_numbers_are_checked():
    for kind in (Disc, Hexagonal):
        with pytest.raises(ValueError, match="cells is None"):
            kind().place(None, 4, STREAM)
        with pytest.raises(ValueError, match="clients is None"):
            kind().place(2, None, STREAM)
        with pytest.raises(ValueError, match="clients is 1 and cells is 2"):
            kind().place(2, 1, STREAM)
