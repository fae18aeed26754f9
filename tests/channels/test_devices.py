"""Steps on devices take the stated seconds and joules; their network is one of such clocks."""

import pickle
from dataclasses import replace

import numpy as np
import pytest

import channels
from channels import (
    DEVICES,
    Device,
    Devices,
    EqualBands,
    EqualSlots,
    Load,
    Network,
    ReadyOrder,
    Stream,
    read_devices,
)
from channels.device_files import named_devices
from solvers import EnergyWithinDeadline, OptimalBands, allocate_energy

PHONE = Device(
    name="phone", seconds_per_sample=0.02, watts=3.0, transmit_watts=0.7, battery_joules=4e4
)
BOARD = Device(
    name="board", flop_per_second=1e9, linear_flop_per_second=4e9, conv_flop_per_second=2e9, watts=5
)
METERED = Device(name="metered", seconds_per_sample=0.5, joules_per_sample=2.0, idle_watts=0.3)
TABLE = (PHONE, BOARD, METERED)
OF = [0, 1, 2, 2, 0, 1]
FLOPS = (8e9, 2e9, 3e9)
DAY = "2026-01-01"
STEP_SECONDS = np.array([50 * 0.02, 8 / 4 + 2 / 2 + 3 / 1, 50 * 0.5])[OF]
WATTS = np.array([3.0, 5.0, 4.0])[OF]


def network_of(**others):
    devices = Devices(TABLE, OF, samples=50, flops=FLOPS)
    return Network([0, 0, 0, 1, 1, 1], gain_db=-100.0, devices=devices, **others)


def test_steps_take_the_seconds_and_watts_of_the_devices():
    """Seconds of a sample times samples, or FLOPs over FLOP/s by layer; joules: seconds x watts."""
    load = Load(cycles=3 * 1e6 * np.array([1, 0.5, 1, 1, 1, 0.25]))  # 3 steps of submodels
    expected = 3 * STEP_SECONDS * [1, 0.5, 1, 1, 1, 0.25]
    np.testing.assert_allclose(load.ready_seconds(network_of()), expected, rtol=1e-14)
    np.testing.assert_allclose(load.compute_joules(network_of()), WATTS * expected, rtol=1e-14)


@pytest.mark.parametrize("access", [EqualSlots(), EqualBands(), ReadyOrder(), OptimalBands()])
def test_accesses_serve_devices_as_clocks_of_the_same_seconds_and_watts(access):
    clocks = 1e6 / STEP_SECONDS
    plain = Network(
        [0, 0, 0, 1, 1, 1], gain_db=-100.0, cpu_hz=clocks, switched_capacitance=WATTS / clocks**3
    )
    load = Load(cycles=2e6, elements=1e5)
    ours, theirs = (access.serve(load, each.draw(Stream(1))) for each in (network_of(), plain))
    np.testing.assert_allclose(ours.seconds, theirs.seconds, rtol=1e-12)
    sending = (theirs.joules - WATTS * 2 * STEP_SECONDS) / 0.1  # seconds of sending
    drawn = np.where(np.array(OF) == 0, 0.7, 0.1)
    np.testing.assert_allclose(ours.joules, WATTS * 2 * STEP_SECONDS + drawn * sending, rtol=1e-9)


def same_devices(one, other):
    np.testing.assert_array_equal(one.devices.of, other.devices.of)
    assert one.devices.table == other.devices.table
    assert (one.devices.samples, one.devices.flops) == (other.devices.samples, other.devices.flops)
    for name in ("cpu_hz", "switched_capacitance", "battery_joules"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))


def test_copies_parts_and_stored_networks_keep_their_devices(tmp_path):
    network = network_of()
    channels.save_network(network, tmp_path / "network.npz")
    same_devices(channels.load_network(tmp_path / "network.npz"), network)
    same_devices(pickle.loads(pickle.dumps(network)), network)
    same_devices(replace(network, transmit_power_w=0.2), network)
    part = network.of([1, 3, 4])
    np.testing.assert_array_equal(part.cpu_hz, network.cpu_hz[[1, 3, 4]])
    np.testing.assert_array_equal(part.devices.of, [1, 2, 0])
    again = network.regrouped(np.array([5, 0, 0]), np.array([1, 0]), np.array([1, 2]))
    np.testing.assert_array_equal(again.devices.of, [1, 0, 0])
    np.testing.assert_array_equal(
        network.battery_joules, [4e4, np.inf, np.inf, np.inf, 4e4, np.inf]
    )
    assert replace(network, devices=None).battery_joules is None


