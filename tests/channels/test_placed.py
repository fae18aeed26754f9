"""Networks from positions: gains, draws that do not depend on each other, and interference."""

from dataclasses import dataclass, replace

import numpy as np
import pytest

from channels import (
    Disc,
    FileLayout,
    Hexagonal,
    Layout,
    LogDistance,
    Network,
    Positions,
    Stream,
    Tr36814,
    Umi,
    placed_network,
    uma,
    umi,
)

STREAM = Stream(5)


@dataclass(frozen=True)
class Line(Layout):
    """Base stations 400 m apart on a line, with one client each at a given distance."""

    distance_m: float = 100.0

    def place(self, cells, clients, stream, shortest_m=10.0):
        stations = np.stack([400.0 * np.arange(cells), np.zeros(cells)], axis=1)
        return Positions(stations, stations + np.array([0, self.distance_m]), np.arange(cells))


def line(distance=100.0, path_loss=None, cells=3, **others):
    model = LogDistance(shadowing_db=0.0) if path_loss is None else path_loss
    values = {"cells": cells, "clients": cells, "stream": STREAM, "cpu_hz": 1e9} | others
    return placed_network(Line(distance), model, **values)


def test_gains_are_the_sum_of_their_terms():
    network = umi(cells=4, clients=60, stream=STREAM)
    where = network.placement
    np.testing.assert_allclose(
        network.gain_db, where.antenna_gain_db - where.path_loss_db - where.shadowing_db
    )
    apart = where.clients_m - where.base_stations_m[network.cell_of]
    np.testing.assert_allclose(where.distance_m, np.hypot(*apart.T))
    wanted = Umi(3.5).loss_db(where.distance_m, where.line_of_sight)
    np.testing.assert_array_equal(where.path_loss_db, wanted)
    raised = line(antenna_gain_db=8.0)
    np.testing.assert_allclose(raised.gain_db, line().gain_db + 8)
    assert raised.placement.antenna_gain_db == 8


def test_lines_of_sight_and_shadowing_have_their_distributions():
    """20000 clients at 100 m: four standard errors."""

    @dataclass(frozen=True)
    class Ring(Layout):
        def place(self, cells, clients, stream, shortest_m=10.0):
            positions = np.tile([100.0, 0.0], (clients, 1))
            return Positions(np.zeros((1, 2)), positions, np.zeros(clients, dtype=np.int64))

    n = 20_000
    where = placed_network(
        Ring(), Umi(3.5), cells=1, clients=n, stream=STREAM, cpu_hz=1e9
    ).placement
    sight, wanted = where.line_of_sight, Umi(3.5).los_probability(100.0)
    assert abs(sight.mean() - wanted) < 4 * np.sqrt(wanted * (1 - wanted) / n)
    for mask, std in ((sight, 4.0), (~sight, 7.82)):
        shadowing = where.shadowing_db[mask]
        assert abs(shadowing.mean()) < 4 * std / np.sqrt(mask.sum())
        assert abs(shadowing.std() / std - 1) < 4 / np.sqrt(2 * mask.sum())


def test_a_client_depends_on_its_index_alone():
    """More clients in the same cell, or interference, change no gain."""
    few = placed_network(Disc(200.0), Umi(), cells=1, clients=5, stream=STREAM, cpu_hz=1e9)
    many = placed_network(
        Disc(200.0), Umi(), cells=1, clients=50, stream=STREAM, cpu_hz=1e9, reuse_factor=1
    )
    np.testing.assert_array_equal(many.gain_db[:5], few.gain_db)
    other = placed_network(Disc(200.0), Umi(), cells=1, clients=5, stream=Stream(6), cpu_hz=1e9)
    assert (other.gain_db != few.gain_db).all()


def test_interference_is_that_of_cells_with_the_same_band():
    """On a line of three, written out: received power is P g of the other cells' clients."""
    network = line(reuse_factor=1, transmit_power_w=0.2, antenna_gain_db=3.0)
    near, far = np.hypot(400, 100), np.hypot(800, 100)
    gains = 10 ** ((3.0 - LogDistance().loss_db([near, far], False)) / 10)
    wanted = 0.2 * np.array([gains.sum(), 2 * gains[0], gains.sum()])
    np.testing.assert_allclose(network.interference.watts(STREAM, 0), wanted)
    np.testing.assert_allclose(network.interference.mean_watts(), wanted)
    noise = 10 ** (network.noise_dbm / 10) / 1000
    np.testing.assert_allclose(network.draw(STREAM).noise_rise, 1 + wanted / noise)
    # Cells 0 and 2 share a band of two; with three bands none interferes.
    two = line(reuse_factor=2, transmit_power_w=0.2, antenna_gain_db=3.0).interference
    np.testing.assert_allclose(two.watts(STREAM, 0), 0.2 * gains[1] * np.array([1, 0, 1]))
    assert not line(reuse_factor=3).interference.watts(STREAM, 0).any()
    assert line().interference is None


