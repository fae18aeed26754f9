"""Networks from settings: powers and SNR, layouts, path loss and recorded channels."""

import math

import numpy as np
import pytest

import channels
from channels import Network, Recorded, Stream, ofdma_seconds_per_bit, section_vi_c
from wirelessfl import Config, ConfigError
from wirelessfl.runs.build.network import build_network

SEED = 3


def network_of(algorithm="hfedavg", **flags):
    config = Config.from_flags(algorithm, **flags)
    return build_network(config.network, Stream(SEED), config)


def test_the_default_is_section_vi_c():
    found, wanted = network_of(), section_vi_c(stream=Stream(SEED).child("network"))
    for name in ("cell_of", "cpu_hz", "snr_db", "path_gain_db", "transmit_power_w"):
        np.testing.assert_array_equal(getattr(found, name), getattr(wanted, name))
    stream = Stream(SEED).child("channel")
    np.testing.assert_array_equal(found.draw(stream).h, wanted.draw(stream).h)


@pytest.mark.parametrize("air", [{"snr_db": 12.0}, {"layout": "disc"}, {}])
def test_twice_the_power_is_3_db_more_snr(air):
    """Uploads over time division are shorter; while they last, they take twice the watts."""
    plain, double = network_of(**air), network_of(**air, transmit_power_w=0.2)
    np.testing.assert_allclose(double.snr_db - plain.snr_db, 10 * math.log10(2))
    np.testing.assert_allclose(double.gain_db, plain.gain_db)
    in_dbm = network_of(**air, transmit_power_dbm=10 * math.log10(200))
    np.testing.assert_allclose(in_dbm.snr_db, double.snr_db)
    stream, load = Stream(1), channels.Load(0.0, 1e5)
    few, many = (channels.EqualSlots().serve(load, n.draw(stream)) for n in (plain, double))
    assert (many.seconds < few.seconds).all()
    shares = plain.cell_sizes[plain.cell_of]
    np.testing.assert_allclose(few.joules, 0.1 * few.seconds / shares)
    np.testing.assert_allclose(many.joules, 0.2 * many.seconds / shares)
    assert (
        ofdma_seconds_per_bit(double.draw(stream)) < ofdma_seconds_per_bit(plain.draw(stream))
    ).all()


@pytest.mark.parametrize(("name", "antennas", "distance"), [("umi", 8, 200.0), ("uma", 16, 500.0)])
def test_flags_give_the_links_of_the_presets(name, antennas, distance):
    """The flags in docs/guides/radio.md give the network of channels.umi and channels.uma."""
    found = network_of(
        layout="hexagonal",
        inter_site_distance_m=distance,
        path_loss=name,
        antennas=antennas,
        bandwidth_hz=20e6,
        transmit_power_dbm=23.0,
        reuse_factor=1,
    )
    stream = Stream(SEED).child("network")
    wanted = getattr(channels, name)(4, 60, stream=stream, reuse_factor=1)
    np.testing.assert_array_equal(found.gain_db, wanted.gain_db)
    np.testing.assert_array_equal(found.mean_snr_db, wanted.mean_snr_db)
    np.testing.assert_array_equal(found.interference.gain, wanted.interference.gain)
    assert found.antennas == wanted.antennas


MODELS = {
    "umi": channels.Umi(2.0, 12.0, 1.75),
    "uma": channels.Uma(2.0, 30.0, 1.75),
    "rma": channels.Rma(2.0, 30.0, 1.75, 7.0, 15.0),
    "inh": channels.InH(2.0, 4.0, 1.25),
    "tr36814": channels.Tr36814(),
    "log-distance": channels.LogDistance(2.5, 35.0, 2.0, 4.0),
    "air-to-ground": channels.AirToGround(2.5, 120.0, 1.0, "dense-urban"),
    "uma-av": channels.UmaAv(2.5, 30.0, 80.0),
}


@pytest.mark.parametrize("name", MODELS)
def test_every_setting_of_a_path_loss_reaches_its_model(name):
    model = MODELS[name]
    flags = dict(vars(model))
    if name == "tr36814":
        flags["shadowing_db"] = 3.0
    choice = Config.from_flags("fedavg", layout="disc", path_loss=name, **flags).path_loss
    built = choice.build()
    if isinstance(built, channels.path_loss.Variant):
        assert built.line_of_sight is None
        assert built.shadowing_db == (3.0 if name == "tr36814" else None)
        built = built.model
    assert built == model