def test_another_step_changes_seconds_and_keeps_watts():
    network = network_of().at_step(25, (4e9, 1e9, 1.5e9))
    load = Load(cycles=1e6)
    np.testing.assert_allclose(load.ready_seconds(network), STEP_SECONDS / 2, rtol=1e-14)
    np.testing.assert_allclose(load.compute_joules(network), WATTS * STEP_SECONDS / 2, rtol=1e-14)
    plain = Network([0], cpu_hz=1e9, gain_db=-100)
    assert plain.at_step(25) is plain


def test_placed_networks_sort_devices_by_cell(tmp_path):
    rows = ["kind,x_m,y_m", "base_station,0,0", "base_station,500,0"]
    rows += ["client,490,0", "client,10,0", "client,480,0"]
    (tmp_path / "positions.csv").write_text("\n".join(rows))
    layout = channels.FileLayout(tmp_path / "positions.csv")
    network = channels.placed_network(
        layout, channels.Umi(), stream=Stream(1), devices=[PHONE, BOARD, METERED]
    )
    names = [network.devices.table[row].name for row in network.devices.of]
    assert names == ["board", "phone", "metered"]
    assert "board" in network._repr_html_()


def test_counts_shares_and_order():
    rows = [replace(PHONE, share=2), replace(BOARD, share=1), replace(METERED, share=1)]
    drawn = Devices.drawn(rows, 10, Stream(1))
    assert drawn.counts == {"phone": 5, "board": 3, "metered": 2}  # 2.5 each: the first rounds up
    again, other = (Devices.drawn(rows, 10, Stream(seed)) for seed in (1, 2))
    np.testing.assert_array_equal(drawn.of, again.of)
    assert (drawn.of != other.of).any()
    assert Devices.drawn([replace(PHONE, count=3)], 3, Stream(1)).counts == {"phone": 3}
    np.testing.assert_array_equal(Devices.drawn(TABLE, 3, Stream(1)).of, [0, 1, 2])  # in order


def test_a_million_clients_take_a_byte_each():
    devices = Devices.drawn(named_devices("mixed"), 10**6, Stream(1))
    network = Network(np.zeros(10**6, int), gain_db=-100.0, devices=devices)
    assert devices.of.nbytes == 10**6
    stored = vars(network)
    for name in ("cpu_hz", "switched_capacitance"):
        assert stored[name].of is devices.of
        assert len(stored[name].kinds) == len(devices.table)


def fields(**changed):
    return {"name": "x", "seconds_per_sample": 0.1} | changed


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (fields(seconds_per_sample=0), "seconds_per_sample of device 'x' is 0"),
        (fields(watts=-1.0), "watts of device 'x' is -1.0"),
        (fields(flop_per_second=1e9), "both seconds_per_sample and flop_per_second"),
        ({"name": "x"}, "neither seconds_per_sample nor flop_per_second"),
        (fields(conv_flop_per_second=1e9), "conv_flop_per_second .* conflicts with seconds"),
        (fields(watts=1, joules_per_sample=1), "joules_per_sample .* conflicts with watts"),
        ({"name": "x", "flop_per_second": 1e9, "joules_per_sample": 1}, "needs seconds_per_sample"),
        (fields(count=1, share=1), "has count and share"),
        (fields(count=1.5), "count of device 'x' is 1.5"),
        (fields(name=""), "name of a device is ''"),
    ],
)
def test_devices_that_make_no_sense(wrong, message):
    with pytest.raises(ValueError, match=message):
        Device(**wrong)


@pytest.mark.parametrize(
    ("made", "message"),
    [
        (
            lambda: Network([0], cpu_hz=1e9, gain_db=-100, devices=PHONE),
            "cpu_hz conflicts with dev",
        ),
        (lambda: network_of(cycles_per_step=2e6), "cycles_per_step is 2e.06 and conflicts"),
        (lambda: network_of(switched_capacitance=1e-28), "switched_capacitance conflicts"),
        (lambda: Network([0, 0, 0], gain_db=-100, devices=[PHONE, BOARD]), "2 rows, and the netw"),
        (lambda: Network([0], gain_db=-100, devices=Devices(TABLE, [0, 1])), "of 2 clients"),
        (lambda: Devices(TABLE, [3]), "of contains 3: give rows from 0 to 2"),
        (lambda: Devices.drawn([replace(PHONE, count=2)], 3, Stream(1)), "add up to 2, and cl"),
        (lambda: Devices.drawn([replace(PHONE, count=2), BOARD], 3, Stream(1)), "has no count"),
        (lambda: named_devices("raspbery-pi-4"), "do you mean raspberry-pi-4"),
    ],
)
def test_conflicts(made, message):
    with pytest.raises(ValueError, match=message):
        made()
    with pytest.raises(TypeError, match="cpu_hz is missing"):
        Network([0], gain_db=-100)