def test_mean_interference_is_the_mean_over_blocks():
    network = umi(cells=3, clients=9, stream=STREAM, reuse_factor=1)
    watts = [network.interference.watts(STREAM, index) for index in range(1000)]
    error = 4 * np.std(watts, axis=0) / np.sqrt(1000)
    assert (np.abs(np.mean(watts, axis=0) - network.interference.mean_watts()) < error).all()
    assert (error < network.interference.mean_watts()).all()


def test_gains_to_the_own_base_station_are_the_same_in_both():
    network = umi(cells=3, clients=30, stream=STREAM, reuse_factor=1)
    own = network.interference.gain[np.arange(30), network.cell_of]
    np.testing.assert_allclose(10 * np.log10(own), network.gain_db)


def test_clients_out_of_range_of_other_base_stations_are_heard_at_its_end():
    """UMi ends at 5 km, and 16 cells on a line are 6 km long."""
    network = line(cells=16, path_loss=Umi(), reuse_factor=1)
    assert np.isfinite(network.interference.gain).all()
    with pytest.raises(ValueError, match="distance_m contains 6000: Umi needs metres from 10 to"):
        line(6000.0, Umi())


def test_a_client_out_of_range_is_named(tmp_path):
    """By its place in the order in which it was given, which the network sorts by cell."""
    remedy = (
        r"m from base station 0: move it, or choose another path loss\. distance_m contains 7\.5"
    )
    values = {"stream": STREAM, "cpu_hz": 1e9}
    positions = Positions([[0, 0]], [[50, 0], [0, 7.5]], [0, 0])
    with pytest.raises(ValueError, match=rf"client 1 is 7\.5 {remedy}"):
        placed_network(positions, Umi(), **values)
    file = tmp_path / "positions.csv"
    places = [
        "base_station,0,0",
        "base_station,400,0",
        "client,300,0",
        "client,50,0",
        "client,7.5,0",
    ]
    file.write_text("\n".join(["kind,x_m,y_m", *places]), encoding="utf-8")
    with pytest.raises(ValueError, match=rf"client 2 is 7\.5 {remedy}"):
        placed_network(FileLayout(file), Umi(), **values)


def test_kilometres_are_refused():
    with pytest.raises(ValueError, match=r"distance_m contains 0.3: .*A kilometre is 1000 metres"):
        line(0.3, Tr36814())


def test_powers_in_dbm_are_refused():
    with pytest.raises(ValueError, match=r"Give watts: dbm_to_watts\(23\) converts dBm"):
        line(transmit_power_w=23.0)


def test_clients_keep_the_minimum_distance_of_the_model():
    network = placed_network(
        Hexagonal(100.0), Tr36814(), cells=1, clients=500, stream=STREAM, cpu_hz=1e9
    )
    assert 35 <= network.placement.distance_m.min() < 36


def test_values_of_clients_follow_them_when_they_are_sorted(tmp_path):
    """The second client of the file is in cell 0, and keeps its CPU and power."""
    path = tmp_path / "positions.csv"
    path.write_text(
        "kind,x_m,y_m\nbase_station,0,0\nbase_station,400,0\nclient,300,0\nclient,50,0\n"
    )
    network = placed_network(
        FileLayout(str(path)),
        LogDistance(shadowing_db=0.0),
        stream=STREAM,
        cpu_hz=[1e9, 2e9],
        transmit_power_w=[0.1, 0.2],
        switched_capacitance=1e-28,
    )
    assert network.cell_of.tolist() == [0, 1]
    assert network.cpu_hz.tolist() == [2e9, 1e9]
    assert network.transmit_power_w.tolist() == [0.2, 0.1]
    np.testing.assert_allclose(network.gain_db, -LogDistance().loss_db([50, 100], False))


@pytest.mark.parametrize("name", ["gain_db", "cell_of", "snr_db", "placement", "interference"])
def test_what_follows_from_positions_is_not_given(name):
    with pytest.raises(TypeError, match=f"^{name} follows from the positions: omit it"):
        line(**{name: 0.0})


