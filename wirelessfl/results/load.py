"""Reads stored runs, also unfinished ones, without training and without changing their folders."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable, Iterator
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any

import torch

from wirelessfl.base.errors import ConfigError
from wirelessfl.base.files import DAMAGE, why
from wirelessfl.base.import_paths import expanded
from wirelessfl.base.wording import shown
from wirelessfl.config import Config
from wirelessfl.config.named import Trust
from wirelessfl.results.runs import Runs
from wirelessfl.runs.build.configured import path_of_run
from wirelessfl.runs.folder.parameters import is_server_model, stored_params
from wirelessfl.runs.folder.run_folder import RunFolder
from wirelessfl.runs.result import RunResult

RUN_FILES = frozenset(("config.toml", "about.json"))
"""Files of every run; a user's own ``config.toml`` is not a run."""
PathOrName = str | PathLike[str]


def load(path: PathOrName, *, trust: Trust = False) -> RunResult:
    """Read the run in a folder: finished, interrupted, or training now.

    Nothing is trained, written or imported, and no data are needed. An incomplete last line of rows
    is ignored.

    >>> import wirelessfl
    >>> settings = wirelessfl.Config.from_flags("fedavg", clients=4, rounds=2, out="my-stored-run")
    >>> rows = wirelessfl.run(settings).rows
    >>> stored = wirelessfl.load("my-stored-run")
    >>> stored.finished, stored.rows == rows
    (True, True)

    Args:
        path: folder of the run.
        trust: whether the settings may name code to import, such as ``my_module:MyModel``; only
            ``config`` and ``model()`` of the result need it.

    Returns:
        The run. ``finished`` says whether it has ended; the parameters are those of its last
        checkpoint, read when they are first used.

    Raises:
        ConfigError: the folder is not a run directory, a file is damaged, or the rows are of
            another version.
    """
    folder = path_of_run(path)
    if not RunFolder.holds_run(folder):
        below = sum(1 for _ in _below(folder))
        number = "1 run" if below == 1 else f"{below} runs"
        more = f" It contains {number}: name one, or use wirelessfl.load_all." if below else ""
        raise ConfigError(
            f"{folder} is not a run directory (no config.toml).{more or ' Give a run folder.'}"
        )
    directory = RunFolder(folder)
    state = directory.state()  # before the rows, which only grow
    rows = directory.rows()
    if state is not None:
        directory.check_rows(state)
    tables = directory.tables(state)
    config: Any = partial(_config, folder, trust)
    params: Any = partial(_params, folder, bool(tables.get("task")))
    run = RunResult(
        config=config,
        rows=rows,
        params=params,
        directory=folder,
        exhausted=None if state is None else state.get("ended"),
        finished=state is not None and bool(state["finished"]),
        tables=tables,
        notes=directory.notes(),
    )
    try:  # whatever shows the run needs these
        _ = run.label, run.ended, run.total_rounds, rows and run.summary()
    except ConfigError:
        pass  # raised where the field is read
    except DAMAGE as error:
        raise ConfigError(
            f"{folder}: its rows are not those of its settings ({why(error)}). Restore it."
        ) from error
    return run


def load_all(paths: PathOrName | Iterable[PathOrName], *, trust: Trust = False) -> Runs:
    """Read all runs at some paths.

    >>> import wirelessfl
    >>> configs = wirelessfl.combinations("fedavg", {"clients": 4, "rounds": 1, "seed": [1, 2]})
    >>> _ = wirelessfl.sweep(configs, root="my-stored-runs")
    >>> wirelessfl.load_all("my-stored-runs")
    2 runs: fedavg on digits; 2 seeds

    Args:
        paths: a folder of a run; a folder that contains run folders at any depth, such as that of
            a sweep; a pattern such as ``"runs/hist-*"``; or several of them.
        trust: as for ``load``.

    Returns:
        The runs, each once, in the order of the paths; those below one folder by name.

    Raises:
        ConfigError: a path has no run, or a run cannot be read.
    """
    return Runs([load(folder, trust=trust) for folder in run_folders(paths)])


def run_folders(paths: PathOrName | Iterable[PathOrName]) -> list[Path]:
    """The run folders at some paths, see ``load_all``."""
    if isinstance(paths, str | PathLike):
        paths = [paths]
    elif not isinstance(paths, Iterable):
        raise ConfigError(f"paths is {shown(paths)}: give a folder, a pattern, or several of them.")
    folders: dict[Path, Path] = {}
    for path in paths:
        matches = list(_matching(path_of_run(path)))
        if not matches:
            where = "does not exist" if not os.path.exists(expanded(path)) else "contains no run"
            raise ConfigError(
                f"{path} {where}. Give a run folder, a folder of run folders, or a pattern such as "
                "'runs/*'."
            )
        for folder in matches:
            folders.setdefault(folder.resolve(), folder)
    return list(folders.values())


def _matching(path: Path) -> Iterator[Path]:
    """Run folders at a path or at the matches of a pattern."""
    if os.path.exists(path):
        yield from _below(path)
    else:
        for match in sorted(glob.glob(str(path), recursive=True)):
            yield from _below(Path(match))


def _below(folder: Path) -> Iterator[Path]:
    """The folder itself if it is that of a run; else the run folders below it, by name."""
    for place, folders, files in os.walk(folder):
        if RUN_FILES.issubset(files):
            folders.clear()
            yield Path(place)
        folders[:] = sorted(name for name in folders if not name.startswith("."))


def _config(folder: Path, trust: Trust) -> Config:
    return RunFolder.open(folder, trust)[1]


def _params(folder: Path, titled: bool) -> dict[str, torch.Tensor]:
    directory = RunFolder(folder)
    checkpoint = directory.load(is_server_model)
    if checkpoint is None:
        raise ConfigError(f"the run in {folder} has no checkpoint yet, so no parameters.")
    return stored_params(directory, *checkpoint, titled=titled)
