"""Worker processes compute the same numbers as one process, and always end cleanly."""

import json
import multiprocessing.forkserver
import os
import signal
import subprocess
import sys
import threading
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

import pytest
import torch
from torch import nn

import wirelessfl
from tests.launching import wait_until
from tests.wirelessfl.training.jobs import job_for, training_data, updates
from wirelessfl.algorithms.fedavg import FedAvg
from wirelessfl.base.errors import ConfigError, TrainingError
from wirelessfl.cli import main
from wirelessfl.config import Config
from wirelessfl.models import FCNN
from wirelessfl.runs.build import build, computing, executors
from wirelessfl.training.module_executors import LoopExecutor, VmapExecutor
from wirelessfl.training.stacked import StackedExecutor
from wirelessfl.training.workers import processes
from wirelessfl.training.workers.processes import ForkServer
from wirelessfl.training.workers.worker import SharedMemory, WorkerDiedError
from wirelessfl.training.workers.workers_executor import WorkersExecutor, why_no_workers

posix = pytest.mark.skipif(os.name != "posix", reason="signals")


@pytest.fixture
def work():
    data = training_data((9,), [20, 5, 50, 16, 33, 7, 8])
    task, job = job_for(FCNN((9,), 4, hidden=(13,), dropout=0.2), data)
    return task, data, job


def alive(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    stat = Path(f"/proc/{pid}/stat")
    try:
        return stat.read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):  # it has just ended, or there is no /proc
        return not Path("/proc/self").exists()


@pytest.fixture
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def test_workers_equal_their_executor_bit_for_bit(work, one_thread):
    """Two worker processes are bit-identical to one, for several jobs of different sizes."""
    task, data, job = work
    others = job.of(slice(2, 3)), replace(job, local_steps=2)
    for inner, jobs in (
        (StackedExecutor(task, data, 2), (job, *others)),
        (VmapExecutor(task, data, 4), (job,)),
        (LoopExecutor(task, data), (job,)),
    ):
        executor = WorkersExecutor(inner, 2)
        try:
            for own in jobs:
                assert torch.equal(updates(executor, own), updates(inner, own))
            pids = executor.pids
            assert len(pids) == 2
            assert all(map(alive, pids))
        finally:
            executor.close()
        assert not any(map(alive, pids))


def test_a_failure_in_a_worker_is_raised_and_ends_all_workers(work):
    task, data, job = work
    data.inputs[24] = float("nan")  # a sample of client 1
    executor = WorkersExecutor(LoopExecutor(task, data), 2)
    with pytest.raises(TrainingError, match=r"client 1, round 1, local step .: the loss is nan"):
        updates(executor, job)
    assert executor.pids == []


def test_exceptions_in_workers_name_client_round_and_line(work):
    task, data, job = work
    inner = VmapExecutor(task, data, 2)
    executor = WorkersExecutor(inner, 2)
    executor.start()
    for own in (inner, executor):  # the same message in every process, from the first failure
        with pytest.raises(
            TrainingError,
            match=r"^clients? [0-2].*, round 1: TypeError: .*executors\.py, line",
        ):
            updates(own, replace(job, rule=FedAvg(lr=object())))
    assert executor.pids == []


def test_closing_the_iterator_early_ends_the_workers(work):
    task, data, job = work
    executor = WorkersExecutor(StackedExecutor(task, data, 1), 2)
    chunks = executor.train(job)
    next(chunks)
    pids = executor.pids
    chunks.close()
    assert not any(map(alive, pids))
    assert len(updates(executor, job)) == 7  # the workers start again
    executor.close()


@posix
@pytest.mark.parametrize("idle", [True, False])
def test_a_killed_worker_is_reported_with_its_exit_code(work, idle):
    """The error gives the exit code of a worker killed between jobs or during a job."""
    task, data, job = work
    executor = WorkersExecutor(StackedExecutor(task, data, 1), 2)
    updates(executor, job)
    victim = executor.pids[1]

    def kill():
        assert alive(victim)
        os.kill(victim, signal.SIGKILL)

    def kill_at_work():
        before = busy_ticks(victim)
        wait_until(lambda: busy_ticks(victim) > before + 10)  # a tenth of a second
        kill()

    if idle:
        kill()
    else:
        job = replace(job, local_steps=20_000)  # takes minutes, so the job is unfinished
        threading.Thread(target=kill_at_work).start()
    with pytest.raises(WorkerDiedError, match=rf"{victim} has ended \(exit code -9, SIGKILL\)"):
        list(executor.train(job))
    assert executor.pids == []


