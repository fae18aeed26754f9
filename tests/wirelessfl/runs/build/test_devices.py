"""Devices in runs: measured seconds and joules reach every schedule, price, plan and log."""

from dataclasses import replace

import numpy as np
import pytest

import channels
import wirelessfl
from channels import Device, Devices, Network
from tests.wirelessfl.designs.known import Known
from wirelessfl import Config
from wirelessfl.base.errors import ConfigError

BATCH, STEPS, RATE = 8, 3, 8e6
TABLE = (
    Device(name="phone", seconds_per_sample=0.02, watts=3.0, share=3),
    Device(name="board", seconds_per_sample=0.1, joules_per_sample=0.6, share=1),
)
SMALL = {"batch_size": BATCH, "local_steps": STEPS, "rounds": 2, "hidden": (16,)}
SMALL |= {"threads": 1, "chunk": 2, "uplink": "fixed", "rate_mbps": RATE / 1e6}
PARAMETERS = 64 * 16 + 16 + 16 * 10 + 10
SENDING = 32 * PARAMETERS / RATE
UNDER = {
    "rounds": ("fedavg", {}),
    "submodels": ("ra-fed", {"capacities": (1.0, 0.5)}),
    "cells": ("hist", {"cells": 2, "edge_rounds": 1}),
    "asynchronous cells": ("hfedavg", {"schedule": "buffered", "buffer": 1, "cells": 2}),
    "sessions": ("fedavg", {"sessions": 2, "rounds": 1}),
    "requests": ("fedast", {"requests": 5, "buffer": 2}),
    "simultaneous": ("fedast", {"schedule": "simultaneous", "first": 5}),
}
SCALED = {"linear_flop_per_second": 1e6, "conv_flop_per_second": 1e3}


def table():
    return TABLE


def waiting():
    return [replace(row, idle_watts=0.4) for row in TABLE]


def of_flops():
    return [Device(name="x", flop_per_second=1e9, watts=4.0, **SCALED)]


def configured(algorithm="fedavg", devices=f"{__name__}:table", **settings):
    return Config.from_flags(algorithm, **(SMALL | {"clients": 8, "devices": devices} | settings))


def last_of(config, **objects):
    """Seconds and joules at the end, by the price and by the trained run."""
    prices = wirelessfl.price(config, **objects).rows[-1]
    return [prices[name] for name in ("sim_seconds", "joules", "joules_max") if name in prices]


def test_a_round_takes_the_seconds_and_joules_of_the_devices():
    """Boards end last: steps x batch x seconds, and both transfers; joules by watts, mean of 8."""
    seconds, joules, most = last_of(configured(rounds=1))
    assert seconds == pytest.approx(STEPS * BATCH * 0.1 + 2 * SENDING, rel=1e-12)
    assert joules == pytest.approx(STEPS * BATCH * (6 * 0.06 + 2 * 0.6) / 8, rel=1e-12)
    assert most == pytest.approx(STEPS * BATCH * 0.6, rel=1e-12)


def test_devices_that_wait_spend_their_idle_watts():
    """Phones wait for the boards, and all while they receive; log, price and design agree."""
    alone, idle = (configured(devices=f"{__name__}:{name}") for name in ("table", "waiting"))
    wait = STEPS * BATCH * (0.1 - 0.02)
    expected = 2 * 0.4 * (6 * wait / 8 + SENDING)  # two rounds
    assert last_of(idle)[1] - last_of(alone)[1] == pytest.approx(expected, rel=1e-9)
    radio = [config.changed(uplink="tdma", rate_mbps=None) for config in (alone, idle)]
    plan = {"target": 0.5, "curve": Known(), "local_steps": [STEPS], "uplinks": ["tdma"]}
    plan |= {"objective": (1e-3, 1.0), "draws": 2}
    joules = [wirelessfl.design(config, **plan).objective for config in radio]
    assert joules[1] > joules[0]


