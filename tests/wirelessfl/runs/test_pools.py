"""Pools of a sweep: processes and Ray give the rows of runs in turn; processes share the GPUs."""

import json
import os
import signal
import subprocess
import sys
import threading
from multiprocessing import Pipe
from pathlib import Path

import pytest
import torch

from tests.launching import holder, wait_until
from tests.wirelessfl.runs.sweeps import bare, configs
from wirelessfl.base.errors import ConfigError
from wirelessfl.config import Config
from wirelessfl.runs import pools
from wirelessfl.runs.kept import is_finished, kept_folder, kept_run, priced_from
from wirelessfl.runs.sweep import SweepError, sweep
from wirelessfl.training.workers.processes import fork_server


def test_processes_give_the_rows_of_sequential_runs(tmp_path):
    """Results have the requested order; equal settings run once, and a repeated sweep runs none.

    One run is priced.
    """
    wanted = configs()
    wanted += [wanted[0], *configs(seeds=(1,), uplink="ofdma")]
    seen, ended, ended_alone = [], [], []
    alone = sweep(wanted, tmp_path / "alone", on_end=ended_alone.append)
    together = sweep(
        wanted,
        tmp_path / "together",
        jobs=2,
        on_row=lambda *a: seen.append(a),
        on_end=ended.append,
    )
    assert ended_alone == sorted(ended) == [0, 1, 2, 4]
    assert bare(alone) == bare(together)
    assert [r.config.run.seed for r in together] == [1, 2, 3, 1, 1]
    assert len(list((tmp_path / "together").iterdir())) == 4
    assert sorted({place for place, _ in seen}) == [0, 1, 2, 4]
    assert len(seen) == 12
    assert [priced_from(r.directory) is None for r in together] == [True] * 4 + [False]
    before = [p.stat().st_mtime_ns for p in (tmp_path / "together").rglob("rows.jsonl")]
    assert bare(sweep(wanted, tmp_path / "together", jobs=2)) == bare(alone)
    assert [p.stat().st_mtime_ns for p in (tmp_path / "together").rglob("rows.jsonl")] == before


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="needs /proc to find the process")
def test_a_killed_process_is_reported_with_its_exit_code(tmp_path):
    """The failure gives the exit code of the killed process, and the other run finishes."""
    long, short = configs(rounds=2000, seeds=(1,), eval_every=500), configs(seeds=(2,))
    killed = []

    def kill():
        config = kept_folder(long[0], tmp_path) / "config.toml"
        wait_until(lambda: config.with_name("rows.jsonl").exists())
        killed.append(holder(config))
        os.kill(killed[0], signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    with pytest.raises(SweepError, match="exit code -9"):
        sweep([*long, *short], tmp_path, jobs=2)
    killer.join()
    assert len(killed) == 1
    assert not is_finished(long[0], tmp_path)  # it was killed before its end
    assert is_finished(short[0], tmp_path)


OBSERVER = """
import os
import torch
from dataclasses import dataclass
from wirelessfl.extend import FedAvg

@dataclass(frozen=True)
class Observer(FedAvg):
    def initial(self, start):
        assert "SET_LATER" in os.environ
        assert "SET_BY_A_RUN" not in os.environ
        assert torch.get_default_dtype() == torch.float32
        os.environ["SET_BY_A_RUN"] = "1"
        torch.set_default_dtype(torch.float64)
        with open("processes", "a") as file:
            file.write(f"{os.getpid()}\\n")
        return super().initial(start)
"""


def own_runs(folder, monkeypatch, source, path, seeds):
    """Short runs of a class in a file of a folder, which becomes the current one."""
    monkeypatch.chdir(folder)
    monkeypatch.syspath_prepend(folder)
    Path(path.partition(":")[0] + ".py").write_text(source)
    small = {"clients": 2, "rounds": 1, "local_steps": 1, "threads": 1, "chunk": 2}
    return [Config.from_flags(path, seed=seed, **small) for seed in seeds]


def test_processes_get_the_environment_of_the_sweep(tmp_path, monkeypatch):
    """The fork server may have been started before a variable was set.

    A process executes several runs, and none of them sees a variable that another one has set, or
    its default dtype of PyTorch.
    """
    assert fork_server.start() == sys.platform.startswith("linux")
    monkeypatch.setenv("SET_LATER", "1")
    runs = own_runs(tmp_path, monkeypatch, OBSERVER, "observer:Observer", range(4))
    assert len(sweep(runs, "runs", jobs=2)) == 4
    processes = Path("processes").read_text().split()
    assert (len(processes), len({*processes})) == (4, 2)


ENDING = """
import os
from dataclasses import dataclass
from wirelessfl.extend import FedAvg

runs = 0

@dataclass(frozen=True)
class Ending(FedAvg):
    last: int = 1

    def initial(self, start):
        global runs
        runs += 1
        if runs > self.last:
            os._exit(3)
        return super().initial(start)
"""


def test_a_run_that_ends_its_process_loses_only_itself(tmp_path, monkeypatch):
    """It fails only if it also ends a process that has executed no other run."""
    ending = own_runs(tmp_path, monkeypatch, ENDING, "ending:Ending", range(5))
    assert len(sweep(ending, "runs", jobs=2)) == 5
    alone = [config.changed(last=0) for config in ending[1:3]]
    with pytest.raises(SweepError, match="exit code 3") as caught:
        sweep([ending[0], *alone, *ending[1:]], "others", jobs=2)
    assert [failure.config.run.seed for failure in caught.value.failures] == [1, 2]
    assert all(is_finished(config, Path("others")) for config in ending)


@pytest.mark.thorough
@pytest.mark.skipif(not Path("/proc").is_dir(), reason="needs /proc to find the process")
def test_processes_end_with_a_killed_sweep(tmp_path, launcher):
    """The processes of a sweep end when the sweep is killed."""
    words = ["sweep", "hist", "--clients", "4", "--rounds", "2000", "--seed", "1,2", "--jobs", "2"]
    parent = launcher.start(*words, "--out", tmp_path)
    wait_until(lambda: len(list(tmp_path.glob("*/rows.jsonl"))) == 2)
    children = [holder(file) for file in tmp_path.glob("*/config.toml")]
    parent.kill()
    parent.wait()
    wait_until(lambda: not any(Path(f"/proc/{child}").exists() for child in children))


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="fork servers are those of Linux")
def test_processes_of_a_command_without_streams_have_workers(tmp_path):
    """The forked server closes what it must, and its children can start servers of their own."""
    settings = "--clients 4 --rounds 1 --local-steps 1 --chunk 2 --workers 2 --seed 1,2 --jobs 2"
    words = [sys.executable, "-m", "wirelessfl", "sweep", "fedavg", *settings.split(), "--quiet"]
    closed = ["sh", "-c", 'exec "$@" <&- >&-', "sh"]
    done = subprocess.run(
        [*closed, *words, "--out", tmp_path], stderr=subprocess.PIPE, text=True, timeout=100
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert len(list(tmp_path.glob("*/rows.jsonl"))) == 2


UNGUARDED = """
from pathlib import Path
from wirelessfl import Config
from wirelessfl.runs.sweep import sweep
small = {"clients": 2, "rounds": 1, "local_steps": 1, "threads": 1, "chunk": 2}
sweep([Config.from_flags("fedavg", seed=s, **small) for s in (1, 2)], Path("runs"), jobs=2)
"""


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["", "__name__"])
def test_a_script_without_a_main_guard_gets_one_error(name, tmp_path, launcher):
    """Each process of the sweep imports the script, which must not start another sweep.

    A script that never reads ``__name__`` is refused before any process starts.
    """
    script = tmp_path / "script.py"
    script.write_text(UNGUARDED + name)
    process = launcher.start(script=script, cwd=tmp_path)
    _, errors = process.communicate()
    assert process.wait() != 0
    assert (
        errors.strip().splitlines()[-1].endswith('`if __name__ == "__main__":`, or choose jobs=1.')
    )
    assert not list(tmp_path.glob("runs/*"))


