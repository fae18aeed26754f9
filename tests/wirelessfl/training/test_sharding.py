"""Processes that divide the clients of every round produce the rows of a single process."""

import json
import os
import re
import signal
import socket
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tests.launching import holder, wait_until
from wirelessfl.cli import main
from wirelessfl.runs.folder.run_folder import RunFolder
from wirelessfl.training.workers.shards import Shards, sharded

TORCHRUN = ["--nproc-per-node", "2"]
TORCHRUN += ["--rdzv-backend", "c10d", "--rdzv-endpoint", "localhost:0", "-m", "--"]
TORCHRUN += ["wirelessfl"]  # after --, torchrun does not parse --local
SMALL = ["--local-steps", "3", "--threads", "1", "--chunk", "2", "--lr", "0.05"]


@pytest.fixture
def together(launcher):
    """A function that runs a command in two processes, as torchrun does, and waits for both."""

    def make(*words, check=True, **options):
        with socket.socket() as free:
            free.bind(("localhost", 0))
            port = str(free.getsockname()[1])
        environment = {"WORLD_SIZE": "2", "MASTER_ADDR": "localhost", "MASTER_PORT": port}
        both = [
            launcher.start(
                *words, environment=environment | {"RANK": rank, "LOCAL_RANK": rank}, **options
            )
            for rank in ("0", "1")
        ]
        streams = [process.communicate() for process in both]
        stdout, stderr = ("".join(texts) for texts in zip(*streams, strict=True))
        codes = [process.wait() for process in both]
        assert codes == [0, 0] or not check, stderr
        return SimpleNamespace(stdout=stdout, stderr=stderr, codes=codes)

    return make


def said(done):
    """Class names of the errors printed to stderr."""
    return re.findall(r"^(\w*Error): ", done.stderr, re.MULTILINE)


def rows_of(out):
    return [json.loads(line) for line in (out / "rows.jsonl").read_text().splitlines()]


def assert_same(out, other):
    """Assert equal rows: accuracy and loss to 1e-5, AirComp errors to a relative 1e-4.

    All other values must be identical.
    """
    for one, two in zip(rows_of(out), rows_of(other), strict=True):
        assert one.keys() == two.keys()
        for name, value in one.items():
            if name.endswith(("accuracy", "loss")):
                assert value == pytest.approx(two[name], abs=1e-5)
            # These depend on trained values.
            elif name.startswith(("air_error", "compression_error", "uplink_error")):
                assert value == pytest.approx(two[name], rel=1e-4)
            elif name != "wall_seconds":
                assert value == two[name], name
    params, others = (RunFolder(o).load()[0]["server.cloud.params"] for o in (out, other))
    assert torch.allclose(params, others, atol=1e-5)
    return params


@given(st.integers(0, 50), st.integers(1, 9))
def test_shares_are_disjoint_complete_and_even(clients, count):
    shares = [Shards(rank, count).share(clients) for rank in range(count)]
    together = np.concatenate([np.arange(clients)[share] for share in shares])
    assert together.tolist() == list(range(clients))
    sizes = [share.stop - share.start for share in shares]
    assert max(sizes) - min(sizes) <= 1


def test_one_process_is_alone():
    with sharded({"RANK": "", "WORLD_SIZE": ""}) as shards:
        assert (shards.rank, shards.count, shards.share(5)) == (0, 1, slice(0, 5))
        ones = torch.ones(3)
        assert shards.sum(ones) is ones
        assert shards.gather(ones, 3) is ones
        assert shards.from_first("x") == "x"
        assert shards.all("x") == ["x"]


THREADS = """
import os, sys
from pathlib import Path
from wirelessfl.cli import main
assert main(sys.argv[1:]) == 0
names = [file.read_text() for file in Path("/proc/self/task").glob("*/comm")]
left = sum("gloo" in name for name in names)
sys.stdout.write(f"rank {os.environ['RANK']} left {left} threads\\n")
"""
"""Runs a command and counts the threads of its process group, which could abort it at exit."""
CASES = {
    "one client for two": ["fedavg", "--clients", 1, "--rounds", 2, "--validation-fraction", 0.2],
    "a target that ends the run": "fedavg --clients 4 --rounds 60 --target 0.3 "
    "--stop-at-target".split(),
    "weights, and what clients keep": "hfedavg --local scaffold --clients 8 --cells 2 --rounds 4 "
    "--clients-per-round 5 --tracking-clients 3 --split dirichlet --weighting samples".split(),
    "uneven cells over the air, updates held": "hist --clients 7 --cells 3 --rounds 2 --uplink "
    "aircomp --convention physical --csi-error 0.01 --phase-error-deg 5 --elements-per-symbol "
    "2".split(),
    "what the server remembers": "hfedavg --local ram-fed --clients 7 --cells 2 --rounds 3 "
    "--edge-rounds 2 --clients-per-round 5 --capacities 1,0.5,0.2 --weighting samples "
    "--downlink-compression quantisation --uplink-compression top-k --error-feedback".split(),
}


