"""Starts and resumes runs."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, closing, suppress
from dataclasses import asdict
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

from torch import Tensor, nn

from channels import Network
from wirelessfl.config import Config
from wirelessfl.config.named import Trust
from wirelessfl.data import Dataset
from wirelessfl.errors import ConfigError, DataError, TrainingError
from wirelessfl.fork_server import leave_if_child
from wirelessfl.import_paths import short
from wirelessfl.observers import Observer
from wirelessfl.runs.about import about
from wirelessfl.runs.directory import RunDirectory
from wirelessfl.runs.engines import engine_of
from wirelessfl.runs.files import NotWrittenError
from wirelessfl.runs.fingerprints import (
    NAMED,
    check_fingerprint,
    named_change,
    named_hashes,
    settings_fingerprint,
    unnoticed,
)
from wirelessfl.runs.progress import Progress, RowCallback
from wirelessfl.runs.result import RunResult
from wirelessfl.runs.stored_params import stored_params
from wirelessfl.setup import AnySetup, build
from wirelessfl.setup.arguments import check_objects, check_path
from wirelessfl.setup.computing import default_threads, fewer_workers
from wirelessfl.setup.given_objects import GivenObjects, configured
from wirelessfl.training.shards import ALONE, Shards
from wirelessfl.training.torch_settings import torch_settings
from wirelessfl.training.workers import WorkerDiedError


def run(
    config: Config | Mapping[str, Any] | str | Path,
    *,
    model: nn.Module | None = None,
    data: Dataset | None = None,
    network: Network | None = None,
    loss: Callable[..., Tensor] | None = None,
    metrics: Mapping[str, Callable[..., float]] | None = None,
    split: Sequence[Any] | None = None,
    trust: bool = False,
    on_row: RowCallback | None = None,
    on_note: Callable[[str], None] | None = None,
    observers: Sequence[Observer] = (),
    shards: Shards = ALONE,
) -> RunResult:
    """Train with the settings ``config``, and write rows and checkpoints to the run's folder.

    Args:
        config: settings, as a ``Config``, nested tables, or the path of a TOML file.
        model: replaces the configured model; training starts from its weights.
        data: replaces the configured data set.
        network: replaces the configured network. The settings that it replaces must not be given,
            not even with their default values: ``[fading]``, and all of ``[network]`` except
            ``coherence``, ``availability``, ``busy_clients``, ``drop_out``, ``downlink_mbps``,
            ``backhaul_mbps`` and, with shifted-exponential delays, ``step_seconds``.
        loss: replaces the configured loss, see ``wirelessfl.losses``.
        metrics: further metrics of the rows, by name, see ``wirelessfl.metrics``.
        split: indices of the training samples of each client; replaces the configured split.
        trust: whether a TOML file may name code to import, such as ``my_module:MyModel``.
        on_row: called with each row as it is written. An error that it raises ends the run with a
            checkpoint after that row, from which ``resume`` continues.
        on_note: called with each message for the user, one line each.
        observers: see the run's rows and parameters, and may end it, see ``wirelessfl.observers``.
        shards: the processes that share the clients, from ``wirelessfl.training.shards.sharded``
            in a script started by ``torchrun``; the first process writes the folder.

    Raises:
        ConfigError: invalid settings; raised before anything is written.
        DataError: missing or damaged data; raised before anything is written.
        TrainingError: the training of a client failed. If a run fails before its first row after
            the start, its folder is removed.
    """
    leave_if_child()
    check_objects(
        model=model, data=data, network=network, on_row=on_row, on_note=on_note, shards=shards
    )
    given = GivenObjects(model, data, network, loss, metrics, split)
    settings = configured(config, given, trust)
    if isinstance(config, str | Path):  # the file may be from a larger machine
        settings = fewer_workers(settings)
    out = settings.run.out
    if out is not None:
        shards.by_first(partial(RunDirectory.check_free, out))
    with closing(_build(settings, given, shards)) as setup:
        directory = shards.by_first(partial(_directory, setup))
        return _go(setup, directory, on_row, on_note)


def resume(
    path: str | Path,
    *,
    model: nn.Module | None = None,
    data: Dataset | None = None,
    network: Network | None = None,
    loss: Callable[..., Tensor] | None = None,
    metrics: Mapping[str, Callable[..., float]] | None = None,
    split: Sequence[Any] | None = None,
    trust: Trust = False,
    on_row: RowCallback | None = None,
    on_note: Callable[[str], None] | None = None,
    observers: Sequence[Observer] = (),
    shards: Shards = ALONE,
) -> RunResult:
    """Resume the interrupted run in the folder ``path``, or read a finished run.

    Args:
        path: folder of the run.
        model, data, network, loss, metrics, split: the objects that were passed to ``run``, if any.
        trust: whether the run's settings may name code to import, such as ``my_module:MyModel``;
            or the import paths that they may name.
        on_row: called with each new row.
        on_note: called with each message for the user, one line each.
        observers: as for ``run``.
        shards: as for ``run``; the number of processes may differ from before.

    Raises:
        ConfigError: the folder is not a run directory or is damaged, its settings or the given
            objects differ from those of the original run, or another process is using it; it names
            code without being trusted; or code or files that the settings of an unfinished run name
            have changed. Of a finished run, a note says that they have.
    """
    leave_if_child()
    check_path(path)
    check_objects(
        model=model, data=data, network=network, on_row=on_row, on_note=on_note, shards=shards
    )
    directory, config = shards.by_first(partial(RunDirectory.open, Path(path), trust))
    checkpoint = shards.by_first(directory.load)
    changed = shards.by_first(partial(named_change, directory, config))
    if checkpoint is None:
        if on_note is not None:
            on_note(f"{path} has no checkpoint: the run starts from the beginning")
    else:  # the checks need no data and no device
        tensors, state = checkpoint
        shards.by_first(
            lambda: check_fingerprint(directory, state, settings_fingerprint(directory))
        )
        rows = shards.by_first(lambda: directory.check_rows(state))
        if state["finished"]:
            if changed and on_note is not None:
                on_note(f"{changed} has changed since this run; its rows are of the old version.")
            params = stored_params(tensors, state, titled=bool(config.task))
            return RunResult(config, rows, params, directory.path, state.get("ended"))
        shards.by_first(lambda: directory.check_logs(tensors, titled=bool(config.task)))
    shards.by_first(directory.about)
    if changed:
        raise ConfigError(
            f"{path}: {changed} has changed since the run began. Restore it, or start a new run: "
            f"{directory.command}{_trusting(config)}"
        )
    given = GivenObjects(model, data, network, loss, metrics, split)
    if config.given.names != given.marks.names:
        began = ", ".join(f"{name}=..." for name in config.given.names) or "no objects"
        raise ConfigError(
            f"the run in {path} was started by wirelessfl.run with {began}, but resume got "
            f"{', '.join(f'{name}=...' for name in given.marks.names) or 'no objects'}: give the "
            "same arguments."
        )
    with closing(_build(fewer_workers(config), given, shards)) as setup:
        return _go(setup, directory, on_row, on_note, resumed=True)


def _trusting(config: Config) -> str:
    """The flag that a command needs to read these settings from a file."""
    return " --trust" if config.code else ""


def _build(config: Config, given: GivenObjects, shards: Shards) -> AnySetup:
    """Build the setup in every process, with the settings resolved by the first process."""
    setup: AnySetup | None = None
    error: Exception | None = None
    for leading in (True, False):
        if leading == (shards.rank == 0) and error is None:
            try:
                with torch_settings(default_threads(config.run)):
                    setup = build(config, **vars(given), shards=shards)
                    setup.start_workers()
            except (ConfigError, DataError, TrainingError) as caught:
                error = caught
        if leading and shards.count > 1:
            settled, error = shards.from_first((setup.config.run if setup else None, error))
            config = config if settled is None else config.settled(dict(settled))
    failed = next((caught for caught in shards.all(error) if caught is not None), None)
    if failed is not None:
        if setup is not None:
            setup.close()
        raise failed
    assert setup is not None
    return setup


def _directory(setup: AnySetup) -> RunDirectory:
    """Create the folder of a new run."""
    config, entries = setup.config, _about_setup(setup)
    if config.run.out is not None:
        return RunDirectory.create(config.run.out, config, entries=entries)
    return _new_directory(config, entries)


def _about_setup(setup: AnySetup) -> dict[str, Any]:
    """Entries of ``about.json``: how the data of each task were verified, and further ones.

    Step costs have one entry per model, null if not counted; without any, they are left out, and so
    are hashes if the settings name no code and no files.
    """
    entries: dict[str, Any] = {
        "data": {
            task: model.data.verification
            for task, model in zip(setup.config.tasks, setup.models, strict=True)
        }
    }
    costs = [model.step_cost for model in setup.models]
    if any(costs):
        entries["step_costs"] = [None if cost is None else asdict(cost) for cost in costs]
    hashes = named_hashes(setup.config)
    if hashes:
        entries[NAMED] = hashes
    return entries


def _new_directory(config: Config, entries: Mapping[str, Any]) -> RunDirectory:
    """Create a new folder below ``runs/`` that no other process uses."""
    stamp = datetime.now().strftime("%Y%m%d-%H%M%S")
    data = "+".join(dict.fromkeys(task.data.title for task in config.tasks.values()))
    name = re.sub(r"[^\w.+-]", ".", f"{short(config.algorithm['name'])}-{data}-{stamp}")
    for number in itertools.count(1):
        path = Path("runs", name if number == 1 else f"{name}-{number}")
        with suppress(FileExistsError):
            return RunDirectory.create(path, config, new=True, entries=entries)
    raise AssertionError("unreachable: the loop over names does not end")


def _go(
    setup: AnySetup,
    directory: RunDirectory,
    on_row: RowCallback | None,
    on_note: Callable[[str], None] | None,
    *,
    resumed: bool = False,
) -> RunResult:
    """Execute the run to its end, from the folder's checkpoint or from the start."""
    shards, engine = setup.shards, engine_of(setup)
    with ExitStack() as stack:
        shards.by_first(lambda: stack.enter_context(directory.at_work()))
        try:
            progress = Progress(engine, directory, on_row, on_note)
        except NotWrittenError:
            raise
        except Exception:  # a user's schedule or attendance may fail in its first snapshot
            if not resumed and shards.rank == 0:
                directory.remove()
            raise
        if resumed:
            shards.by_first(lambda: directory.note_resumed(about(setup.config.run.device)))
        if not progress.finished:
            for note in [*setup.notes, *unnoticed(setup.config)]:
                if on_note is not None:
                    on_note(note)
            try:
                progress.run()
            except BaseException as error:
                kept = resumed or progress.resumable or isinstance(error, NotWrittenError)
                lost = isinstance(error, (KeyboardInterrupt, WorkerDiedError))
                if error is progress.ending or lost:
                    command = f"wirelessfl resume {directory.path}{_trusting(setup.config)}"
                    if on_note is not None:
                        with suppress(Exception):  # the terminal may be closed
                            on_note(f"interrupted; to resume: {command}")
                elif isinstance(error, Exception) and not kept and progress.leads:
                    directory.remove()  # otherwise it would block the next run in this folder
                raise
    rows = shards.by_first(directory.rows)
    return RunResult(setup.config, rows, engine.params(), directory.path, engine.ended())
