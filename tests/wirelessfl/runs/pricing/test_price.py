"""Prices equal the rows of runs to the bit, and need no data."""

import numpy as np
import pytest
import torch
from torch import nn

import channels
import wirelessfl
from channels import Network
from wirelessfl.base.errors import ConfigError
from wirelessfl.config import Config
from wirelessfl.runs.build import planners

SMALL = {"dataset": "digits", "rounds": 2, "local_steps": 1, "batch_size": 8, "threads": 1}
CELLS = {"cells": 2, "clients": 6}
REQUESTS = {"clients": 9, "requests": 6, "buffer": 2, "rounds": 7, "eval_every": 1}
RUNS = {
    "hist": ("hist", CELLS | {"hidden": (16, 8)}),
    "hist-optimized-bands": (
        "hist",
        CELLS | {"hidden": (16, 8), "mask_sizes": "optimized", "uplink": "ofdma"},
    ),
    "edge-round-channels": ("hfedavg", CELLS | {"edge_rounds": 2, "coherence": "edge-round"}),
    "backhaul": ("hfedavg", CELLS | {"downlink_mbps": 1.0, "backhaul_mbps": 2.0}),
    "fedavg": ("fedavg", {"clients": 3}),
    "ra-fed-budgets": ("ra-fed", {"clients": 4, "hidden": (16,), "capacities": (0.5, 1.0)}),
    "ra-fed-fastest": (
        "ra-fed",
        {"clients": 4, "hidden": (16,), "masks": "covered", "budget": "fastest", "min_coverage": 2},
    ),
    "partial": ("fadamgc", {"clients": 6, "clients_per_round": 4, "tracking_clients": 2}),
    "signs": ("scaffold", {"clients": 4, "uplink_compression": "sign", "uplink": "ofdma"}),
    "requests with few bits": (
        "fedast",
        REQUESTS | {"uplink_compression": "top-k", "error_feedback": True},
    ),
    "compressed": ("fedavg", {"clients": 3, "downlink_compression": "quantisation"}),
    "aircomp": ("hfedavg", CELLS | {"uplink": "aircomp", "hidden": (8,)}),
    "cycles-per-flop": ("fedavg", {"clients": 3, "cycles_per_flop": 1.5}),
    "asynchronous-cells": ("hfedavg", CELLS | {"schedule": "buffered", "buffer": 1, "rounds": 5}),
    "sessions": (
        "fedavg",
        {"clients": 4, "sessions": 3, "warm_start": "proposed", "presence": "labels"},
    ),
    "teacher": (
        "fedavg",
        {"clients": 4, "sessions": 2, "warm_start": "continuous", "distillation": "csrd"},
    ),
    "arrivals": (
        "fedavg",
        {
            "clients": 4,
            "sessions": 2,
            "presence": "arrivals",
            "presence_unit": "rounds",
            "arrival_rate": 2.0,
            "mean_stay": 2.0,
        },
    ),
    "soonest": ("hfedavg", CELLS | {"clients_per_round": 3, "select": "soonest"}),
    "in-turn": ("fedavg", {"clients": 5, "clients_per_round": 2, "select": "round-robin"}),
    "energy-budgets": (
        "fedavg",
        {
            "clients": 5,
            "clients_per_round": 2,
            "select": "age",
            "client_joules": 1e-3,
            "rounds": 90,
        },
    ),
    "max-seconds": ("fedavg", {"clients": 3, "rounds": 50, "max_seconds": 0.02}),
    "requests": ("fedast", REQUESTS | {"drop_out": 0.2, "cutoff_seconds": 0.05}),
    "requests-over-the-air": ("fedast", REQUESTS | {"uplink": "aircomp", "snr_db": 10.0}),
    "requests-for-submodels": (
        "ra-fed",
        REQUESTS | {"schedule": "buffered", "hidden": (16,), "capacities": (0.5, 1.0)},
    ),
    "requests-by-passes": ("fedast", REQUESTS | {"local_steps": None, "local_epochs": 0.1}),
    "task-rounds": ("sync-st", {"clients": 6, "first": 3, "rounds": 4, "eval_every": 1}),
}