@pytest.mark.thorough(every=8)
@pytest.mark.parametrize("case", CASES)
def test_two_processes_give_the_rows_of_one(case, tmp_path, capsys, together):
    words = [*map(str, CASES[case]), *SMALL]
    script = tmp_path / "script.py"
    script.write_text(THREADS)
    done = together("run", *words, "--out", tmp_path / "two", script=script)
    assert done.stdout.count("rows, parameters and settings") == 1  # only rank 0 prints
    assert sorted(re.findall(r"rank \d left \d+", done.stdout)) == [
        "rank 0 left 0",
        "rank 1 left 0",
    ]
    assert main(["run", *words, "--workers", "1", "--out", str(tmp_path / "one")]) == 0
    capsys.readouterr()
    moved = assert_same(tmp_path / "two", tmp_path / "one")
    assert float(moved.abs().max()) > 0
    if case == "one client for two":
        done = together("resume", tmp_path / "two")  # reads a finished run
        assert "│      2 │" in done.stdout


@pytest.mark.thorough
@pytest.mark.skipif(not Path("/proc").is_dir(), reason="no /proc to find the process in")
def test_a_killed_torchrun_run_can_be_resumed(tmp_path, capsys, together, launcher):
    """If one of two processes under torchrun is killed, the run can be resumed."""
    rounds = 150  # so many that the run has not ended when its process is killed
    words = ["hist", "--clients", "6", "--cells", "3", "--rounds", str(rounds), *SMALL]
    words += ["--edge-rounds", "1", "--eval-every", "10", "--checkpoint-seconds", "0"]
    out, whole = tmp_path / "killed", tmp_path / "whole"
    torchrun = [*TORCHRUN, "run", *words, "--out", out]
    process = launcher.start(*torchrun, module="torch.distributed.run")
    try:
        wait_until((out / "rows.jsonl").exists)
        first = holder(out / "config.toml")  # of the two
        wait_until(lambda: len(rows_of(out)) >= 2)
        os.kill(first, signal.SIGKILL)
    finally:
        status = process.wait(300)
    assert status != 0  # torchrun notices and ends the other process
    assert rows_of(out)[-1]["round"] < rounds  # work remained
    done = together("resume", out)
    assert f"│ {rounds:6} │" in done.stdout
    assert main(["run", *words, "--workers", "1", "--out", str(whole)]) == 0
    capsys.readouterr()
    assert_same(out, whole)


@pytest.mark.thorough
def test_invalid_settings_are_reported_once_and_leave_no_folder(tmp_path, together):
    out = tmp_path / "out"
    for words in (["--cells", 99], ["--dataset", "mnist", "--data-dir", tmp_path / "none"]):
        done = together("run", "hist", *words, "--out", out, check=False)
        assert 0 not in done.codes
        assert len(said(done)) == 1
        assert not out.exists()


FAILING = """
import os
from dataclasses import dataclass
from wirelessfl.extend import FedAvg

@dataclass(frozen=True)
class Failing(FedAvg):
    def begin(self, cohort):
        if os.environ["RANK"] == "1":
            raise ValueError("of the user")
        return {}
"""


@pytest.mark.thorough
def test_errors_of_one_process_are_reported_once(tmp_path, together):
    """Errors in one process are reported once: an edited configuration, or a failing client.

    If a client in rank 1 fails, rank 0 reports that a process has ended.
    """
    words = ["fedavg", "--clients", 2, "--rounds", 2, *SMALL]
    out = tmp_path / "out"
    together("run", *words, "--out", out)
    settings = out / "config.toml"
    settings.write_text(settings.read_text().replace("lr = 0.05", "lr = 0.06"))
    done = together("resume", out, check=False)
    assert said(done) == ["ConfigError"]
    assert said(together("resume", tmp_path / "nowhere", check=False)) == ["ConfigError"]
    (tmp_path / "failing.py").write_text(FAILING)
    words[0] = "failing:Failing"
    done = together("run", *words, "--out", tmp_path / "other", check=False, cwd=tmp_path)
    assert said(done) == ["TrainingError", "TrainingError"]
    assert "client 1, round 1, edge round 1: ValueError: of the user" in done.stderr
    assert "one of the 2 processes that share the clients has ended" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.thorough
def test_two_processes_give_the_sessions_of_one(tmp_path, together):
    """Sessions with trial rounds and client state give the rows of a single process."""
    words = ["run", "scaffold", "--dataset", "digits", "--clients", "8", "--sessions", "4"]
    words += ["--rounds", "2", "--split", "iid", "--warm-start", "proposed", *SMALL]
    together(*words, "--out", tmp_path / "two")
    assert main([*words, "--workers", "1", "--out", str(tmp_path / "one")]) == 0
    weights = [[row.pop("warm_weights") for row in rows_of(tmp_path / n)] for n in ("one", "two")]
    assert [w.keys() for w in weights[0]] == [w.keys() for w in weights[1]]
    for one, two in zip(rows_of(tmp_path / "one"), rows_of(tmp_path / "two"), strict=True):
        assert one["accuracy"] == pytest.approx(two["accuracy"], abs=1e-5)
        for name in ("sim_seconds", "uplink_mib", "extra_mib", "stored_bytes", "present"):
            assert one[name] == two[name], name
