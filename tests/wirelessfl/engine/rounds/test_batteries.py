"""Runs with batteries: conservation of energy by client, rounds that wait, and equal runs."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose

import wirelessfl
from channels import Network
from wirelessfl.base.errors import ConfigError
from wirelessfl.cli.main import main
from wirelessfl.engine.server.ledger import Ledger
from wirelessfl.runs.build import build
from wirelessfl.runs.folder.run_folder import RunFolder

FLAGS = {"clients_per_round": 3, "rounds": 24, "cycles_per_step": 1e6, "cpu_hz": (1e9, 3e9)}
BATTERY = {"battery_joules": (2e-3, 4e-3), "recharge": "harvest", "packet_joules": 4e-4}
BATTERY |= {"packets_per_second": 30.0}


def without_charges(rows):
    names = ("charge_min", "charge_mean", "empty", "wall_seconds")
    return [{name: value for name, value in row.items() if name not in names} for row in rows]


@pytest.mark.parametrize("on_empty", ["wait", "drop"])
def test_energy_is_conserved_by_client(config, toy, on_empty):
    """Full battery + harvested - spent = charge in each row, by the client log and the times."""
    settings = config("fedavg", **FLAGS, **BATTERY, on_empty=on_empty, client_log=True)
    run = wirelessfl.run(settings, data=toy)
    limits = build(settings.changed(), data=toy, trained=False).planner.participation.energy
    log = wirelessfl.read_client_log(run.directory)
    spent = log["compute_joules"] + log["send_joules"]
    charge, at = limits.capacity.copy(), np.zeros(6)
    assert (charge >= 2e-3).all()
    assert (charge <= 4e-3).all()
    assert np.ptp(charge) > 0

    def advance(now):
        for client in range(6):
            more = limits.recharge.joules(np.array([client]), at[[client]], now, limits.stream)
            charge[client] = min(charge[client] + more[0], limits.capacity[client])
        at[:] = now

    declined = 0
    for row in run.rows[1:]:
        mine = log["round"] == row["round"]
        # A round starts when it can, also with a packet, and lasts as long as each of its clients.
        advance(max(row["sim_seconds"] - log.seconds[mine][0] + 1e-9, at[0]))
        charge[log["client"][mine]] -= spent[mine]
        assert (charge > -1e-12).all()
        assert_allclose(charge[log["client"][mine]], log["charge_joules"][mine], rtol=1e-6)
        advance(row["sim_seconds"])
        assert row["charge_mean"] == pytest.approx(charge.mean(), rel=1e-6)
        assert row["charge_min"] == pytest.approx(charge.min(), rel=1e-5, abs=1e-9)
        declined += row["empty"] > 0
    assert declined > 3
    if on_empty == "wait":
        assert len(run.rows) == 25
        seconds = np.diff([row["sim_seconds"] for row in run.rows])
        lasts = [log.seconds[log["round"] == n][0] for n in range(1, 25)]
        assert (seconds > np.array(lasts) + 1e-9).any()  # it has waited for a charged client
    else:
        assert run.ended.endswith("the batteries of all clients hold less than a round takes")


def test_huge_batteries_change_nothing(config, toy):
    """The rows without charges, and the parameters, are those of a run without batteries."""
    plain = wirelessfl.run(config("fedavg", **FLAGS, select="soonest"), data=toy)
    huge = {"battery_joules": 1e9, "recharge": "constant"}
    run = wirelessfl.run(config("fedavg", **FLAGS, select="soonest", **huge), data=toy)
    assert without_charges(run.rows) == without_charges(plain.rows)
    for name, value in plain.params.items():
        assert torch.equal(run.params[name], value)
    assert run.rows[-1]["empty"] == 0


def test_batteries_that_are_never_charged_end_the_run_as_budgets_do(config, toy):
    """But a battery never holds less than 0, while the last round of a budget exceeds it."""
    flags = FLAGS | {"cpu_hz": (1e9, 1e9), "uplink": "fixed", "select": "round-robin"}
    joules = 1e-28 * 1e18 * 3 * 1e6  # of a round
    ended = {}
    for name in ("battery_joules", "client_joules"):
        run = wirelessfl.run(config("fedavg", **flags, **{name: 4.5 * joules}), data=toy)
        ended[name] = run.rows[-1]["round"], run.rows[-1]["joules_max"]
    assert ended["battery_joules"] == (8, pytest.approx(4 * joules))
    assert ended["client_joules"] == (10, pytest.approx(5 * joules))


def test_budgets_by_client(config, toy):
    settings = config("fedavg", **FLAGS, client_joules=(1e-3, 5e-3))
    setup = build(settings, data=toy)
    budget = setup.planner.participation.energy.budget
    assert budget.shape == (6,)
    assert 1e-3 <= budget.min() < budget.max() <= 5e-3
    run = wirelessfl.run(settings, data=toy)
    assert "all clients have spent their client_joules" in run.ended
    setup.one_model.ledger.restore(RunFolder(run.directory).load()[0])
    spent = setup.one_model.ledger.joules
    assert (spent >= budget).all()
    assert (spent < budget + 4e-3).all()


def test_prices_agree_with_runs(config, toy):
    settings = config("fedavg", **FLAGS, **BATTERY)
    run, price = wirelessfl.run(settings, data=toy), wirelessfl.price(settings.changed(), data=toy)
    for row, cost in zip(run.rows, price.rows, strict=True):
        for name in ("sim_seconds", "joules", "charge_min", "charge_mean", "empty"):
            assert row[name] == cost[name]


def test_a_round_that_no_battery_can_hold_is_refused(config, toy):
    remedy = r"than a round takes. Raise battery_joules, or end the run before\."
    for act in (wirelessfl.run, wirelessfl.price):
        with pytest.raises(ConfigError, match=f"round 1 has no client: .* {remedy}"):
            act(config("fedavg", **FLAGS, battery_joules=1e-9), data=toy)
    with pytest.raises(ConfigError, match="Raise client_joules, raise battery_joules, or end"):
        wirelessfl.price(config("fedavg", **FLAGS, battery_joules=1e-9, client_joules=9), data=toy)


def test_an_error_near_empty_batteries_has_its_public_name(capsys):
    words = "timeline fedavg --clients 2 --rounds 1 --battery-joules 1e-9 --cpu-hz 1e9,2e9"
    assert main(words.split()) == 2
    assert capsys.readouterr().err.startswith("ConfigError: round 1 has no client")


def test_batteries_of_devices_by_hand(config, toy, tmp_path):
    """Each device has its column; links of uplink ``fixed`` are free, and on mains none empties.

    A round takes 3 steps x 8 samples x 0.01 s x 2 W = 0.48 J of a phone.
    """
    file = tmp_path / "devices.csv"
    file.write_text(
        "name,count,seconds_per_sample,watts,battery_joules\n"
        "phone,2,0.01,2.0,1.2\ntablet,1,0.01,2.0,2.0\nboard,1,0.01,5.0,\n"
    )
    flags = {
        "devices": str(file),
        "uplink": "fixed",
        "local_steps": 3,
        "batch_size": 8,
        "clients": 4,
    }
    flags |= {"rounds": 6, "battery_joules": "devices", "on_empty": "drop", "client_log": True}
    run = wirelessfl.run(config("fedavg", **flags), data=toy)
    log = wirelessfl.read_client_log(run.directory)
    rounds = 0.48 * np.arange(1, 7)
    charges = sorted(
        tuple(log["charge_joules"][log["client"] == client].tolist()) for client in range(4)
    )
    phone, tablet = (1.2 - rounds)[:2], (2.0 - rounds)[:4]
    expected = [phone, phone, tablet, np.full(6, np.inf)]
    for charge, by_hand in zip(charges, expected, strict=True):
        assert charge == pytest.approx(by_hand.tolist(), rel=1e-12)
    assert [row["empty"] for row in run.rows] == [0, 0, 0, 2, 2, 3, 3]
    assert run.rows[0]["charge_mean"] == pytest.approx((1.2 + 1.2 + 2.0) / 3)
    prices = wirelessfl.price(config("fedavg", **flags), data=toy).rows
    assert [row["charge_min"] for row in prices] == [row["charge_min"] for row in run.rows]


@pytest.mark.parametrize(
    ("flags", "text"),
    [
        ({"recharge": "constant"}, "needs batteries: set battery_joules"),
        ({"on_empty": "drop"}, "needs battery_joules: set it"),
        ({"battery_joules": 1.0, "sessions": 2}, "conflicts with sessions"),
        ({"battery_joules": 1.0, "schedule": "buffered"}, "do not train one model together"),
        ({"battery_joules": 0.0}, "battery_joules: 0.0 cannot be used: give joules > 0"),
        ({"battery_joules": "x"}, "battery_joules: 'x' cannot be used: give joules > 0"),
        ({"client_joules": "1,2,3"}, 'LOW <= HIGH as LOW,HIGH, or "devices"'),
        ({"battery_joules": (2.0, 1.0)}, "0 < LOW <= HIGH"),
        ({"battery_joules": "devices"}, "battery_joules=devices conflicts with the network"),
        ({"battery_joules": 1.0, "recharge": "trace"}, "needs recharge_trace"),
    ],
)
def test_batteries_that_do_not_fit_are_refused(config, toy, flags, text):
    with pytest.raises(ConfigError, match=text):
        wirelessfl.price(config("fedavg", **flags), data=toy)
    if "battery_joules" in flags and flags["battery_joules"] == 1.0 and len(flags) == 1:
        with pytest.raises(ConfigError, match="joules=False"):
            wirelessfl.price(config("fedavg", **flags), data=toy, joules=False)


CELLS = {"schedule": "buffered", "buffer": 1, "edge_rounds": 1, "eval_every": 1, "local_steps": 3}
CELLS |= {"network": True, "uplink": "fixed", "rate_mbps": 1e9, "client_log": True}


def test_batteries_of_asynchronous_cells_by_hand(config, toy):
    """Rounds of 0.1 s and 0.01 J; one cell is charged at 0.02 W, the other has enough.

    Client 0 has energy for two rounds and gains 0.2 of one in each. It then waits until it has the
    next one, while the cloud goes on merging cell 1.
    """
    network = Network.from_snr([0, 1], cpu_hz=1e9, snr_db=20.0, cycles_per_step=1e8 / 3)
    flags = CELLS | {"rounds": 26, "battery_joules": 0.025}
    flags |= {"recharge": "constant", "recharge_watts": 0.02}
    network = replace(network, switched_capacitance=[1e-28, 1e-29])
    settings = config("hfedavg", **flags)
    run = wirelessfl.run(settings, data=toy, network=network)
    log = wirelessfl.read_client_log(run.directory)
    spent = log["compute_joules"] + log["send_joules"]
    mine = log["client"] == 0
    assert spent[mine] == pytest.approx(0.01, rel=1e-6)
    # 0.025 - 0.01; + 0.002 - 0.01 = 0.007; + 0.002 = 0.009 at 0.2 s, so that 0.05 s are missing.
    charges = log["charge_joules"][mine]
    assert charges[:3] == pytest.approx([0.015, 0.007, 0.0], abs=1e-8)
    assert (charges[3:] < 1e-8).all()
    times = np.array([row["sim_seconds"] for row in run.rows[1:]])
    ends = times[mine[np.argsort(log["entry"], kind="stable")]]
    assert ends == pytest.approx([0.1, 0.2, 0.35, 0.85, 1.35, 1.85][: len(ends)], rel=1e-3)
    assert len(ends) > 3
    assert {row["empty"] for row in run.rows} == {0, 1}
    price = wirelessfl.price(settings.changed(), data=toy, network=network)
    for row, cost in zip(run.rows, price.rows, strict=True):
        assert cost.items() <= row.items()


def test_huge_batteries_change_no_asynchronous_cells(config, toy):
    flags = {"schedule": "buffered", "cells": 3, "buffer": 2, "rounds": 4, "slowdown": 3.0}
    plain = wirelessfl.run(config("hist", **flags), data=toy)
    run = wirelessfl.run(config("hist", **flags, battery_joules=1e9), data=toy)
    assert without_charges(run.rows) == without_charges(plain.rows)
    for name, value in plain.params.items():
        assert torch.equal(run.params[name], value)


def test_asynchronous_cells_end_with_their_batteries(config, toy):
    network = Network.from_snr([0, 1], cpu_hz=1e9, snr_db=20.0, cycles_per_step=1e8 / 3)
    flags = CELLS | {"rounds": 26, "battery_joules": 0.025}
    run = wirelessfl.run(config("hfedavg", **flags), data=toy, network=network)
    assert len(run.rows) == 5
    assert run.ended.endswith("the batteries in too many cells hold less than a round takes")
    assert run.rows[-1]["charge_min"] == pytest.approx(0.005, rel=1e-5)
    assert run.rows[-1]["joules_max"] == pytest.approx(0.02, rel=1e-5)


def test_a_million_registered_clients_have_no_batteries_but_those_seen(config, toy):
    network = Network.from_snr([0] * 10**6, cpu_hz=1e9, snr_db=10.0, cycles_per_step=1e6)
    flags = {"clients_per_round": 5, "battery_joules": 1e-3, "recharge": "constant"}
    planner = build(
        config("fedavg", network=True, **flags), data=toy, network=network, trained=False
    ).planner
    ledger = Ledger(10**6)
    for number in range(3):
        ledger.count(planner.plan(number, ledger=ledger, now=float(number)))
    stored = [tensor for name, tensor in ledger.tensors().items() if "charges" in name]
    assert sum(tensor.nbytes for tensor in stored) == 15 * 4 * 8