def settings(name, **changes):
    algorithm, flags = RUNS[name]
    flags = SMALL | flags | changes
    return Config.from_flags(algorithm, **{k: v for k, v in flags.items() if v is not None})


@pytest.fixture
def no_data(monkeypatch):
    """Let every read of a data set fail."""

    def refused(*_):
        raise AssertionError("data are read")

    monkeypatch.setattr(planners.Loaded, "dataset", refused)


@pytest.mark.thorough(every=8)
@pytest.mark.parametrize("name", RUNS)
def test_prices_are_the_rows_of_the_run(name, tmp_path):
    """All rows of the run, with evaluations of every round, have these costs to the bit."""
    run = wirelessfl.run(settings(name, out=tmp_path))
    prices = wirelessfl.price(settings(name))
    assert [{key: row[key] for key in prices.rows[0]} for row in run.rows] == prices.rows
    assert prices.rows[-1]["sim_seconds"] > 0


@pytest.mark.parametrize("algorithm", ["scaffold", "ram-fed"])
def test_states_of_clients_do_not_matter_to_prices_of_sessions(algorithm):
    """Sessions begin with means over client states, of which prices have none."""
    flags = {"clients": 4, "rounds": 1, "sessions": 2, "local_steps": 1, "hidden": (8,)}
    config = Config.from_flags(algorithm, dataset="digits", step_seconds=0.01, **flags)
    rows = wirelessfl.run(config).rows
    assert [row["sim_seconds"] for row in wirelessfl.price(config).rows] == [
        row["sim_seconds"] for row in rows
    ]


REFUSED = {
    "exceeds the number of clients in a session, 4 of 9": ({"clients_per_round": 6}, {}),
    "draws new models": (
        {"warm_start": "fresh"},
        {"model": nn.Sequential(nn.Flatten(), nn.Linear(64, 10))},
    ),
    "without a client": (
        {
            "presence": "arrivals",
            "presence_unit": "rounds",
            "arrival_rate": 1e-9,
            "mean_stay": 0.1,
            "initially_present": 1,
        },
        {},
    ),
}


@pytest.mark.parametrize("reason", REFUSED)
def test_prices_refuse_what_runs_refuse(reason):
    """In the same words."""
    flags, given = REFUSED[reason]
    config = Config.from_flags("fedavg", **(SMALL | {"clients": 9, "sessions": 2} | flags))
    with pytest.raises(ConfigError, match=reason) as refusal:
        wirelessfl.run(config, **given)
    with pytest.raises(ConfigError) as found:
        wirelessfl.price(config, **given)
    assert str(found.value) == str(refusal.value)


def test_costs_per_round_add_up():
    """The slowest edge server decides a round's seconds; rounds add up to the rows' costs."""
    prices = wirelessfl.price(settings("backhaul"), rounds=3)
    assert prices.node_seconds.shape == (3, 2)
    np.testing.assert_allclose(prices.seconds, prices.node_seconds.max(1), rtol=1e-12)
    for name in ("joules", "uplink_mib", "downlink_mib", "backhaul_mib"):
        each = getattr(prices, name)
        assert (each > 0).all()
        np.testing.assert_allclose(each.sum(), prices.at_round(3)[name], rtol=1e-12)
    assert f"{prices.seconds.sum():.4g}" in prices.summary()


def test_prices_need_no_data(no_data):
    """Facts replace Fashion-MNIST: two uploads of 8 x 785 and 10 x 9 numbers of 4 bytes."""
    config = Config.from_flags("fedavg", dataset="fashion-mnist", clients=3, hidden=(8,))
    mib = wirelessfl.price(config, 2).at_round(2)["uplink_mib"]
    np.testing.assert_allclose(mib, 2 * 4 * (784 * 8 + 8 + 8 * 10 + 10) / 2**20)