@pytest.mark.parametrize("address", ["127.0.0.1:1", "ray://127.0.0.1:1", "127.0.0.1:many"])
def test_an_unreachable_cluster_is_reported_immediately(tmp_path, address):
    """An address without a cluster is an error at once, without Ray's retries."""
    pytest.importorskip("ray")
    with pytest.raises(ConfigError, match=f"ray is {address}: no cluster answers there"):
        sweep(configs(), tmp_path, ray=address)


ON_RAY = """
import json, sys
from pathlib import Path
from wirelessfl import Config
from wirelessfl.runs.sweep import sweep
small = {"clients": 8, "local_steps": 2, "threads": 1, "chunk": 2}
configs = [Config.from_flags("hist", rounds=r, seed=1, **small) for r in (1, 2)]
results = sweep(configs, Path(sys.argv[1]), ray="local")
print(json.dumps([result.rows for result in results]))
"""


@pytest.mark.thorough
def test_a_local_ray_gives_the_same_rows(tmp_path, launcher):
    """A sweep on a local Ray gives the same rows as one without Ray, in the requested order.

    One of its runs is finished before. It runs in a separate process, because Ray leaves threads
    and sockets behind.
    """
    pytest.importorskip("ray")
    script = tmp_path / "script.py"
    script.write_text(ON_RAY)
    kept_run(configs(rounds=2, seeds=(1,))[0], tmp_path / "ray")
    # On a busy machine, processes with Ray's low priority would hardly run.
    normal = {"RAY_worker_niceness": "0"}
    done = launcher.start(tmp_path / "ray", script=script, environment=normal)
    shown, errors = done.communicate()
    assert done.wait() == 0, errors
    rows = json.loads(shown.splitlines()[-1])
    alone = sweep([configs(rounds=r, seeds=(1,))[0] for r in (1, 2)], tmp_path / "alone")
    for run in rows:
        for row in run:
            row.pop("wall_seconds")
    assert rows == bare(alone)


