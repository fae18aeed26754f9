"""Many networks as arrays equal single networks, to the bit."""

from dataclasses import fields, replace

import numpy as np
import pytest

import channels
from channels import Network, Networks, Stream

STREAMS = [Stream(seed, ("drops",)) for seed in range(-2, 7)]


def assert_same(one, other):
    """Two networks have equal values in all fields."""
    for field in fields(one):
        a, b = getattr(one, field.name), getattr(other, field.name)
        if field.name == "placement" and a is not None:
            assert all(
                np.array_equal(getattr(a, term.name), getattr(b, term.name)) for term in fields(a)
            )
        else:
            assert np.array_equal(a, b), field.name


def assert_built_together(build):
    """Networks from a list of streams are those of each stream alone."""
    together = build(stream=STREAMS)
    assert isinstance(together, Networks)
    assert len(together) == len(STREAMS)
    for network, stream in zip(together, STREAMS, strict=True):
        assert_same(network, build(stream=stream))
    return together


@pytest.mark.parametrize("preset", [channels.umi, channels.uma, channels.section_vi_c])
@pytest.mark.parametrize(("cells", "clients"), [(1, 1), (3, 7)])
def test_presets_of_many_streams(preset, cells, clients):
    together = assert_built_together(lambda stream: preset(cells, clients, stream=stream))
    one = together[-1].draw(Stream(1), 3)
    assert np.array_equal(one.h, preset(cells, clients, stream=STREAMS[-1]).draw(Stream(1), 3).h)


@pytest.mark.parametrize(
    "layout", [channels.Disc(150.0), channels.Hexagonal(25.0), channels.Ring(60.0)]
)
@pytest.mark.parametrize("path_loss", [channels.LogDistance(), channels.InH()])
def test_layouts_of_many_streams(layout, path_loss):
    """Hexagonal(25.0) redraws most positions, which are too near the base station."""
    assert_built_together(
        lambda stream: channels.placed_network(
            layout, path_loss, cells=2, clients=5, stream=stream, cpu_hz=1e9, antenna_gain_db=3.0
        )
    )


@pytest.mark.parametrize(
    ("cells", "association"),
    [(1, "strongest"), (2, np.array([0, 1, 0, 1]))],  # with one cell gains do not change the cells
    ids=["rule", "array"],
)
def test_networks_that_are_built_one_by_one(cells, association):
    together = assert_built_together(
        lambda stream: channels.placed_network(
            channels.Hexagonal(),
            channels.Umi(),
            cells=cells,
            clients=4,
            stream=stream,
            cpu_hz=1e9,
            association=association,
        )
    )
    assert together.gain_db.shape == (len(STREAMS), 4)


def test_values_of_many_placed_networks_differ_by_network():
    cpu_hz = np.linspace(1e9, 2e9, 18).reshape(9, 2)
    build = {"layout": channels.Disc(), "path_loss": channels.LogDistance(), "cells": 1}
    together = channels.placed_network(**build, clients=2, stream=STREAMS, cpu_hz=cpu_hz)
    alone = channels.placed_network(**build, clients=2, stream=STREAMS[4], cpu_hz=cpu_hz[4])
    assert_same(together[4], alone)
    assert np.array_equal(together.cpu_hz, cpu_hz)


def values(count, clients, cells):
    """Arguments with an axis of networks."""
    numbers = np.random.default_rng(1)
    return {
        "gain_db": numbers.uniform(-120, -60, (count, clients)),
        "cpu_hz": numbers.uniform(1e9, 2e9, (count, clients)),
        "transmit_power_w": numbers.uniform(0.1, 0.2, (count, clients)),
        "switched_capacitance": numbers.uniform(1e-28, 2e-28, (count, clients)),
        "bandwidth_hz": numbers.uniform(1e6, 2e6, (count, cells)),
    }


@pytest.mark.parametrize("listed", [("gain_db",), ("bandwidth_hz",), ("cpu_hz",), None])
def test_arrays_of_gains_powers_bands_and_clocks(listed):
    """What has no axis of networks is shared."""
    arrays = values(4, 3, 2)
    arguments = {k: v if listed is None or k in listed else v[0] for k, v in arrays.items()}
    others = {"antennas": 4, "noise_figure_db": 3.0, "fading": channels.Rician()}
    together = Networks([0, 0, 1], **arguments, **others)
    for number, network in enumerate(together):
        alone = {name: v[number] if v.ndim == 2 else v for name, v in arguments.items()}
        assert_same(network, Network([0, 0, 1], **alone, **others))
    assert np.array_equal(together.gain_db, [network.gain_db for network in together])
    assert np.array_equal(together.bandwidth_hz, [network.bandwidth_hz for network in together])
    assert together.transmit_power_w.shape == (4, 3)
    assert (together.cells, together.clients, together.cell_of.tolist()) == (2, 3, [0, 0, 1])


