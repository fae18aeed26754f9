"""Runs whose clients are available as in a trace: late joiners, departures, waiting, and cycles."""

import itertools

import numpy as np
import pytest

import wirelessfl
from channels import Network
from wirelessfl.base.errors import ConfigError
from wirelessfl.engine.sessions.traces import Stay, Trace, read_trace
from wirelessfl.runs.build import build

NETWORK = Network.from_snr([0] * 6, cpu_hz=1e9, snr_db=20.0, cycles_per_step=1e8 / 3)
FLAGS = {"network": True, "uplink": "fixed", "rate_mbps": 1e9, "local_steps": 3, "client_log": True}
"""A round takes 0.1 s."""


def members(run):
    """Participants of each round, and those whose updates arrived."""
    log = wirelessfl.read_client_log(run.directory)
    rounds = np.unique(log["round"])
    return [
        tuple(set(log["client"][(log["round"] == n) & (log["arrived"] >= m)]) for m in (0, 1))
        for n in rounds
    ]


def test_a_late_joiner_trains_from_the_round_in_which_it_joins(config, toy, stays):
    """Client 5 joins at round 20: it takes part in no round before, and then in each."""
    file = stays(*((client, 0, "") for client in range(5)), (5, 20, ""))
    flags = FLAGS | {"rounds": 24, "availability_trace": file, "availability_unit": "rounds"}
    run = wirelessfl.run(config("scaffold", **flags), data=toy, network=NETWORK)
    assert [5 in who for who, _ in members(run)] == [False] * 20 + [True] * 4
    assert [row["available"] for row in run.rows] == [5] * 20 + [6] * 5
    setup = build(config("scaffold", **flags), data=toy, network=NETWORK)
    assert setup.handler.planner.network.clients == 6


def test_clients_that_leave_during_a_round_are_dropped(config, toy, stays):
    """Client 1 leaves in the second round, client 2 exactly at its end, client 3 returns."""
    whole = wirelessfl.price(config("fedavg", **FLAGS, rounds=2), data=toy, network=NETWORK)
    end = repr(whole.rows[2]["sim_seconds"])
    file = stays((0, 0, ""), (1, 0, 0.15), (2, 0, end), (3, 0, 0.05), (3, 0.17, ""), (4, 0.21, ""))
    flags = FLAGS | {"rounds": 4, "availability_trace": file}
    run = wirelessfl.run(config("fedavg", **flags), data=toy, network=NETWORK)
    assert members(run) == [
        ({0, 1, 2, 3}, {0, 1, 2}),
        ({0, 1, 2}, {0, 2}),
        ({0, 3}, {0, 3}),
        ({0, 3, 4}, {0, 3, 4}),
    ]
    seconds = [row["sim_seconds"] for row in run.rows]
    assert np.diff(seconds) == pytest.approx(0.1, rel=1e-3)
    price = wirelessfl.price(config("fedavg", **flags), data=toy, network=NETWORK)
    assert [row["sim_seconds"] for row in price.rows] == seconds


def test_a_round_waits_for_the_first_client(config, toy, stays):
    """Nobody is available after 0.11 s, until client 2 joins at 3 s; then the trace ends."""
    file = stays((0, 0, 0.11), (2, 3, 3.15))
    flags = FLAGS | {"rounds": 9, "availability_trace": file}
    run = wirelessfl.run(config("fedavg", **flags), data=toy, network=NETWORK)
    assert [row["sim_seconds"] for row in run.rows] == pytest.approx(
        [0, 0.1, 0.2, 3.1, 3.2], rel=1e-3
    )
    assert members(run) == [({0}, {0}), ({0}, set()), ({2}, {2}), ({2}, set())]
    assert run.ended.endswith("no client is available any more")


def test_batteries_and_availability_together(config, toy, stays):
    """Client 0 is charged while it is away, and client 1 has left: the round waits for 0."""
    joules = 1e-28 * 1e18 * 1e8  # of a round
    file = stays((0, 0, 0.15), (0, 60, ""), (1, 0, 0.11))
    flags = FLAGS | {"rounds": 3, "availability_trace": file, "battery_joules": 1.5 * joules}
    flags |= {"recharge": "constant", "recharge_watts": joules / 10}
    run = wirelessfl.run(config("fedavg", **flags), data=toy, network=NETWORK)
    assert members(run)[:2] == [({0, 1}, {0, 1}), ({0}, {0})]
    times = [row["sim_seconds"] for row in run.rows]
    # After the round at 60 s, half a round's energy is left, and 4.9 s of charge are missing.
    assert times == pytest.approx([0, 0.1, 60.1, 65.1], abs=0.01)


def test_a_trace_that_repeats_is_that_of_all_its_cycles():
    """Against stays written out; a stay over the end of a cycle is one stay."""
    stays = [Stay(0, 0, 2), Stay(0, 8, 10), Stay(1, 3, 10), Stay(2, 0, 4), Stay(3, 0, 10)]
    cyclic = Trace(tuple(stays), 5, 10.0)
    whole = Trace(
        tuple(
            Stay(stay.client, stay.join + 10 * n, stay.leave + 10 * n)
            for n in range(4)
            for stay in stays
        ),
        5,
    )
    assert cyclic.initial().tolist() == whole.initial().tolist()
    until = [change for change in whole.changes() if change.time < 40]
    assert [*itertools.islice(cyclic.changes(), len(until))] == until


def test_cycles_make_clients_available_again(config, toy, stays):
    file = stays((0, 0, 0.25), (1, 0.5, 0.75))
    flags = FLAGS | {"rounds": 8, "availability_trace": file, "availability_period": 1.0}
    run = wirelessfl.run(config("fedavg", **flags), data=toy, network=NETWORK)
    alone = [min(who) for who, _ in members(run)]
    assert alone == [0, 0, 0, 1, 1, 1, 0, 0]
    assert run.rows[-1]["sim_seconds"] == pytest.approx(1.2, abs=0.01)