@pytest.fixture
def used(monkeypatch):
    """GPUs that processes select; there are four."""
    numbers = []
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 4)
    monkeypatch.setattr(torch.cuda, "set_device", numbers.append)
    return numbers


def test_numbers_take_the_gpus_in_turn(used):
    for number in range(6):
        pools.use_gpu(Config.from_flags("fedavg"), number)
    assert used == [0, 1, 2, 3, 0, 1]
    pools.use_gpu(Config.from_flags("fedavg", device="cpu"), 3)
    assert len(used) == 6


@pytest.mark.parametrize("count", [0, 1])
def test_without_several_gpus_none_is_selected(used, monkeypatch, count):
    monkeypatch.setattr(torch.cuda, "device_count", lambda: count)
    pools.use_gpu(Config.from_flags("fedavg"), 1)
    assert used == []


class Process:
    """A child that has ended."""

    exitcode = 0

    def join(self):
        pass


def test_a_run_takes_the_gpu_of_the_run_that_has_ended(tmp_path, monkeypatch):
    """Run 0 is long, the others are short: they never share its slot, thus not its GPU."""
    started, workers = [], {}

    class Worker(pools._Worker):
        def __init__(self, slot):
            self.slot, self.busy, self.places = slot, False, []
            self.process = Process()
            self.pipe, self.theirs = Pipe()
            assert slot not in workers, "a slot has one process for all of its runs"
            workers[slot] = self

        def begin(self, place, *run):
            self.places.append(place)
            self.busy = True
            started.append((place, self.slot))
            if place > 0:
                self.theirs.send("")
            if place == 5:  # the last one
                workers[0].theirs.send("")

    monkeypatch.setattr(pools, "_Worker", Worker)
    ended = []
    folders = [tmp_path / str(place) for place in range(6)]
    with pools.Processes([None] * 6, folders, 2, lambda place, row: None, ended.append) as some:
        assert some.execute([*range(6)], {}) == []
    assert started == [(0, 0), (1, 1), (2, 1), (3, 1), (4, 1), (5, 1)]
    assert sorted(ended) == [*range(6)]


def test_a_trained_run_selects_the_gpu_of_its_slot(used, tmp_path, monkeypatch):
    """A priced one needs no GPU."""
    monkeypatch.setattr(pools, "end_with_parent", lambda: None)
    monkeypatch.setattr(pools.signal, "signal", lambda number, handler: None)
    monkeypatch.setattr(torch, "set_num_threads", lambda count: None)
    monkeypatch.setattr(pools, "why_failed", lambda *run: "")
    here, there = Pipe()
    process = threading.Thread(target=pools._serve, args=(there, 6))
    process.start()
    for source in (None, tmp_path):
        here.send((Config.from_flags("fedavg"), tmp_path, source, dict(pools.os.environ)))
        assert here.recv() == ""
    here.close()
    process.join()
    assert used == [2]
    pools._make_packed(Config.from_flags("fedavg"), "run", b"", 5)
    assert used == [2, 1]