def test_a_model_and_a_network_of_the_user():
    """One step of 2e9 cycles at 1e9 Hz, and a module of 640 numbers down and up at 1 Mbit/s."""

    class Own(nn.Module):
        def __init__(self):
            super().__init__()
            self.w = nn.Parameter(torch.zeros(64, 10))

        def forward(self, x):
            return x.flatten(1) @ self.w

    network = Network.from_snr([0, 0], cpu_hz=1e9, snr_db=20.0, cycles_per_step=2e9)
    flags = {"dataset": "digits", "local_steps": 1, "uplink": "fixed", "rate_mbps": 1.0}
    prices = wirelessfl.price(Config.from_flags("fedavg", **flags), 2, model=Own(), network=network)
    np.testing.assert_allclose(prices.uplink_mib, 4 * 640 / 2**20)
    np.testing.assert_allclose(prices.seconds, 2 + 2 * 32 * 640 / 1e6)


def test_joules_can_be_left_out(monkeypatch):
    """Without joules no beamformer is optimised, and the other costs stay."""
    config = settings("aircomp")
    whole = wirelessfl.price(config, 1)

    def refused(*_):
        raise AssertionError("beamformers are optimised")

    monkeypatch.setattr("wirelessfl.air.round_price.Served.service", property(refused))
    part = wirelessfl.price(config, 1, joules=False)
    assert part.rows == [
        {k: v for k, v in row.items() if k not in ("joules", "joules_max")} for row in whole.rows
    ]
    with pytest.raises(ConfigError, match="no joules"):
        _ = part.joules


@pytest.mark.parametrize(
    ("flags", "counted"),
    [
        ({"failures": "waterfall", "waterfall_db": 30.0}, {"lost"}),
        ({"uplink": "aircomp", "threshold": 0.7}, {"silent"}),
        ({"cutoff_seconds": 0.041, "failures": "waterfall", "waterfall_db": 30.0},
         {"lost", "late"}),
        ({"uplink": "ofdma", "allocation": "optimal"}, set()),
        ({"downlink_mbps": 1.0, "algorithm": "hfedavg", "cells": 2}, {"backhaul_mib"}),
    ],
)  # fmt: skip
def test_without_joules_everything_else_is_counted(flags, counted):
    """Updates that are lost, silent or late too; comparisons with equal shares have joules."""
    flags = {"algorithm": "fedavg", "clients": 8, "rounds": 3} | flags
    config = Config.from_flags(**(SMALL | flags))
    whole, part = (wirelessfl.price(config, joules=joules) for joules in (True, False))
    last = whole.rows[-1]
    assert all(last[name] > 0 for name in counted | {"uplink_mib", "downlink_mib"})
    dropped = {name for name in last if "joules" in name} | {"round_seconds", "equal_seconds"}
    assert part.rows == [
        {name: value for name, value in row.items() if name not in dropped} for row in whole.rows
    ]
    np.testing.assert_array_equal(part.node_seconds, whole.node_seconds)


def test_the_first_rounds_of_sessions():
    """The first rounds, with the trial rounds before them, cost what they cost in the whole run."""
    whole, part = (wirelessfl.price(settings("sessions"), n) for n in (None, 3))
    assert part.rows == whole.rows[: len(part.rows)]
    assert len(part) == 3
    with pytest.raises(ConfigError, match="all sessions together have 6"):
        wirelessfl.price(settings("sessions"), 7)


@pytest.mark.parametrize("rounds", [0, 1.5, True, "3"])
def test_wrong_numbers_of_rounds_are_refused(rounds):
    with pytest.raises(ConfigError, match="rounds is"):
        wirelessfl.price(settings("fedavg"), rounds)


@pytest.mark.parametrize("schedule", ["rounds", "buffered", "simultaneous"])
def test_runs_that_end_before_their_first_round_have_a_summary(schedule):
    config = settings("fedavg", schedule=schedule, max_seconds=1e-9)
    assert wirelessfl.price(config).summary() == "no round ends in 1e-09 s"


def test_rounds_that_are_not_priced():
    with pytest.raises(ConfigError, match="prices of 1 round: give"):
        wirelessfl.price(settings("fedavg"), 1).at_round(2)