def test_asynchronous_cells_by_hand(config, toy, stays):
    """A cell waits for its first client; who leaves during its cell's round is dropped.

    Rounds take 0.1 s in cell 0 and 0.25 s in cell 1, and the cloud merges each at its end.
    """
    network = Network.from_snr(
        [0, 0, 1, 1], cpu_hz=[1e9, 1e9, 4e8, 4e8], snr_db=20.0, cycles_per_step=1e8 / 3
    )
    file = stays((0, 0, ""), (1, 0, 0.15), (2, 0.12, ""), (3, 0.3, ""))
    flags = FLAGS | {"schedule": "buffered", "buffer": 1, "edge_rounds": 1, "eval_every": 1}
    settings = config("hfedavg", **flags, rounds=8, availability_trace=file)
    run = wirelessfl.run(settings, data=toy, network=network)
    assert [row["sim_seconds"] for row in run.rows] == pytest.approx(
        [0, 0.1, 0.2, 0.3, 0.37, 0.4, 0.5, 0.6, 0.62], rel=1e-3
    )
    assert [row["available"] for row in run.rows] == [2, 2, 2, 3, 3, 3, 3, 3, 3]
    log = wirelessfl.read_client_log(run.directory)
    rounds = [
        {*zip(log["client"][rows].tolist(), log["arrived"][rows].tolist(), strict=True)}
        for rows in (log["entry"] == entry for entry in range(1, 9))
    ]
    assert rounds == [
        {(0, 1), (1, 1)}, {(0, 1), (1, 0)}, {(0, 1)}, {(2, 1)}, {(0, 1)}, {(0, 1)}, {(0, 1)},
        {(2, 1), (3, 1)},
    ]  # fmt: skip
    price = wirelessfl.price(settings, data=toy, network=network)
    for row, priced in zip(run.rows, price.rows, strict=True):
        assert priced.items() <= row.items()


def test_a_cell_whose_clients_have_all_left_changes_nothing(config, toy, stays):
    """Its round ends without updates, and then too few cells are left for a merge."""
    network = Network.from_snr([0, 1], cpu_hz=1e9, snr_db=20.0, cycles_per_step=1e8 / 3)
    file = stays((0, 0, 0.05), (1, 0, 0.07))
    flags = FLAGS | {"schedule": "buffered", "buffer": 2, "edge_rounds": 1, "eval_every": 1}
    settings = config("hfedavg", **flags, rounds=3, availability_trace=file)
    run = wirelessfl.run(settings, data=toy, network=network)
    assert run.rows[0]["loss"] == run.rows[1]["loss"]
    assert run.rows[1]["joules"] > 0
    assert len(run.rows) == 2
    assert run.ended.endswith("too few cells have clients that are available")


def test_a_version_without_updates_is_stored_beside_the_one_it_equals(config, toy, stays):
    """Cell 1 works on version 0, while the round of cell 0 makes version 1 of the same values."""
    network = Network.from_snr([0, 1], cpu_hz=[1e9, 1e8], snr_db=20.0, cycles_per_step=1e8 / 3)
    flags = FLAGS | {"schedule": "buffered", "buffer": 1, "edge_rounds": 1, "eval_every": 1}
    flags |= {"availability_trace": stays((0, 0, 0.05), (1, 0, "")), "checkpoint_seconds": 0.0}
    whole = wirelessfl.run(config("hfedavg", **flags, rounds=3), data=toy, network=network)
    assert [row["loss"] for row in whole.rows[:2]] == [whole.rows[0]["loss"]] * 2
    assert whole.rows[2]["loss"] != whole.rows[1]["loss"]
    settings = config("hfedavg", **flags, rounds=3)

    def stop(row):
        if row["round"] == 1:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        wirelessfl.run(settings, data=toy, network=network, on_row=stop)
    resumed = wirelessfl.resume(settings.run.out, data=toy, network=network)
    assert [row["loss"] for row in resumed.rows] == [row["loss"] for row in whole.rows]


def test_all_clients_always_available_change_nothing(config, toy, stays, bare):
    flags = {"clients_per_round": 3, "rounds": 4}
    plain = wirelessfl.run(config("fedavg", **flags), data=toy)
    file = stays(*((client, 0, "") for client in range(6)))
    run = wirelessfl.run(config("fedavg", **flags, availability_trace=file), data=toy)
    rows = [{k: v for k, v in row.items() if k != "available"} for row in bare(run.rows)]
    assert rows == bare(plain.rows)


@pytest.mark.parametrize(
    ("flags", "text"),
    [
        ({"availability_unit": "rounds"}, "needs availability_trace: set it"),
        ({"availability_trace": "stays.csv", "sessions": 2}, "conflicts with sessions"),
        ({"availability_trace": "none.csv"}, "cannot be read"),
        (
            {"availability_trace": "stays.csv", "schedule": "simultaneous"},
            'schedule "simultaneous", which draws available clients',
        ),
        (
            {"availability_trace": "stays.csv", "schedule": "buffered", "uplink": "aircomp"},
            'uplink "aircomp" under schedule "buffered", whose clients wait',
        ),
    ],
)
def test_traces_that_do_not_fit_are_refused(config, toy, flags, text):
    with pytest.raises(ConfigError, match=text):
        wirelessfl.price(config("fedavg", **flags), data=toy)


def test_a_stay_beyond_the_period_is_refused(stays):
    with pytest.raises(ConfigError, match=r"availability_period=2 conflicts with .* ends at inf"):
        read_trace(stays((0, 1, "")), 2, 2.0)