@pytest.mark.parametrize(("sight", "expected"), [("always", True), ("never", False)])
def test_lines_of_sight_are_a_setting(sight, expected):
    flags = {"layout": "disc", "path_loss": "umi", "line_of_sight": sight, "shadowing_db": 0.0}
    placement = network_of(**flags).placement
    assert (placement.line_of_sight == expected).all()
    np.testing.assert_array_equal(placement.shadowing_db, 0.0)
    loss = channels.Umi().loss_db(placement.distance_m, placement.line_of_sight)
    np.testing.assert_array_equal(placement.path_loss_db, loss)


def test_a_file_of_positions(tmp_path):
    """Cells of any sizes; clients of slow cells are slow, and their bands are slowed down too."""
    file = tmp_path / "positions.csv"
    rows = ["kind,x_m,y_m", "base_station,0,0", "base_station,1000,0"]
    rows += [f"client,{x},0" for x in (100, 1200, 900, 960)]
    file.write_text("\n".join(rows))
    flags = {"layout": "file", "layout_file": file, "cells": 2, "clients": 4, "slowdown": 4}
    network = network_of(**flags, path_loss="log-distance", shadowing_db=0, antenna_gain_db=6)
    assert network.cell_of.tolist() == [0, 1, 1, 1]
    assert network.placement.distance_m == pytest.approx([100, 200, 100, 40])
    loss = 15.3 + 37.6 * np.log10([100, 200, 100, 40])
    np.testing.assert_allclose(network.gain_db, 6 - loss)
    assert network.bandwidth_hz.tolist() == [9e6 / 4, 9e6]
    assert (network.cpu_hz >= 1e9 / np.array([4, 0.5, 0.5, 0.5])).all()
    assert network.cpu_hz[0] <= 2e9 / 4
    stored = Config.from_flags("hfedavg", **flags).tables["layout"]["layout_file"]
    assert stored == file
    assert stored.is_absolute()
    with pytest.raises(ConfigError, match=r"clients is 5, and .*positions.csv has 4 rows"):
        network_of(**flags | {"clients": 5})


def test_recorded_channels_are_read_from_a_file(tmp_path):
    dice = np.random.default_rng(1)
    h = 1e-5 * (dice.normal(size=(2, 6, 3)) + 1j * dice.normal(size=(2, 6, 3)))
    np.savez(tmp_path / "h.npz", h=h)
    air = {"channel": tmp_path / "h.npz", "noise_figure_db": 7.0, "transmit_power_dbm": 23.0}
    network = network_of(**air, clients=6, cells=2)
    wanted = Network([0, 0, 0, 1, 1, 1], cpu_hz=1e9, noise_figure_db=7.0, **Recorded(h).links)
    shift = 23.0 - 20.0
    np.testing.assert_allclose(network.snr_db, wanted.snr_db + shift)
    np.testing.assert_array_equal(network.draw(Stream(1), 3).h, wanted.draw(Stream(2), 1).h)
    size = r"h.npz has \[blocks, clients, antennas\] = \[2, 6, 3\], and clients is "
    with pytest.raises(ConfigError, match=size + "60: give --clients 6, or a file of 60"):
        network_of(**air)
    for swapped in (2, 3):  # h is [clients, ...] or [..., clients]
        with pytest.raises(ConfigError, match=size + rf"{swapped}: permute its axes. One block"):
            network_of(**air, clients=swapped)
    stored = Config.from_flags("hfedavg", **air, clients=6, cells=2)
    assert stored.fading is stored.layout is stored.path_loss is None
    assert Config.of(stored.used_tables()) == stored