def test_solvers_of_clocks_refuse_measured_joules():
    load, draw = Load(cycles=1e6, elements=1e4), network_of().draw(Stream(1))
    with pytest.raises(ValueError, match="devices with measured joules"):
        EnergyWithinDeadline(1e3).serve(load, draw)
    with pytest.raises(ValueError, match="devices with measured joules"):
        allocate_energy(load, draw, deadline_seconds=1e3)


def test_tables_in_files(tmp_path):
    text = (
        "# comment\nname, share, seconds_per_sample, watts,source\np, 3, 0.02, 3.0, mine\nq,1,1,,\n"
    )
    (tmp_path / "table.csv").write_text(text)
    assert read_devices(tmp_path / "table.csv") == [
        Device(name="p", share=3, seconds_per_sample=0.02, watts=3, source="mine"),
        Device(name="q", share=1, seconds_per_sample=1),
    ]


def test_the_capacities_of_fedscale(tmp_path):
    """FedScale: 3 x batch x steps x computation / 1000 s, and kbit over communication."""
    (tmp_path / "capacity.csv").write_text("client_id,computation,communication\n7,40,5000\n")
    [device] = read_devices(tmp_path / "capacity.csv")
    assert device.name == "7"
    assert 5 * device.seconds(samples=20) == pytest.approx(3 * 20 * 5 * 40 / 1000)
    assert (device.uplink_mbps, device.downlink_mbps, device.watts) == (5.0, 5.0, None)


@pytest.mark.parametrize(
    ("header", "row"),
    [
        ("time,power_w", lambda t: f"{t},{2 + t / 10}"),
        ("Time (ms),Power (mW)", lambda t: f"{1000 * t},{1000 * (2 + t / 10)}"),
        ("seconds,volts,amperes", lambda t: f"{t},4,{(2 + t / 10) / 4}"),
        ("timestamp,voltage_v,current_ma", lambda t: f"{DAY}T00:00:{t:02},4,{500 + 25 * t}"),
    ],
)  # fmt: skip
def test_logs_of_power_meters_are_integrated(tmp_path, header, row):
    """A ramp from 2 to 4 W in 20 s, at unequal times, has 60 J exactly."""
    lines = [header, *(row(t) for t in (0, 1, 5, 12, 20))]
    (tmp_path / "meter.csv").write_text("\n".join(lines))
    [device] = read_devices(tmp_path / "meter.csv", samples=100)
    assert device.name == "meter"
    assert device.seconds_per_sample == pytest.approx(0.2)
    assert device.seconds(100) * device.watts == pytest.approx(60.0)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "has no rows"),
        ("name,wats\nx,1\n", "unknown column 'wats'. Do you mean watts"),
        ("device,watts\nx,1\n", "unknown column 'device'"),
        ("watts\n1\n", "has no column name"),
        ("name,watts,seconds_per_sample\nx,much,1\n", "watts is 'much': give a number"),
        ("time,watts\n0,1\n1,1\n", "say how many samples"),
    ],
)
def test_wrong_files(tmp_path, text, message):
    file = tmp_path / "devices.csv"
    file.write_text(text)
    with pytest.raises(ValueError, match=message):
        read_devices(file)
    with pytest.raises(ValueError, match="cannot be read as CSV"):
        read_devices(tmp_path / "absent.csv")


def test_built_in_devices_have_sources():
    table = DEVICES
    assert len(table) >= 12
    for device in table.values():
        assert "github.com" in device.source or "http" in device.source
        assert device.watts is not None
    assert {"raspberry-pi-4", "jetson-nano", "rtx-3060", "xiaomi-mi-8"} <= table.keys()
    assert table["raspberry-pi-5"].seconds(flops=(3.0249e10, 0, 0)) == pytest.approx(1, rel=1e-3)