def tasks_of(algorithm, tasks=(",name=small", ",hidden=16,name=large"), **flags):
    """Settings of tasks on the digits; None leaves a flag out."""
    flags = {"rounds": 3, "local_steps": 1, "clients": 8, "eval_every": 1, "threads": 1} | flags
    requests = ",requests=3" if algorithm == "fedast" else ""
    flags = {name: value for name, value in flags.items() if value is not None}
    return Config.from_flags(algorithm, task=[f"digits{requests}{t}" for t in tasks], **flags)


@pytest.mark.parametrize("algorithm", ["fedast", "sync-st"])
def test_prices_of_several_tasks_are_the_rows_of_the_run(algorithm, tmp_path):
    """Rounds and merges of each task have prices of their own."""
    run = wirelessfl.run(tasks_of(algorithm, out=tmp_path))
    prices = wirelessfl.price(tasks_of(algorithm))
    assert [{key: row[key] for key in prices.rows[0]} for row in run.rows] == prices.rows
    assert prices.tasks == ["small", "large"]
    assert len(prices) == 6
    large = prices.of("large")
    ends = [row["sim_seconds"] for row in run.rows if row["task"] == "large"]
    assert large.seconds.tolist() == large.node_seconds[:, 0].tolist() == np.diff(ends).tolist()
    assert prices.summary().splitlines()[0] == "small"


def test_prices_of_several_tasks_are_asked_for_by_task():
    prices = wirelessfl.price(tasks_of("fedast"))
    with pytest.raises(ConfigError, match=r"several tasks, small, large: .* prices.of\('small'\)"):
        prices.at_round(1)
    with pytest.raises(ConfigError, match=r"task is 'huge': choose one of the tasks .* small"):
        prices.of("huge")


OF_TRAINING = {
    "target=0.5 of task 'b' has no price without training": (
        "fedast",
        {"tasks": (",name=a", ",target=0.5,name=b")},
    ),
    "without training: give rounds": ("fedast", {"tasks": (",target=0.5",), "rounds": None}),
    "its option D gives requests to tasks by the spread": ("fedast", {"option": "D"}),
    "'bandit' has no price without training: it assigns clients by the losses": (
        "sync-st",
        {"assignment": "bandit"},
    ),
}


@pytest.mark.parametrize("words", OF_TRAINING)
def test_costs_of_tasks_that_depend_on_training_are_refused(words):
    algorithm, settings = OF_TRAINING[words]
    with pytest.raises(ConfigError, match=words):
        wirelessfl.price(tasks_of(algorithm, **settings))


def test_tasks_in_another_order_are_priced_network_by_network():
    """The order of merges depends on the network's CPUs."""
    config = tasks_of("fedast", delays="wireless", clients=None)
    slow, fast = (Network.from_snr([0] * 8, cpu_hz=hz, snr_db=9.0) for hz in (1e6, 1e12))
    with pytest.raises(ConfigError, match=r"over network\[1\] the run has other rounds or tasks"):
        wirelessfl.price(config, network=[slow, fast])
    same = wirelessfl.price(config, network=[slow, slow])
    assert same.seconds[0].tolist() == same.seconds[1].tolist()
    assert same.rows_of(0) == wirelessfl.price(config, network=slow).rows


@pytest.mark.parametrize("uplink", ["tdma", "ofdma"])
def test_networks_in_arrays_have_the_prices_of_single_ones(uplink):
    """Drops from streams, and the same in a list."""
    config = Config.from_flags("hfedavg", cells=2, clients=5, rounds=2, uplink=uplink)
    streams = [channels.Stream(seed) for seed in range(3)]
    together = wirelessfl.price(config, network=channels.umi(2, 5, stream=streams))
    alone = wirelessfl.price(config, network=[channels.umi(2, 5, stream=one) for one in streams])
    assert together.common == alone.common
    assert together.fields.keys() == alone.fields.keys()
    for name, values in together.fields.items():
        assert np.array_equal(values, alone.fields[name])