@pytest.mark.thorough(every=3)
@pytest.mark.parametrize("under", UNDER)
def test_every_schedule_takes_devices_as_clocks_of_the_same_seconds_and_watts(under, tmp_path):
    algorithm, settings = UNDER[under]
    config = configured(algorithm, **settings, out=tmp_path / "run")
    of = setup_network(config).devices.of
    seconds = BATCH * np.array([0.02, 0.1])[of]
    watts = np.array([3.0, 6.0])[of]
    network = Network(
        setup_network(config).cell_of,
        gain_db=-100.0,
        cpu_hz=1e6 / seconds,
        switched_capacitance=watts / (1e6 / seconds) ** 3,
    )
    flags = {key: value for key, value in settings.items() if key != "cells"}
    plain = Config.from_flags(algorithm, **(SMALL | flags))
    ours = last_of(config)
    assert ours == pytest.approx(last_of(plain, network=network), rel=1e-12)
    result = wirelessfl.run(config)
    assert [result.rows[-1][name] for name in ("sim_seconds", "joules")] == ours[:2]


def setup_network(config):
    from wirelessfl.runs.build.network import build_network

    return build_network(config.network, channels.Stream(config.run.seed), config)


@pytest.mark.parametrize("algorithm", ["fedavg", "fedast"])
def test_flops_are_counted_by_kind_of_layer(algorithm):
    """2 x 2 x batch x weights in the first layer, 3 x 2 in the second, over FLOP/s of linear."""
    own = {"requests": 1, "buffer": 1, "rounds": 1} if algorithm == "fedast" else {"rounds": 1}
    config = configured(algorithm, devices=f"{__name__}:of_flops", **own)
    priced = wirelessfl.price(config)
    step = (4 * BATCH * 64 * 16 + 6 * BATCH * 16 * 10) / 1e6
    seconds = STEPS * step + 2 * SENDING
    assert priced.rows[-1]["sim_seconds"] == pytest.approx(seconds, rel=1e-12)
    trained = 8 if algorithm == "fedavg" else 1
    assert priced.rows[-1]["joules"] == pytest.approx(4 * STEPS * step * trained / 8, rel=1e-12)


def test_tasks_have_steps_of_their_own():
    """Seconds of a sample do not depend on the task, and steps take its batches and FLOPs."""
    tasks = [f"digits,name=a,batch_size={BATCH}", f"digits,name=b,batch_size={2 * BATCH}"]
    flags = {key: value for key, value in SMALL.items() if key not in ("batch_size", "hidden")}
    config = Config.from_flags(
        "fedast", **flags, clients=4, requests=2, buffer=1, task=tasks, devices=f"{__name__}:table"
    )
    delays = wirelessfl.runs.build.build(config).handler.requests.delays
    table = np.array([0.02, 0.1])[setup_network(config).devices.of]
    down = delays.seconds(0, 0, 0) - STEPS * BATCH * table[0]
    for client in range(4):
        for task, batch in enumerate((BATCH, 2 * BATCH)):
            expected = STEPS * batch * table[client] + down
            assert delays.seconds(task, client, 0) == pytest.approx(expected, rel=1e-12)
    with pytest.raises(ConfigError, match=r"task 'b'.*cycles_per_step.*devices"):
        config.changed(task=["digits,name=a", "digits,name=b,cycles_per_step=1e6"])


def test_client_logs_and_budgets_of_energy(tmp_path):
    config = configured(client_log=True, client_joules=10.0, rounds=3, out=tmp_path / "run")
    wirelessfl.run(config)
    log = wirelessfl.read_client_log(tmp_path / "run")
    of = setup_network(config).devices.of
    boards = of[log["client"]] == 1
    spent = np.where(boards, STEPS * BATCH * 0.6, STEPS * BATCH * 0.06)
    np.testing.assert_allclose(log["compute_joules"], spent, rtol=1e-11)
    np.testing.assert_allclose(log["compute_seconds"], spent / np.where(boards, 6, 3), rtol=1e-11)
    np.testing.assert_array_equal(np.bincount(log["client"]), np.where(of == 1, 1, 3))  # 14.4 J


def test_prices_of_several_networks():
    config = Config.from_flags("fedavg", **SMALL)
    networks = [
        Network(np.zeros(8, int), gain_db=-100.0, devices=Devices(TABLE, [row] * 8))
        for row in (0, 1)
    ]
    networks.append(Network(np.zeros(8, int), gain_db=-100.0, cpu_hz=1e9))
    prices = wirelessfl.price(config, network=networks)
    alone = [last_of(config, network=network)[:2] for network in networks]
    assert np.stack([prices.seconds[:, -1], prices.joules[:, -1]], 1).tolist() == alone


