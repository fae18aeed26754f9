"""Processes of a run: cores, memory, and the server that children are forked from.

On Linux children are forked from a server process that has done their imports. It can be started
early, e.g. while data are loading. Without it children are spawned, and each of them imports
PyTorch and this package again, which takes seconds.
"""

from __future__ import annotations

import ast
import ctypes
import gc
import multiprocessing
import os
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from multiprocessing import util
from multiprocessing.process import BaseProcess
from pathlib import Path
from types import ModuleType
from typing import Any

from channels.concurrency import SharedContext, process_state
from wirelessfl.base.errors import ConfigError
from wirelessfl.base.signals import ignored


def cores() -> int:
    """Number of CPU cores that this process can use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def from_standard_input() -> bool:
    """Whether the main program was read from standard input, so that children cannot import it."""
    file = getattr(__import__("__main__"), "__file__", None)
    return file is not None and not Path(file).is_file()


def end_with_parent() -> None:
    """Exit this process immediately when its parent process ends."""

    def watch() -> None:
        parent = multiprocessing.parent_process()
        if parent is not None:
            parent.join()
            os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


PRELOADED = tuple(
    f"wirelessfl.training.{name}" for name in ("workers.worker", "stacked", "module_executors")
)
"""Modules that workers of a run import."""
OF_RUNS = ("wirelessfl.runs.kept", "wirelessfl.runs.build.trained_parts")
"""Modules that processes of a sweep import besides."""
CHILD = "wirelessfl child"
"""Name of child processes."""
UNGUARDED_CODE = 77
"""Exit code of a child process whose script starts children when it is imported."""


def unguarded(instead: str) -> str:
    """The message for a script that starts children when it is imported.

    Args:
        instead: the setting that needs no child processes.
    """
    return (
        "child processes could not start, because each of them imports your script again: put the "
        f'code that starts them below `if __name__ == "__main__":`, or choose {instead}.'
    )


def broken(instead: str) -> str:
    """The message for child processes that cannot start, see ``unguarded``."""
    return (
        "child processes could not start; their error is printed above. Check that they can import "
        f"everything that the model and the algorithm need, or choose {instead}."
    )


def start(process: BaseProcess, instead: str) -> None:
    """Start a child process.

    Args:
        process: the process.
        instead: see ``unguarded``.

    Raises:
        ConfigError: it cannot start.
    """
    try:
        with safe_path():
            process.start()
    except (RuntimeError, EOFError, OSError) as error:
        raise ConfigError(broken(instead)) from error


def check_guarded(instead: str) -> None:
    """Refuse to start children of a script that has no guard, without waiting for one to fail.

    A script that never names ``__name__`` has none.

    Raises:
        ConfigError: see ``unguarded``.
    """
    script = sys.modules.get("__main__")
    name = getattr(getattr(script, "__spec__", None), "name", None) or ""
    file = getattr(script, "__file__", None)
    if file is None or name.endswith(".__main__"):  # children do not import it
        return
    with suppress(OSError):
        if "__name__" not in Path(file).read_text(encoding="utf-8", errors="replace"):
            raise ConfigError(unguarded(instead))


def leave_if_child() -> None:
    """Exit if this process is a child that is importing the script that starts children."""
    process = multiprocessing.current_process()
    if process.name == CHILD and getattr(process, "_inheriting", False):
        os._exit(UNGUARDED_CODE)


def forked(new: Callable[..., int], path: Any, words: Sequence[Any], files: Sequence[int]) -> int:
    """``multiprocessing.util.spawnv_passfds``, which forks the process that becomes a fork server.

    Args:
        new: the original function, which starts all other programs.
        path: the interpreter.
        words: its command line; the last word is the program.
        files: descriptors that the program needs.
    """
    if not str(words[-1]).startswith("from multiprocessing.forkserver import main"):
        return new(path, words, files)
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.flush()  # otherwise children would write it again
    if pid := os.fork():
        return pid
    try:
        begun = 3  # a new program has no other files than those passed
        for file in sorted(files):
            if file > begun:
                os.closerange(begun, file)
            begun = max(begun, file + 1)
        os.closerange(begun, os.sysconf("SC_OPEN_MAX"))
        from multiprocessing import forkserver  # not on Windows

        # Its children may start a fork server of their own: by a program, as they have threads. The
        # lock is held here while the parent starts this process.
        fork_server.forked = False
        server: Any = forkserver._forkserver
        server._lock = threading.Lock()
        sys.modules["__main__"] = ModuleType("__main__")
        call: Any = ast.parse(str(words[-1])).body[-1]  # main(listener, alive, preload, **data)
        named: dict[str, Any] = {}
        for word in call.value.keywords:
            value = ast.literal_eval(word.value)
            named |= value if word.arg is None else {word.arg: value}
        forkserver.main(*map(ast.literal_eval, call.value.args), **named)
    except Exception:  # the parent has only a broken pipe
        sys.excepthook(*sys.exc_info())
    finally:
        os._exit(0)


class ForkServer:
    """The process that children are forked from; each process with children has one."""

    def __init__(self) -> None:
        self.owner = 0  # a forked process cannot use its parent's fork server
        self.forked = False
        """Whether the server is forked from this process, with which it then shares its memory."""

    @contextmanager
    def forking(self, safe: bool = True) -> Iterator[None]:
        """Context in which a server that starts is forked from this process.

        Args:
            safe: False for a process that may not fork; with Python threads it does not either.
        """
        self.forked = safe
        try:
            yield
        finally:
            self.forked = False

    def start(self, *modules: str) -> bool:
        """Start the fork server if it is not running; returns False if it is not available.

        Args:
            modules: modules that a new server imports besides ``PRELOADED``.
        """
        if not sys.platform.startswith("linux") or self.owner not in (0, os.getpid()):
            return False
        from multiprocessing import forkserver

        forkserver.set_forkserver_preload([*PRELOADED, *modules])
        try:
            with ignored(), safe_path(), self._by_fork():  # it ends with this process
                forkserver.ensure_running()
        except OSError:  # its socket cannot be created, e.g. because the path is too long
            return False
        self.owner = os.getpid()
        return True

    @contextmanager
    def _by_fork(self) -> Iterator[None]:
        """Start the fork server by a fork instead of a new interpreter, if that is safe."""
        new = util.spawnv_passfds
        if self.forked and threading.active_count() == 1:
            gc.freeze()  # a search for garbage would write to all shared pages
            util.spawnv_passfds = partial(forked, new)
        try:
            yield
        finally:
            util.spawnv_passfds = new

    def context(self, *modules: str) -> Any:
        """The ``multiprocessing`` context that starts children: forked if possible, else spawned.

        Args:
            modules: see ``start``.
        """
        import torch  # not above: every command imports this file

        return torch.multiprocessing.get_context("forkserver" if self.start(*modules) else "spawn")


fork_server = ForkServer()


@contextmanager
def safe_path() -> Iterator[None]:
    """Keep interpreters started inside from searching the current folder, unless this one does.

    Python itself would search it first, e.g. for the modules of the standard library. Other threads
    wait before they start processes.
    """
    with process_state:
        before = os.environ.get("PYTHONSAFEPATH")
        if sys.path[:1] not in ([""], [os.getcwd()]):
            os.environ["PYTHONSAFEPATH"] = "1"
        try:
            yield
        finally:
            if before is None:
                os.environ.pop("PYTHONSAFEPATH", None)
            else:
                os.environ["PYTHONSAFEPATH"] = before


TRIM_THRESHOLD, MMAP_THRESHOLD = -1, -3
"""Parameters of mallopt in glibc."""
DYNAMIC = {TRIM_THRESHOLD: 1 << 26, MMAP_THRESHOLD: 1 << 25}
"""The largest thresholds that glibc sets by itself, once a process has freed large blocks."""
KEEPING = {TRIM_THRESHOLD: (1 << 31) - 1, MMAP_THRESHOLD: 1 << 30}


def keep_freed_memory() -> None:
    """Make malloc keep freed blocks of up to 1 GiB for later use; no effect without glibc.

    By default glibc returns blocks above its thresholds, which grow to at most 32 MiB, and a free
    end of its heap. The kernel then clears each page when it is used again: with activations of a
    few megabytes that takes up to half of the time of a local step.
    """
    _set(KEEPING)


@contextmanager
def _kept() -> Iterator[None]:
    keep_freed_memory()
    try:
        yield
    finally:
        _set(DYNAMIC)
        if (trim := _function("malloc_trim")) is not None:
            trim(0)


freed_memory_kept = SharedContext(_kept)
"""Context in which the process keeps freed memory, which it returns to the system at the end."""


def _set(thresholds: dict[int, int]) -> None:
    if (mallopt := _function("mallopt")) is not None:
        for parameter, value in thresholds.items():
            mallopt(parameter, value)


def _function(name: str) -> ctypes._NamedFuncPointer | None:
    return getattr(ctypes.CDLL(None), name, None) if os.name == "posix" else None