@pytest.mark.parametrize(
    ("preset", "spacing", "antennas"), [(umi, 200.0, 8), (uma, 500.0, 16)], ids=["umi", "uma"]
)
def test_presets_state_their_values(preset, spacing, antennas):
    network = preset(cells=7, clients=70, stream=STREAM)
    assert isinstance(network, Network)
    assert (network.cells, network.clients, network.antennas) == (7, 70, antennas)
    np.testing.assert_allclose(network.transmit_power_w, 10**2.3 / 1000)
    np.testing.assert_allclose(network.noise_dbm, -174 + 10 * np.log10(20e6) + 5)
    sites = network.placement.base_stations_m
    np.testing.assert_allclose(np.hypot(*sites[1:].T), spacing)
    assert (network.cpu_hz >= 1e9).all()
    assert (network.cpu_hz < 4e9).all()
    assert network.interference is None
    again = preset(cells=7, clients=70, stream=STREAM)
    np.testing.assert_array_equal(again.gain_db, network.gain_db)
    louder = replace(network, transmit_power_w=2 * network.transmit_power_w)
    np.testing.assert_allclose(louder.snr_db - network.snr_db, 10 * np.log10(2))


def test_an_antenna_gain_above_the_path_loss_is_named_in_decibels():
    """Also if cells interfere, whose gains are ratios."""
    with pytest.raises(ValueError, match=r"^gain_db contains .*: a mean channel gain is at most 0"):
        placed_network(
            Hexagonal(),
            LogDistance(2, 0),
            cells=2,
            clients=4,
            stream=Stream(1),
            cpu_hz=1e9,
            antenna_gain_db=60,
            reuse_factor=1,
        )


def test_gains_cannot_be_replaced_beside_their_placement():
    """The budget of a network shows the terms of its gains, and no others."""
    network = umi(cells=2, clients=4, stream=Stream(1))
    with pytest.raises(ValueError, match=r"gain_db differs from .* placement=None"):
        replace(network, gain_db=-90.0)
    moved = replace(network, gain_db=-90.0, placement=None)
    assert moved.gain_db == pytest.approx([-90.0] * 4)
    assert replace(network, bandwidth_hz=1e6).placement is network.placement
    assert network.with_snr(10.0).placement is None


def test_positions_are_a_layout():
    """A network of them is that of a layout that places them so; also over reused bands."""
    wanted = placed_network(
        Line(80.0), LogDistance(), cells=3, stream=STREAM, cpu_hz=1e9, reuse_factor=2
    )
    where = Line(80.0).place(3, None, STREAM)
    arguments = where.base_stations_m.tolist(), where.clients_m.tolist(), [0, 1, 2]
    found = placed_network(
        Positions(*arguments), LogDistance(), stream=STREAM, cpu_hz=1e9, reuse_factor=2
    )
    assert (found.gain_db == wanted.gain_db).all()
    draws = [network.draw(STREAM, 0).snr_hz for network in (found, wanted)]
    assert (draws[0] == draws[1]).all()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"clients_m": [1.0, 2.0]}, r"clients_m has shape \(2,\) .*: give \[n, 2\], or \[n, 3\]"),
        ({"clients_m": [[0, 9, 1.5, 0]] * 2}, r"clients_m has shape \(2, 4\)"),
        ({"clients_m": [["a", "b"]] * 2}, "clients_m has shape .* dtype <U1"),
        ({"clients_m": [[0, np.nan]] * 2}, "clients_m has a position that is not finite"),
        ({"clients_m": [[0, 9]]}, "clients_m has 1 positions, and cell_of 2 clients in 1 cells"),
        ({"base_stations_m": [[0, 0]] * 2}, "base_stations_m has 2 positions, .*: give 1"),
        ({"cell_of": [1, 0]}, "Sort the clients by cell"),
        ({"cell_of": [0, 2]}, "cell 1 has no client"),
        ({"given_as": [1, 1]}, r"given_as is \[1, 1\]: give each place 0 to 1 once"),
        ({"given_as": [0, 1, 2]}, "give each place 0 to 1 once"),
        ({"given_as": [0.0, 1.0]}, "given_as has shape .*: give one axis of integers"),
    ],
)
def test_wrong_positions_are_refused(change, message):
    right = {"base_stations_m": [[0, 0]], "clients_m": [[0, 9], [5, 0]], "cell_of": [0, 0]}
    with pytest.raises(ValueError, match=message):
        Positions(**right | change)


def test_positions_have_their_own_numbers():
    where = Positions([[0, 0]], [[0, 90]], [0])
    with pytest.raises(ValueError, match="cells is 1, but positions have their own: omit it"):
        placed_network(where, Umi(), cells=1, stream=STREAM, cpu_hz=1e9)