@posix
def test_a_worker_killed_after_an_answer_is_reported(work):
    """An order to a worker that was killed after an answer, which is still unread, is an error."""
    task, data, _ = work
    executor = WorkersExecutor(StackedExecutor(task, data, 1), 1)
    executor.start()
    (worker,) = executor._workers
    order = SharedMemory(torch.empty(1).share_memory_(), torch.empty(1).share_memory_())
    worker.send(order)
    assert worker.pipe.poll(60)
    worker.process.kill()
    worker.process.join()
    with pytest.raises(WorkerDiedError, match=r"has ended \(exit code -9, SIGKILL\)"):
        worker.send(order)
    executor.close()


def busy_ticks(pid):
    """CPU time used by a process, in hundredths of a second."""
    return sum(map(int, Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]))


def children(pid):
    """Ids of the worker processes of the run ``pid``, which are children of its fork server."""
    parents = {}
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            stat = (entry / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        parents[int(entry.name)] = int(stat[1])
    return [own for own, parent in parents.items() if parents.get(parent) == pid]


ROUNDS = 36
LONG = ["--clients", 6, "--cells", 3, "--local-steps", 2, "--rounds", ROUNDS, "--eval-every", 3]
LONG += ["--edge-rounds", 2, "--chunk", 1, "--threads", 1, "--checkpoint-seconds", 0]


def stopped(launcher, out, *words):
    """A command that is stopped (SIGSTOP) in its training, and its two workers.

    It cannot finish before SIGCONT, however busy the machine is.
    """
    rows = out / "rows.jsonl"
    before = len(rows_of(out)) if rows.exists() else 1
    process = launcher.start(*words, session=True)

    def trained():  # Ctrl-C is ignored before, while workers start
        return rows.exists() and rows.read_bytes().count(b"\n") > before

    wait_until(lambda: process.poll() is not None or trained(), 90)
    process.send_signal(signal.SIGSTOP)
    assert process.poll() is None, process.communicate()
    assert rows_of(out)[-1]["round"] < ROUNDS, "the run was not stopped in time"
    workers = children(process.pid)
    assert len(workers) == 2
    return process, workers


def rows_of(out):
    return [json.loads(line) for line in (out / "rows.jsonl").read_text().splitlines()]


def without_wall(rows):
    return [{k: v for k, v in row.items() if k != "wall_seconds"} for row in rows]


@posix
@pytest.mark.skipif(not Path("/proc").is_dir(), reason="no /proc to find workers in")
def test_an_interrupted_run_ends_its_workers_and_can_be_resumed(tmp_path, launcher, capsys):
    """A killed worker ends the run, and Ctrl-C or a killed parent end the workers.

    The run is resumed after each of them, and has the rows of an uninterrupted run.
    """
    out, whole = tmp_path / "run", tmp_path / "whole"
    first = ("run", "hist", *LONG, "--workers", 2, "--out", out)
    process, workers = stopped(launcher, out, *first)
    os.kill(workers[0], signal.SIGKILL)
    process.send_signal(signal.SIGCONT)
    _, errors = process.communicate()
    assert process.wait() == 2
    assert f"worker process {workers[0]} has ended (exit code -9, SIGKILL)" in errors
    assert f"wirelessfl resume {out}" in errors
    assert not any(map(alive, workers))
    process, workers = stopped(launcher, out, "resume", out)
    os.killpg(process.pid, signal.SIGINT)  # like a terminal
    process.send_signal(signal.SIGCONT)
    _, errors = process.communicate()
    assert process.wait() == 130
    assert f"wirelessfl resume {out}" in errors
    assert "Traceback" not in errors
    wait_until(lambda: not any(map(alive, workers)))
    process, workers = stopped(launcher, out, "resume", out)
    process.kill()
    wait_until(lambda: not any(map(alive, workers)))
    assert main(["resume", str(out)]) == 0
    words = ["run", "hist", *map(str, LONG), "--workers", "1", "--out", str(whole)]
    assert main(words) == 0
    capsys.readouterr()
    assert without_wall(rows_of(out)) == without_wall(rows_of(whole))


def test_the_number_of_workers_is_resolved_and_stored(config, toy):
    """Runs from Python have one worker by default, and so has a short run with ``auto``."""
    for workers in (None, "auto", 1):
        settings = config(rounds=1, workers=workers)
        assert build(settings, data=toy).config.run.workers == 1
    result = wirelessfl.run(config(rounds=1, workers=2, chunk=2), data=toy)
    assert result.config.run.workers == 2
    alone = wirelessfl.run(config(rounds=1, workers=1, chunk=2), data=toy)
    assert without_wall(result.rows) == without_wall(alone.rows)


def test_models_that_cannot_be_sent_are_refused(config, toy):
    module = nn.Sequential(nn.Linear(12, 4))
    module.register_forward_hook(lambda *_: None)  # a lambda cannot be pickled
    with pytest.raises(ConfigError, match=r"workers is 2: the model cannot be sent .*workers 1"):
        build(config(workers=2), data=toy, model=module)


UNGUARDED = """
import torch, wirelessfl
from wirelessfl.config import Config
wirelessfl.run(Config.from_flags("hist", rounds=1, clients=8, out=OUT, workers=WORKERS, chunk=2))
"""


def script_with(out, workers):
    return UNGUARDED.replace("OUT", repr(str(out))).replace("WORKERS", str(workers))


def last_line(errors):
    return errors.strip().splitlines()[-1]


@pytest.mark.thorough(every=8)
@pytest.mark.parametrize("workers", [None, 2])
def test_unguarded_scripts_run_without_workers_or_get_one_error(tmp_path, workers, launcher):
    script = tmp_path / "script.py"
    script.write_text(script_with(tmp_path / "run", workers))
    process = launcher.start(script=script)
    _, errors = process.communicate()
    assert (process.wait() == 0) == (workers is None), errors
    if workers == 2:
        assert '__name__ == "__main__"' in last_line(errors)
        assert errors.count("Traceback") == 1  # from the script, not from its workers
        assert not (tmp_path / "run").exists()


@pytest.mark.thorough
def test_a_program_from_standard_input_has_no_workers(tmp_path):
    done = subprocess.run(
        [sys.executable, "-"],
        input=script_with(tmp_path / "run", 2),
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert "workers is 2: the program comes from standard input" in last_line(done.stderr)
    assert not (tmp_path / "run").exists()


class Layer(nn.Linear):
    """A layer that a test moves to ``__main__``, as if defined in an interactive session."""


def test_models_defined_in_an_interactive_session_get_no_workers(monkeypatch):
    data = training_data((9,), [20, 5])
    task, _ = job_for(nn.Sequential(Layer(9, 4)), data)
    executor = VmapExecutor(task, data, 1)
    assert why_no_workers(executor, 2, 1) is None
    monkeypatch.setitem(sys.modules, "__main__", ModuleType("__main__"))
    assert why_no_workers(executor, 2, 1) is None  # python -c
    monkeypatch.setattr(Layer, "__module__", "__main__")
    monkeypatch.setattr(sys.modules["__main__"], "Layer", Layer, raising=False)
    assert "defined in an interactive session" in why_no_workers(executor, 2, 1)


@pytest.mark.thorough
def test_modules_that_the_fork_server_imports_exist():
    """The server ignores others, so that workers would import them one by one."""
    assert all(find_spec(name) for name in (*processes.PRELOADED, *processes.OF_RUNS))


FORKED = """
import os, sys, threading
from types import ModuleType
from wirelessfl.training.workers.processes import fork_server

def work():
    assert "made_here" in sys.modules
    os._exit(7)

if __name__ == "__main__":
    sys.modules["made_here"] = ModuleType("made_here")
    if sys.argv[1:]:
        threading.Thread(target=threading.Event().wait, daemon=True).start()
    fork_server.forked = True
    child = fork_server.context().Process(target=work)
    child.start()
    child.join()
    print(child.exitcode)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="fork servers are those of Linux")
@pytest.mark.parametrize(("words", "status"), [([], "7"), (["thread"], "1")])
def test_a_fork_server_is_forked_from_a_process_with_one_thread(tmp_path, words, status):
    """Workers then share the modules of the command; with more threads there is a new server."""
    script = tmp_path / "script.py"
    script.write_text(FORKED)
    done = subprocess.run([sys.executable, script, *words], capture_output=True, text=True)
    assert done.stdout == f"{status}\n", done.stderr


@pytest.mark.parametrize("threads", [1, 2])
def test_workers_with_several_threads_get_a_new_fork_server(threads, monkeypatch):
    """OpenMP waits forever for threads that a forked process does not have."""
    monkeypatch.setattr(processes.fork_server, "forked", True)
    settings = Config.from_flags("fedavg", threads=threads, workers=1).run
    computing.expect_workers(settings, computing.Workload(2, 2, 1, True))
    assert processes.fork_server.forked == (threads == 1)


@pytest.mark.thorough
def test_without_a_fork_server_workers_are_spawned(work, one_thread, monkeypatch):
    """Workers are spawned if the path of the fork server's socket is too long."""

    def fail():
        raise OSError("AF_UNIX path too long")

    task, data, job = work
    monkeypatch.setattr(multiprocessing.forkserver, "ensure_running", fail)
    executor = WorkersExecutor(StackedExecutor(task, data, 2), 1)  # each takes two seconds
    try:
        assert torch.equal(updates(executor, job), updates(executor.inner, job))
    finally:
        executor.close()


def test_a_forked_process_does_not_use_its_parents_server(monkeypatch):
    server = ForkServer()
    assert server.start() == sys.platform.startswith("linux")
    monkeypatch.setattr(processes.os, "getpid", lambda: -1)
    assert not server.start()


def test_a_stored_configuration_runs_on_a_machine_with_fewer_cores(
    config, same, tmp_path, monkeypatch
):
    flags = {"dataset": "digits", "clients": 8, "rounds": 1, "hidden": (8,)}
    first = wirelessfl.run(config("hist", **flags, workers=2, chunk=2))
    stored = tmp_path / "stored.toml"
    text = (first.directory / "config.toml").read_text()
    stored.write_text(text.replace(str(first.directory), str(tmp_path / "again")))
    for module in (computing, executors):
        monkeypatch.setattr(module, "cores", lambda: 1)
    again = wirelessfl.run(stored)
    assert again.config.run.workers == 1
    same(again, first)


def test_tasks_are_resumed_on_a_machine_with_fewer_cores(tmp_path, bare, monkeypatch, halt_at):
    """A multi-task run with two workers can be resumed on one core."""
    flags = {"clients": 8, "rounds": 3, "hidden": (8,), "local_steps": 2, "checkpoint_seconds": 0}
    flags |= {"task": ["digits,requests=4", "digits,requests=4,name=two"], "eval_every": 1}

    def settings(name, workers):
        return Config.from_flags("fedast", **flags, workers=workers, out=tmp_path / name)

    whole = wirelessfl.run(settings("whole", 1))
    with pytest.raises(KeyboardInterrupt):
        wirelessfl.run(settings("stopped", 2), on_row=halt_at(0))
    for module in (computing, executors):
        monkeypatch.setattr(module, "cores", lambda: 1)
    resumed = wirelessfl.resume(tmp_path / "stopped")
    assert bare(resumed.rows) == bare(whole.rows)


@pytest.mark.thorough
def test_processes_import_nothing_from_the_current_folder(tmp_path, launcher):
    """A folder of somebody else may contain files named like modules of Python."""
    for name in ("multiprocessing", "torch", "signal"):
        code = f"open({str(tmp_path / 'marker')!r}, 'w').close()\nraise ImportError\n"
        (tmp_path / f"{name}.py").write_text(code)
    words = ["run", "fedavg", "--clients", "4", "--rounds", "1", "--local-steps", "1"]
    words += ["--threads", "1", "--workers", "2", "--out", "run"]
    process = launcher.start(*words, cwd=tmp_path, safe_path=True)
    assert process.wait() == 0, process.communicate()[1]
    assert "workers = 2" in (tmp_path / "run" / "config.toml").read_text()
    assert not (tmp_path / "marker").exists()
