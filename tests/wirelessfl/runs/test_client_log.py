"""The client log: its parts sum to the rows, and it survives interruptions."""

import numpy as np
import pytest

import wirelessfl
from channels.access import EqualSlots
from channels.streams import Stream
from tests.wirelessfl.runs.client_logs import SMALL, logged
from wirelessfl import Config, read_client_log
from wirelessfl.base.errors import ConfigError
from wirelessfl.engine.rounds.client_log import PARTS, ClientLog
from wirelessfl.runs.build.planners import planner_without_data

CELLS = {"cells": 2, "backhaul_mbps": 100.0, "downlink_mbps": 50.0}
CASES = {
    "turns": ("hfedavg", {**CELLS, "coherence": "edge-round"}),
    "ready": ("hfedavg", {**CELLS, "order": "ready", "slowdown": 3.0}),
    "bands": ("hist", {**CELLS, "uplink": "ofdma", "allocation": "optimal"}),
    "energy": ("fedavg", {"uplink": "ofdma", "round_deadline": 0.05, "late": "lost"}),
    "air": ("hist", {**CELLS, "uplink": "aircomp"}),
    "fixed": ("scaffold", {"uplink": "fixed", "clients_per_round": 4, "tracking_clients": 2}),
    "repeats": ("fedavg", {"failures": "outage", "snr_db": 2.0, "on_failure": "repeat"}),
    "widths": ("heterofl", {"capacities": (1.0, 0.5), "weighting": "samples"}),
}


@pytest.mark.thorough(every=8)
@pytest.mark.parametrize("case", CASES)
def test_seconds_and_joules_sum_to_the_rows(case, tmp_path):
    algorithm, settings = CASES[case]
    result, log = logged(algorithm, tmp_path / "run", **settings)
    last = result.rows[-1]
    for entry in np.unique(log["entry"]):
        its = log["entry"] == entry
        row = result.rows[entry]
        before = result.rows[entry - 1]
        np.testing.assert_allclose(
            log.seconds[its], row["sim_seconds"] - before["sim_seconds"], rtol=1e-8
        )
    joules = (log["compute_joules"] + log["send_joules"]).sum() / SMALL["clients"]
    assert joules == pytest.approx(last["joules"], rel=1e-9)
    assert min(log[f"{part}_seconds"].min() for part in PARTS) >= 0
    edge_rounds = 2 if "cells" in settings else 1
    assert (log["arrived"] <= edge_rounds).all()
    assert last["lost"] + log["arrived"].sum() == edge_rounds * len(log)
    # Each round waits for a client that is never idle but for the backhaul.
    stragglers = log["straggler"] > 0
    assert set(log["entry"][stragglers]) == set(log["entry"])
    if case != "energy" and "coherence" not in settings:
        backhaul = np.array([log["idle_seconds"][log["entry"] == e].min() for e in log["entry"]])
        np.testing.assert_allclose(log["idle_seconds"][stragglers], backhaul[stragglers], atol=1e-5)


def test_each_value_is_that_of_the_plan(tmp_path):
    """H V_0 / F_i seconds of training, 32 P / R_i of sending, P_i times these as energy."""
    _, log = logged("fedavg", tmp_path / "run", rounds=1)
    config = Config.from_flags("fedavg", **SMALL | {"rounds": 1})
    planner = planner_without_data(config)
    network, size = planner.network, planner.model.spec.size
    draw = network.draw(Stream(config.run.seed).child("channel"), 0)
    snr = 10 ** (network.snr_db / 10) * (np.abs(draw.h) ** 2).sum(-1)
    rate = network.bandwidth_hz[0] * np.log2(1 + snr)
    compute, send = 2 * network.cycles_per_step / network.cpu_hz, 32 * size / rate
    wanted = {
        "snr_db": 10 * np.log10(snr),
        "rate_bps": rate,
        "compute_seconds": compute,
        "send_seconds": send,
        "wait_seconds": (network.clients - 1) * send,
        "compute_joules": 1e-28 * network.cpu_hz**2 * 2 * network.cycles_per_step,
        "send_joules": 0.1 * send,
        "download_seconds": np.zeros(network.clients),
    }
    for name, values in wanted.items():
        np.testing.assert_allclose(log[name], values, rtol=1e-5, err_msg=name)
    assert log["client"][log["straggler"] > 0].tolist() == [
        int((compute + network.clients * send).argmax())
    ]
    assert isinstance(planner.links.uplink.access, EqualSlots)
    assert set(log["steps"]) == {2}


def test_a_log_changes_no_result_and_survives_an_interruption(tmp_path, halt_at):
    flags = {**SMALL, "rounds": 3, "checkpoint_seconds": 0.0, "clients_per_round": 3}
    plain = wirelessfl.run(Config.from_flags("fedavg", **flags, out=tmp_path / "plain"))
    flags["client_log"] = True
    whole = wirelessfl.run(Config.from_flags("fedavg", **flags, out=tmp_path / "whole"))
    costs = [{k: v for k, v in row.items() if k != "wall_seconds"} for row in plain.rows]
    assert costs == [{k: v for k, v in row.items() if k != "wall_seconds"} for row in whole.rows]
    assert not (tmp_path / "plain" / "clients.csv").exists()

    part = tmp_path / "part"
    with pytest.raises(KeyboardInterrupt):
        wirelessfl.run(Config.from_flags("fedavg", **flags, out=part), on_row=halt_at(2))
    file = part / "clients.csv"
    with file.open("a") as more:  # as if killed after the checkpoint, while writing a line
        more.write("3,3,0,1,0,12")
    wirelessfl.resume(part)
    assert file.read_bytes() == (tmp_path / "whole" / "clients.csv").read_bytes()
    assert len(read_client_log(part)) == 9


