"""Start commands in separate processes without the delay of importing everything.

``python -m tests.launching`` imports the modules that runs need by executing a run, and then forks
a process for each command that it reads from standard input, one line of JSON per command. Such a
process behaves like one started by a shell: it has a process id, can be killed, and writes its
output to files. Fork servers that it starts are forked as well, so they need not import PyTorch.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import runpy
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import redirect_stderr, redirect_stdout
from functools import partial
from multiprocessing import util
from pathlib import Path
from typing import Any

from tests.quick import fewer_steps
from wirelessfl.training.workers.processes import forked

ROOT = Path(__file__).parents[1]
IMPORTED = (
    "torch.func",
    "torch._dynamo",  # imported by the first gradient of torch.func
    "scipy.optimize",
    "matplotlib.figure",
    "rich.progress",
    "rich.table",
    "sklearn.datasets",
    "wirelessfl.cli",
    "wirelessfl.runs.run",
    "wirelessfl.runs.sweep",
    "wirelessfl.runs.engine",
)
"""Modules that most commands import."""
WARM_UP = (
    *("run", "hist", "--clients", "2", "--cells", "2", "--rounds", "1", "--local-steps", "1"),
    *("--edge-rounds", "1", "--chunk", "2", "--threads", "1", "--workers", "1"),
)
"""A run that imports the other modules, and finds the choices and their flags."""


def wait_until(condition: Callable[[], object], seconds: float = 60.0) -> None:
    """Wait until a condition is true; fail after ``seconds``."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "the condition was not met in time"
        time.sleep(0.005)


def wait_for_rows(folder: Path, rows: int, process: Launched) -> None:
    """Wait until a run has written ``rows`` rows; fail if ``process`` ends earlier."""
    file = folder / "rows.jsonl"

    def written() -> bool:
        assert process.poll() is None, "the run ended before it could be killed"
        return file.exists() and file.read_bytes().count(b"\n") >= rows

    wait_until(written, 120)


def holder(file: Path) -> int:
    """Id of the process that has ``file`` open, such as the configuration that a run locks."""
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if str(file) in {os.readlink(fd) for fd in (entry / "fd").iterdir()}:
                return int(entry.name)
        except OSError:  # belongs to another user, or has ended
            continue
    raise AssertionError(f"no process has {file} open")