def test_plans_and_designs_leave_out_what_decides_clocks():
    config = configured(uplink="tdma", rate_mbps=None)
    options = wirelessfl.plan(config, rounds=1)
    assert any("devices with measured joules" in str(option.reason) for option in options.options)
    assert len([option for option in options if option.reason is None]) >= 5
    design = wirelessfl.design(config, target=0.5, curve=Known(), objective=(1.0, 1.0), draws=2)
    assert np.isfinite(design.objective)


def unequal():
    """Two rates up, and two down."""
    up, down = ({"uplink_mbps": 4.0}, {"downlink_mbps": 2.0})
    return [replace(TABLE[0], **up), replace(TABLE[1], **down)]


def receiving():
    return [replace(row, downlink_mbps=2.0) for row in TABLE]


def test_rates_of_devices_up_and_down():
    """Each direction has the device's rate, or that of the uplink."""
    seconds, *_ = last_of(configured(devices=f"{__name__}:unequal", rounds=1))
    bits = 32 * PARAMETERS
    phone = STEPS * BATCH * 0.02 + bits / RATE + bits / 4e6
    board = STEPS * BATCH * 0.1 + bits / 2e6 + bits / RATE
    assert seconds == pytest.approx(max(phone, board), rel=1e-12)


def test_the_capacities_of_fedscale_give_its_durations(tmp_path):
    """FedScale: 3 x batch x steps x computation / 1000 s, and both sizes over communication."""
    rows = ["client_id,computation,communication"]
    rows += [f"{client},{20 + client},{500 + 100 * client}" for client in range(8)]
    (tmp_path / "capacity.csv").write_text("\n".join(rows))
    seconds, *_ = last_of(configured(devices=str(tmp_path / "capacity.csv"), rounds=1))
    kbit = 32 * PARAMETERS / 1000
    durations = [
        3 * BATCH * STEPS * (20 + client) / 1000 + 2 * kbit / (500 + 100 * client)
        for client in range(8)
    ]
    assert seconds == pytest.approx(max(durations), rel=1e-12)


@pytest.mark.parametrize("algorithm", ["fedavg", "fedast"])
def test_downloads_take_the_rates_of_devices(algorithm, tmp_path):
    own = {"requests": 1, "buffer": 1, "rounds": 1} if algorithm == "fedast" else {"rounds": 1}
    own |= {"uplink": "tdma", "rate_mbps": None, "snr_db": 200.0}  # uploads take microseconds
    table, plain = (
        last_of(configured(algorithm, devices=f"{__name__}:{name}", **own))[0]
        for name in ("receiving", "table")
    )
    assert table - plain == pytest.approx(32 * PARAMETERS / 2e6, rel=1e-9)


@pytest.mark.parametrize(
    ("name", "settings", "message"),
    [
        ("unequal", {"uplink": "tdma", "rate_mbps": None}, 'choose uplink "fixed"'),
        ("unequal", {"algorithm": "fedbuff", "buffer": 2}, 'choose schedule "rounds"'),
        ("receiving", {"downlink_mbps": 3.0}, "downlink_mbps=3 conflicts with"),
    ],
)
def test_rates_that_do_not_fit(name, settings, message):
    with pytest.raises(ConfigError, match=message):
        wirelessfl.price(configured(devices=f"{__name__}:{name}", **settings))


@pytest.mark.parametrize(
    "settings",
    [
        {"cpu_hz": (1e9, 2e9)},
        {"cycles_per_step": 1e6},
        {"cycles_per_flop": 2.0},
        {"step_seconds": 0.1},
        {"switched_capacitance": 1e-28},
    ],
)
def test_settings_that_devices_replace_are_refused(settings):
    [name] = settings
    with pytest.raises(ConfigError, match=f"{name}=.* conflicts with devices="):
        configured(**settings)


@pytest.mark.parametrize(
    ("devices", "message"),
    [
        ("raspbery-pi-4", "no built-in device: do you mean raspberry-pi-4"),
        ("absent.csv", "no built-in device"),
        (f"{__name__}:BATCH", "is 8: give a list of channels.Device"),
    ],
)
def test_devices_that_do_not_exist(devices, message):
    with pytest.raises(ConfigError, match=message):
        wirelessfl.price(configured(devices=devices))


def test_decided_clocks_are_refused_by_price_and_run_alike():
    config = configured(uplink="ofdma", rate_mbps=None, round_deadline=100.0)
    for call in (wirelessfl.price, wirelessfl.run):
        with pytest.raises(ConfigError, match="devices with measured joules"):
            call(config)