def test_a_changed_log_is_not_continued(tmp_path, halt_at):
    flags = {**SMALL, "rounds": 2, "checkpoint_seconds": 0.0, "client_log": True}

    with pytest.raises(KeyboardInterrupt):
        wirelessfl.run(
            Config.from_flags("fedavg", **flags, out=tmp_path / "run"), on_row=halt_at(1)
        )
    file = tmp_path / "run" / "clients.csv"
    text = file.read_text()
    file.write_text(text.replace("1,1,0,0", "1,1,0,7", 1))
    with pytest.raises(ConfigError, match=r"clients\.csv has been changed since the checkpoint"):
        wirelessfl.resume(tmp_path / "run")
    file.write_text(text[:-9])
    with pytest.raises(ConfigError, match=r"clients\.csv has .* bytes, but the checkpoint needs"):
        wirelessfl.resume(tmp_path / "run")


def test_sessions_count_trial_rounds(tmp_path):
    result, log = logged(
        "fedavg",
        tmp_path / "run",
        sessions=3,
        presence="labels",
        split="iid",
        warm_start="proposed",
    )
    assert set(log["trial"]) == {0, 1}
    last = result.rows[-1]
    _, first = np.unique(log["entry"], return_index=True)
    assert log.seconds[first].sum() == pytest.approx(last["sim_seconds"], rel=1e-8)
    assert log.seconds[first][log["trial"][first] > 0].sum() == pytest.approx(
        last["extra_seconds"], rel=1e-8
    )


def test_asynchronous_cells_have_a_log(tmp_path):
    result, log = logged(
        "hfedavg", tmp_path / "run", cells=2, schedule="buffered", buffer=1, rounds=3, slowdown=2.0
    )
    assert log.rounds == result.rows[-1]["updates"] == 3
    joules = (log["compute_joules"] + log["send_joules"]).sum() / SMALL["clients"]
    assert joules == pytest.approx(result.rows[-1]["joules"], rel=1e-9)


@pytest.mark.parametrize(
    ("text", "told"),
    [(None, "no clients.csv: give the folder of a run with --client-log"),
     ("a,b\n1,2\n", "damaged: it has other columns"),
     ("HEAD\n1,2\n", "damaged: a line is incomplete"),
     ("HEAD\n1,x\n", "damaged")],
)  # fmt: skip
def test_a_missing_or_damaged_file_is_one_error(text, told, tmp_path):
    from wirelessfl.engine.rounds.client_log import COLUMNS

    if text is not None:
        (tmp_path / "clients.csv").write_text(text.replace("HEAD", ",".join(COLUMNS)))
    with pytest.raises(ConfigError, match=told):
        read_client_log(tmp_path)


def test_a_changed_digit_of_a_finished_run_is_noticed(config, toy):
    result = wirelessfl.run(config("fedavg", client_log=True), data=toy)
    file = result.directory / "clients.csv"
    whole = file.read_text()
    assert len(read_client_log(result.directory))
    for changed, told in ((whole[:-2] + "9\n", "changed since"), (whole * 2, "damaged: ")):
        file.write_text(changed if changed != whole else whole[:-2] + "8\n")
        with pytest.raises(ConfigError, match=rf"clients\.csv .*{told}"):
            read_client_log(result.directory)


def a_log(**columns):
    """A log of two rounds of two clients, in which client 1 computes for 3 of 4 seconds."""
    found = {
        "entry": [1, 1, 2, 2], "round": [1, 1, 2, 2], "trial": [0] * 4, "client": [0, 1, 0, 1],
        "cell": [0] * 4, "compute_seconds": [1.0, 3.0, 1.0, 3.0], "send_seconds": [1.0] * 4,
        "idle_seconds": [2.0, 0.0, 2.0, 0.0], "wait_seconds": [0.0] * 4,
        "download_seconds": [0.0] * 4, "compute_joules": [1.0] * 4, "send_joules": [2.0] * 4,
        "last_in_cell": [0, 1, 0, 1], "straggler": [0, 1, 0, 1],
    }  # fmt: skip
    return ClientLog({name: np.array(value) for name, value in (found | columns).items()})


def test_the_summary_names_the_straggler():
    found = a_log().summary()
    assert (found["rounds"], found["seconds"]) == (2, 4.0)
    (straggler,) = found["stragglers"]
    assert (straggler["client"], straggler["share"], straggler["compute"]) == (1, 1.0, 0.75)
    (cell,) = found["cells"]
    assert (cell["compute"], cell["send"], cell["idle"], cell["joules"]) == (0.5, 0.25, 0.25, 3.0)
    assert (cell["last"], cell["last_share"]) == (1, 1.0)
    assert a_log().lines()[-1] == (
        "stragglers: client 1 of cell 0 in 100 % of rounds (75 % computing)"
    )
    assert repr(a_log()) == "<ClientLog: 4 entries of 2 clients in 2 rounds>"
    empty = ClientLog({name: value[:0] for name, value in a_log().columns.items()})
    assert empty.lines() == ["a round takes 0 s (mean of 0)", "stragglers: none"]