class Launched:
    """A process with an interface like that of ``subprocess.Popen``.

    Args:
        launcher: the launcher that started it.
        pid: its process id.
        streams: files of its standard output and standard error.
    """

    def __init__(self, launcher: Launcher, pid: int, streams: Sequence[Path]) -> None:
        self.launcher = launcher
        self.pid = pid
        self.streams = streams

    def poll(self) -> int | None:
        """Its exit code, or minus the number of the signal that ended it; None if it is running."""
        self.launcher.listen(0.0)
        return self.launcher.ended.get(self.pid)

    def wait(self, timeout: float = 300.0) -> int:
        """Wait for the process to end; returns its exit code."""
        end = time.monotonic() + timeout
        while (code := self.poll()) is None:
            assert time.monotonic() < end, f"process {self.pid} is still running"
            self.launcher.listen(1.0)
        return code

    def send_signal(self, number: int) -> None:
        """Send a signal, unless the process has ended."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        """Kill the process."""
        self.send_signal(signal.SIGKILL)

    def communicate(self, timeout: float = 300.0) -> tuple[str, str]:
        """Wait for the process to end; returns its standard output and standard error."""
        self.wait(timeout)
        out, errors = (stream.read_text(encoding="utf-8") for stream in self.streams)
        return out, errors


class Launcher:
    """Starts processes by asking a server process to fork.

    Args:
        folder: folder for the output of the processes.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.ended: dict[int, int] = {}
        self.pids: list[int] = []
        path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
        self.server = subprocess.Popen(
            [sys.executable, "-m", __name__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=ROOT,
            env={"MPLBACKEND": "agg", **os.environ, "PYTHONPATH": path},
        )
        self.count = 0
        self.rest = b""

    def start(
        self,
        *words: object,
        module: str = "wirelessfl",
        script: Path | None = None,
        cwd: Path | None = None,
        environment: Mapping[str, str] | None = None,
        session: bool = False,
        safe_path: bool = False,
    ) -> Launched:
        """Start ``python -m MODULE WORDS``, or ``python SCRIPT WORDS``.

        Args:
            words: arguments of the command.
            module: module to run.
            script: file to run instead of a module.
            cwd: working directory; None for that of the tests.
            environment: environment variables to add.
            session: whether to start a new session, and with it a process group.
            safe_path: as with ``python -P``, modules are not imported from the working directory;
                fork servers are started as usual.
        """
        self.count += 1
        streams = [self.folder / f"{self.count}-{name}" for name in ("out", "errors")]
        request = {
            "words": [str(word) for word in words],
            "module": module,
            "script": None if script is None else str(script),
            "cwd": str(cwd or Path.cwd()),
            "environment": dict(environment or {}),
            "session": session,
            "safe_path": safe_path,
            "streams": [str(stream) for stream in streams],
        }
        assert self.server.stdin is not None
        self.server.stdin.write(json.dumps(request).encode() + b"\n")
        self.server.stdin.flush()
        known = len(self.pids)
        end = time.monotonic() + 300
        while len(self.pids) == known:
            assert time.monotonic() < end, "no process was started"
            self.listen(1.0)
        return Launched(self, self.pids[-1], streams)

    def listen(self, seconds: float) -> None:
        """Read which processes have started and ended; waits up to ``seconds`` for news."""
        assert self.server.stdout is not None
        file = self.server.stdout.fileno()
        if not select.select([file], [], [], seconds)[0]:
            return
        some = os.read(file, 1 << 16)
        assert some, "the server process has ended"
        *lines, self.rest = (self.rest + some).split(b"\n")
        for line in lines:
            what, pid, *code = line.decode().split()
            if what == "started":
                self.ended.pop(int(pid), None)  # process ids are reused
                self.pids.append(int(pid))
            else:
                self.ended[int(pid)] = int(code[0])

    def close(self) -> None:
        """End the server process and the processes that it started."""
        assert self.server.stdin is not None
        assert self.server.stdout is not None
        self.server.stdin.close()
        self.server.wait(60)
        self.server.stdout.close()


def _notify(what: str, *numbers: int) -> None:
    os.write(1, (" ".join([what, *map(str, numbers)]) + "\n").encode())


def _serve() -> dict[str, Any] | None:
    """Fork for every request; returns the request in the new process, None when input ends."""
    hear, woken = os.pipe()
    os.set_blocking(woken, False)
    signal.set_wakeup_fd(woken)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    rest, at_work = b"", set[int]()
    while True:
        ready = select.select([0, hear], [], [])[0]
        if hear in ready:
            os.read(hear, 1 << 10)
            for pid in list(at_work):
                done, status = os.waitpid(pid, os.WNOHANG)
                if done:
                    at_work.remove(pid)
                    _notify("ended", pid, os.waitstatus_to_exitcode(status))
        if 0 not in ready:
            continue
        some = os.read(0, 1 << 16)
        if not some:
            for pid in at_work:
                os.kill(pid, signal.SIGKILL)
            return None
        *lines, rest = (rest + some).split(b"\n")
        for line in lines:
            pid = os.fork()
            if pid == 0:
                os.close(hear)
                os.close(woken)
                request: dict[str, Any] = json.loads(line)
                return request
            at_work.add(pid)
            _notify("started", pid)


def _become(request: Mapping[str, Any]) -> None:
    """Run the command of a request in the new process, as the interpreter would."""
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)  # tests under nohup ignore it
    if request["session"]:
        os.setsid()
    for number, name in enumerate([os.devnull, *request["streams"]]):
        file = os.open(name, os.O_RDWR | os.O_CREAT)
        os.dup2(file, number)
        os.close(file)
    os.chdir(request["cwd"])
    os.environ.update(request["environment"])
    if not request["safe_path"]:
        util.spawnv_passfds = partial(forked, util.spawnv_passfds)
    script, sys.argv = request["script"], [request["module"], *request["words"]]
    del sys.path[0]  # that of the server
    if not request["safe_path"]:
        sys.path.insert(0, request["cwd"] if script is None else str(Path(script).parent))
    if script is None:
        runpy.run_module(request["module"], run_name="__main__", alter_sys=True)
    else:
        sys.argv[0] = script
        runpy.run_path(script, run_name="__main__")


def _warm_up() -> None:
    """Execute a short run without output."""
    from wirelessfl.cli import main

    with (
        open(os.devnull, "w") as nowhere,
        redirect_stdout(nowhere),
        redirect_stderr(nowhere),
        tempfile.TemporaryDirectory() as folder,
        fewer_steps(),
    ):
        assert main([*WARM_UP, "--out", str(Path(folder, "run"))]) == 0


if __name__ == "__main__":
    for name in IMPORTED:
        importlib.import_module(name)
    _warm_up()
    gc.freeze()  # a collection would copy memory that the processes share
    os.fsync = lambda file: None  # as in tests/conftest.py
    _received = _serve()
    if _received is not None:
        with fewer_steps():
            _become(_received)