def test_snrs_of_many_networks():
    snr_db = np.arange(6.0).reshape(3, 2)
    together = Networks.from_snr([0, 0], cpu_hz=1e9, snr_db=snr_db, path_gain_db=[-1.0, 2.0])
    for number, network in enumerate(together):
        alone = Network.from_snr(
            [0, 0], cpu_hz=1e9, snr_db=snr_db[number], path_gain_db=[-1.0, 2.0]
        )
        assert_same(network, alone)


@pytest.mark.parametrize("gain_db", [-90.0, [[-90.0, -80.0], [-70.0, -60.0], [-50.0, -40.0]]])
def test_gains_replace_path_gains(gain_db):
    """As in a single network, whose copies state the path gains that they had."""
    path_gain_db = np.arange(6.0).reshape(3, 2)
    together = Networks([0, 0], gain_db=gain_db, path_gain_db=path_gain_db, cpu_hz=1e9)
    gains = np.broadcast_to(gain_db, (3, 2))
    assert together.gain_db == pytest.approx(gains)
    for network, gain, path_gain in zip(together, gains, path_gain_db, strict=True):
        assert_same(network, Network([0, 0], gain_db=gain, path_gain_db=path_gain, cpu_hz=1e9))


def test_single_networks_are_stacked():
    """With their values: a changed band keeps the noise with which an SNR holds."""
    alone = [channels.umi(2, 5, stream=stream) for stream in STREAMS]
    alone[3] = replace(alone[3], bandwidth_hz=[1e6, 2e6], transmit_power_w=0.1)
    together = Networks.stack(alone)
    for network, one in zip(together, alone, strict=True):
        assert_same(network, one)
    snr = [channels.section_vi_c(2, 4, stream=stream) for stream in STREAMS]
    snr[1] = replace(snr[1], bandwidth_hz=1e6)
    for network, one in zip(Networks.stack(snr), snr, strict=True):
        assert_same(network, one)
        assert np.array_equal(network.snr_db, one.snr_db)
    assert [network.clients for network in together[-2:]] == [5, 5]
    for place in (9, -10):
        with pytest.raises(IndexError, match=rf"networks\[{place}\] does not exist: there are 9"):
            together[place]
    with pytest.raises(TypeError, match=r"networks\[1.0\]: give an integer or a slice"):
        together[1.0]
    assert (
        repr(together)
        == "<Networks: 9 networks of 5 clients in 2 cells, 20 MHz per cell, 8 antennas>"
    )


def test_networks_with_devices_share_them():
    phone = channels.DEVICES[next(iter(channels.DEVICES))]
    together = Networks([0, 0], gain_db=np.full((3, 2), -80.0), devices=phone)
    alone = Network([0, 0], gain_db=-80.0, devices=phone)
    assert_same(together[2], replace(alone, devices=together[2].devices))
    assert_same(Networks.stack([alone, alone])[1], alone)


def test_networks_that_differ_in_what_is_shared_are_refused():
    one = channels.umi(2, 5, stream=STREAMS[0])
    for other, name in (
        (replace(one, antennas=2), "antennas"),
        (replace(one, placement=None), "placement"),
        (channels.uma(2, 5, stream=STREAMS[0]), "antennas"),
    ):
        with pytest.raises(ValueError, match=rf"networks\[1\] has another {name}"):
            Networks.stack([one, other])
    for other in (channels.umi(2, 6, stream=STREAMS[0]), channels.umi(3, 5, stream=STREAMS[0])):
        with pytest.raises(
            ValueError, match=r"networks\[1\] has other clients per cell than networks\[0\]"
        ):
            Networks.stack([one, other])
    with pytest.raises(ValueError, match=r"networks\[0\] has interference"):
        Networks.stack([channels.umi(2, 5, stream=STREAMS[0], reuse_factor=1)])
    with pytest.raises(TypeError, match=r"networks is <Network: .*: give a list of networks"):
        Networks.stack(one)
    with pytest.raises(TypeError, match=r"networks is <generator .*: give a list of networks"):
        Networks.stack(network for network in [one])
    with pytest.raises(ValueError, match=r"networks\[1\] has part"):
        Networks.stack([one, one.of([1])])
    with pytest.raises(ValueError, match="networks is empty"):
        Networks.stack([])
    with pytest.raises(TypeError, match=r"networks\[1\] is 3"):
        Networks.stack([one, 3])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"gain_db": -80.0, "cpu_hz": 1e9}, "no argument has an axis of networks"),
        (
            {"gain_db": np.empty((0, 2)), "cpu_hz": 1e9},
            r"gain_db has shape \(0, 2\): give \[networks, clients\], at least one network of 2 cl",
        ),
        (
            {"gain_db": np.full((3, 3), -80.0), "cpu_hz": 1e9},
            r"gain_db has shape \(3, 3\): give \[networks, clients\]",
        ),
        (
            {"gain_db": np.full((3, 2, 1), -80.0), "cpu_hz": np.full((3, 2), 1e9)},
            r"gain_db has shape \(3, 2, 1\): give \[networks, clients\]",
        ),
        ({"gain_db": [[-80.0, np.nan]] * 2, "cpu_hz": 1e9}, r"gain_db\[0, 1\] is nan"),
        (
            {"gain_db": -80.0, "cpu_hz": 1e9, "bandwidth_hz": [[1e6], [-1.0]]},
            r"bandwidth_hz\[1, 0\] is -1",
        ),
        (
            {"gain_db": np.full((3, 2), -80.0), "cpu_hz": np.full((4, 2), 1e9)},
            "numbers of networks differ: gain_db has 3, cpu_hz has 4",
        ),
        ({"gain_db": np.full((3, 2), 5.0), "cpu_hz": 1e9}, "mean channel gain is at most 0 dB"),
        (
            {"gain_db": np.full((3, 2), -80.0), "cpu_hz": [[1e9, 1e9]] * 2 + [[1e9, 0.0]]},
            r"cpu_hz\[2, 1\] is 0",
        ),
        (
            {"gain_db": -80.0, "cpu_hz": 1e9, "bandwidth_hz": np.full((3, 2), 1e6)},
            r"bandwidth_hz has shape \(3, 2\): give \[networks, cells\], at least one network",
        ),
    ],
)
def test_invalid_arrays_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        Networks([0, 0], **arguments)