PLACED = {"layout": "disc"}


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (
            {"transmit_power_dbm": 23, "transmit_power_w": 0.2},
            "transmit_power_w=0.2 conflicts with transmit_power_dbm=23, which replaces it: choose",
        ),
        ({"transmit_power_w": 23}, r"transmit_power_w is 23: give at most 10 W .*transmit_power_d"),
        ({"noise_figure_db": 7}, 'noise_figure_db=7.0 conflicts with layout "section-vi-c"'),
        (PLACED | {"snr_db": 3}, 'snr_db=3.0 conflicts with layout "disc", whose distances give'),
        (PLACED | {"path_gain_db": (-3, 3)}, 'path_gain_db=.* conflicts with layout "disc"'),
        (PLACED | {"carrier_ghz": 3500}, "carrier_ghz is 3500: .* write 3.5"),
        ({"layout": "file"}, "layout is 'file', which needs layout_file"),
        ({"path_loss": "umi"}, "path_loss='umi' conflicts with layout \"section-vi-c\", which has"),
        ({"channel": "a.npz", "layout": "disc"}, "layout='disc' conflicts with channel=a.npz"),
        ({"channel": "a.npz", "snr_db": 3}, r"snr_db=3.0 conflicts with channel=a.npz"),
        ({"channel": "a.npz", "antennas": 3}, r"antennas=3 conflicts with channel=a.npz"),
        ({"channel": "a.npz", "fading": "rician"}, "fading='rician' conflicts with channel=a.npz"),
        ({"channel": "none.npz"}, "there is no file .*none.npz"),
        (PLACED | {"radius_m": 5}, "radius_m is 5: give metres above 10"),
        (PLACED | {"radius_m": 6000}, "distance_m contains .*: Umi needs metres from 10 to 5000"),
    ],
)
def test_wrong_settings_are_one_error(flags, message):
    with pytest.raises(ConfigError, match=message) as refused:
        network_of(**{"path_loss": "umi"} | flags if flags.get("radius_m") == 6000 else flags)
    assert "\n" not in str(refused.value)


def test_the_fastest_cells_end_their_uploads_sooner(tmp_path):
    """Mean gains, equal bands: against the solver's objective, and against the other rules."""
    air = {"layout": "hexagonal", "cells": 4, "clients": 40, "antennas": 2, "slowdown": 2.0}

    def seconds(**more):
        network = network_of(**air, **more)
        budget = channels.link_budget(network, bits=1e6)
        return network, budget.seconds["equal bands"].max()

    fastest, soonest = seconds(association="fastest")
    assert soonest < min(seconds(association=name)[1] for name in ("placed", "strongest"))
    default, named = seconds()[0], seconds(association="placed")[0]
    np.testing.assert_array_equal(default.gain_db, named.gain_db)
    # The cells from a file, in the order in which clients were placed: the same network.
    place = {tuple(metres): k for k, metres in enumerate(default.placement.clients_m.tolist())}
    cells = np.empty(40, dtype=int)
    for metres, cell in zip(fastest.placement.clients_m.tolist(), fastest.cell_of, strict=True):
        cells[place[tuple(metres)]] = cell
    file = tmp_path / "cells.csv"
    file.write_text("cell\n" + "\n".join(map(str, cells)))
    again, ends = seconds(association=file)
    np.testing.assert_array_equal(again.gain_db, fastest.gain_db)
    assert ends == soonest


@pytest.mark.parametrize(
    ("association", "content", "message"),
    [
        ("strongst", None, "association=.*strongst is neither a file nor placed, nearest"),
        ("cells.csv", "0,1\n1,0\n", "has 2 columns: give the cell of each client, one a line"),
        ("cells.csv", "0\n1\nx\n", "line 3: 'x' is not a number"),
        ("cells.csv", "0\n1\n", "cells.csv: .*give the cell of each of the 4 clients"),
        ("cells.csv", "0\n0\n0\n0\n", "cells.csv: association is .* cell 1 has no client"),
    ],
)
def test_wrong_cells_are_refused(association, content, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    if content is not None:
        (tmp_path / association).write_text(content)
    with pytest.raises(ConfigError, match=message):
        network_of(layout="disc", cells=2, clients=4, association=association)


def test_too_many_pairs_for_the_fastest_cells_are_refused():
    with pytest.raises(ConfigError, match="compares 6000 clients in 4 cells, above 20000 pairs"):
        network_of(layout="disc", clients=6000, association="fastest")