def test_arguments_of_single_networks_are_refused():
    gains = np.full((3, 2), -80.0)
    with pytest.raises(TypeError, match="part is given for several networks"):
        Networks([0, 0], gain_db=gains, cpu_hz=1e9, part=[0, 1])
    with pytest.raises(TypeError, match="gain_db conflicts with snr_db"):
        Networks.from_snr([0, 0], cpu_hz=1e9, snr_db=gains, gain_db=gains)
    with pytest.raises(ValueError, match=r"snr_db\[1\] is 301\.0: give .* within"):
        Networks.from_snr([0, 0], cpu_hz=[[1e9, 1e9]] * 2, snr_db=[0.0, 301.0])
    placement = channels.umi(1, 2, stream=STREAMS[:3]).placement
    with pytest.raises(ValueError, match="gain_db differs from the path loss"):
        Networks([0, 0], gain_db=gains, cpu_hz=1e9, placement=placement)


@pytest.mark.parametrize("preset", [channels.umi, channels.section_vi_c])
def test_streams_that_are_none_are_refused(preset):
    with pytest.raises(TypeError, match=r"stream is \[1, 2\]: give a channels.Stream, or a list"):
        preset(1, 2, stream=[1, 2])
    with pytest.raises(ValueError, match="stream is an empty list"):
        preset(1, 2, stream=[])


@pytest.mark.parametrize("association", ["placed", "strongest"])
@pytest.mark.parametrize("rows", [2, 4])
def test_each_stream_needs_a_row_of_values(association, rows):
    with pytest.raises(ValueError, match=f"networks differ: stream has 3, cpu_hz has {rows}"):
        channels.placed_network(
            channels.Hexagonal(),
            channels.Umi(),
            cells=2,
            clients=6,
            stream=STREAMS[:3],
            cpu_hz=np.full((rows, 6), 1e9),
            association=association,
        )


@pytest.mark.parametrize("preset", [channels.umi, channels.uma])
def test_networks_that_interfere_are_built_one_by_one(preset):
    with pytest.raises(ValueError, match="reuse_factor is 1, and stream is a list: build the"):
        preset(2, 4, stream=STREAMS, reuse_factor=1)


def test_networks_with_mobility_are_built_one_by_one():
    with pytest.raises(ValueError, match=r"mobility is RandomWaypoint.*, and stream is a list"):
        channels.placed_network(
            channels.Hexagonal(),
            channels.Umi(),
            cells=2,
            clients=4,
            stream=STREAMS,
            cpu_hz=1e9,
            mobility=channels.RandomWaypoint(5.0),
        )


def test_cells_that_differ_by_stream_are_refused():
    """Of these streams some have other clients per cell, by their gains."""
    with pytest.raises(
        ValueError, match=r"networks\[\d\] has other clients per cell than networks\[0\]"
    ):
        channels.placed_network(
            channels.Hexagonal(),
            channels.Umi(),
            cells=2,
            clients=12,
            stream=STREAMS,
            cpu_hz=1e9,
            association="strongest",
        )
