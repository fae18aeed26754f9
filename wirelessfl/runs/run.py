"""Starts and resumes runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, closing, suppress
from functools import partial
from pathlib import Path
from typing import Any, Unpack

from channels.notes import Notes
from wirelessfl.base.errors import ConfigError, DataError, TrainingError
from wirelessfl.base.files import NotWrittenError
from wirelessfl.base.torch_state import own_modes, torch_settings
from wirelessfl.config import Config
from wirelessfl.config.named import Trust
from wirelessfl.runs.build.building import build_resolved
from wirelessfl.runs.build.computing import default_threads, fewer_workers, without_gpu
from wirelessfl.runs.build.configured import (
    check_given,
    check_network_name,
    configured_call,
    path_of_run,
)
from wirelessfl.runs.build.given import Given, GivenObjects, check_objects
from wirelessfl.runs.build.setups import Setup
from wirelessfl.runs.engine import Engine
from wirelessfl.runs.execution import Execution, RowCallback
from wirelessfl.runs.extension import extended, later_end
from wirelessfl.runs.folder.about import about
from wirelessfl.runs.folder.given_files import not_stored, with_stored
from wirelessfl.runs.folder.identity import code_hashes, setup_hashes
from wirelessfl.runs.folder.named_files import difference, named_hashes, unnoticed
from wirelessfl.runs.folder.new_folder import check_free, new_folder
from wirelessfl.runs.folder.parameters import stored_params
from wirelessfl.runs.folder.run_folder import RunFolder
from wirelessfl.runs.observers import Observer, default_observers
from wirelessfl.runs.observers.watching import check_observers, configured_observers
from wirelessfl.runs.result import RunResult
from wirelessfl.training.workers.processes import leave_if_child
from wirelessfl.training.workers.shards import ALONE, Shards
from wirelessfl.training.workers.worker import WorkerDiedError


@own_modes
def run(
    config: Config | Mapping[str, Any] | str | Path,
    *,
    trust: bool = False,
    on_row: RowCallback | None = None,
    on_note: Callable[[str], None] | None = None,
    observers: Sequence[Observer] = (),
    shards: Shards = ALONE,
    **given: Unpack[Given],
) -> RunResult:
    """Train with the settings ``config``, and write rows and checkpoints to the run's folder.

    >>> import wirelessfl
    >>> settings = wirelessfl.Config.from_flags("fedavg", clients=4, rounds=2, out="my-run")
    >>> [row["round"] for row in wirelessfl.run(settings).rows]
    [0, 1, 2]

    Args:
        config: settings, as a ``Config``, nested tables, or the path of a TOML file.
        trust: whether a TOML file may name code to import, such as ``my_module:MyModel``.
        on_row: called with each row as it is written. An error that it raises ends the run with a
            checkpoint after that row, from which ``resume`` continues.
        on_note: called with each message for the user, one line each; None to warn of notes with
            the class ``wirelessfl.Note``. They are also stored, see ``RunResult.notes``.
        observers: see the run's rows and parameters, and may end it, see ``wirelessfl.observers``.
            In a notebook, ``Console`` is one of them by default.
        shards: the processes that share the clients, from
            ``wirelessfl.extend.sharded`` in a script started by ``torchrun``; the first process
            writes the folder.
        given: objects that replace settings: ``model``, ``data``, ``network``, ``loss``,
            ``metrics``, ``split``, ``redesign``, ``augment``, ``trainer``, see
            ``wirelessfl.Given``.

    Raises:
        ConfigError: invalid settings; raised before anything is written.
        DataError: missing or damaged data; raised before anything is written.
        TrainingError: the training of a client failed. If a run fails before its first row after
            the start, its folder is removed.
    """
    leave_if_child()
    check_objects(on_row=on_row, on_note=on_note, shards=shards)
    check_observers(observers)
    from_file = isinstance(config, str | Path)
    settings, objects = configured_call(run, config, given, trust)
    watching = _watching(settings, observers)
    if from_file:  # it may be from a larger machine
        settings = fewer_workers(settings)
    out = settings.run.out
    if out is not None:
        shards.by_first(partial(check_free, out))
    hashes = code_hashes(objects)  # before anything is called
    with closing(_build(settings, objects, shards)) as setup:
        notes = [*setup.notes, *unnoticed(setup.config), *not_stored(objects)]
        shards.by_first(lambda: Notes(on_note)(*notes))  # before anything is written
        directory = shards.by_first(partial(new_folder, settings, setup, objects, hashes, notes))
        return _go(setup, directory, on_row, on_note, watching)


@own_modes
def resume(
    path: str | Path | RunResult,
    *,
    rounds: int | None = None,
    target: float | None = None,
    max_seconds: float | None = None,
    trust: Trust = False,
    on_row: RowCallback | None = None,
    on_note: Callable[[str], None] | None = None,
    observers: Sequence[Observer] = (),
    shards: Shards = ALONE,
    **given: Unpack[Given],
) -> RunResult:
    """Resume the interrupted run in the folder ``path``, or read or extend a finished run.

    With a later end, the run continues to it, and equals a run that was started with it, bit for
    bit. Only synchronous rounds without sessions can be extended.

    >>> import wirelessfl
    >>> settings = wirelessfl.Config.from_flags("fedavg", clients=4, rounds=2, out="my-other-run")
    >>> result = wirelessfl.run(settings)
    >>> wirelessfl.resume("my-other-run").rows == result.rows  # a finished run is only read
    True

    Args:
        path: folder of the run, or its result.
        rounds: new number of rounds; an end that the run already has changes nothing.
        target: new value of the monitored field, by default the accuracy, at which the run ends.
        max_seconds: new limit on simulated seconds.
        trust: whether the run's settings may name code to import, such as ``my_module:MyModel``;
            or the import paths that they may name.
        on_row: called with each new row.
        on_note: as for ``run``.
        observers: as for ``run``.
        shards: as for ``run``; the number of processes may differ from before.
        given: the objects that were passed to ``run``, if any, see ``wirelessfl.Given``. The
            folder keeps a split, and most networks.

    Raises:
        ConfigError: the folder is not a run directory or is damaged, its settings or the given
            objects differ from those of the original run, or another process is using it; it names
            code without being trusted; code or files that the settings of an unfinished run name
            have changed; or the run cannot be extended to the given end. Of a finished run, a note
            says that they have changed, or that nothing is left to do.
    """
    leave_if_child()
    path = path_of_run(path.directory if isinstance(path, RunResult) else path)
    check_objects(on_row=on_row, on_note=on_note, shards=shards)
    check_observers(observers)
    objects = GivenObjects.of(resume, given)
    directory, config = shards.by_first(partial(RunFolder.open, path, trust))
    checkpoint = shards.by_first(directory.load)
    named = shards.by_first(partial(named_hashes, config))
    later = later_end(config, rounds=rounds, target=target, max_seconds=max_seconds)
    notes = Notes(on_note if shards.rank == 0 else lambda note: None)
    if checkpoint is None:
        notes(f"{path} has no checkpoint: the run starts from the beginning")
    else:  # the checks need no data and no device
        tensors, state = checkpoint
        rows = shards.by_first(lambda: directory.rows(state))
        if state["finished"] and not later:
            changed = shards.by_first(lambda: difference(directory.about(), named)) if named else ""
            if changed:
                notes(f"{changed} has changed since this run; its rows are from the old version.")
            elif on_note is not None and shards.rank == 0:
                on_note(f"the run in {path} has finished: nothing is left to do")
            params = stored_params(directory, tensors, state, titled=bool(config.task))
            ended, stored = state.get("ended"), directory.notes()
            return RunResult(config, rows, params, directory.path, ended, notes=stored)
        shards.by_first(lambda: directory.check_logs(tensors, titled=bool(config.task)))
    watching = _watching(config, observers)
    began = shards.by_first(directory.about)
    if later:
        config, store = shards.by_first(partial(extended, directory, config, checkpoint, later))
    check_network_name(config, given.get("network"))
    objects = with_stored(directory, config, objects, shards)
    check_given(config.given, objects)
    others = [f"{name}=..." for name in objects.marks.names if name not in config.given.names]
    if isinstance(given.get("network"), str) and config.network.network is None:
        others.append("network=...")
    if others:
        raise ConfigError(
            f"resume got {', '.join(others)}, without which the run in {path} was started: leave "
            f"{'it' if len(others) == 1 else 'them'} out."
        )
    _check_same(directory, config, began, {**named, **code_hashes(objects)})
    config, moved = without_gpu(fewer_workers(config))
    if moved is not None:
        notes(moved)
    with closing(_build(config, objects, shards)) as setup:
        shards.by_first(lambda: _check_same(directory, config, began, setup_hashes(setup)))
        if later:
            shards.by_first(store)
        again = [*setup.notes, *unnoticed(setup.config)]
        notes(*again)
        return _go(setup, directory, on_row, on_note, watching, resumed=again)


def _check_same(
    directory: RunFolder, config: Config, began: Mapping[str, Any], now: Mapping[str, Any]
) -> None:
    """Check that hashes are those of the time when the run began."""
    what = difference(began, now)
    if what:  # a command cannot start a run with given objects
        command = "." if config.given.names else f": {directory.command}{_trusting(config)}"
        raise ConfigError(
            f"{directory.path}: {what} has changed since the run began. Restore it, or start a new "
            f"run{command}"
        )


def _watching(config: Config, observers: Sequence[Observer]) -> list[Observer]:
    """The observers of a run: those of its settings first, and last those that show it."""
    return [*configured_observers(config), *observers, *default_observers(observers)]


def _trusting(config: Config) -> str:
    return " --trust" if config.code else ""


def _build(config: Config, objects: GivenObjects, shards: Shards) -> Setup:
    """Build the setup in every process, with the settings resolved by the first process."""
    setup: Setup | None = None
    error: Exception | None = None
    for leading in (True, False):
        if leading == (shards.rank == 0) and error is None:
            try:
                with torch_settings(default_threads(config.run)):
                    setup = build_resolved(config, objects, shards)
                    setup.start_workers()
            except (ConfigError, DataError, TrainingError) as caught:
                error = caught
        if leading and shards.count > 1:
            settled, error = shards.from_first((setup.config.run if setup else None, error))
            config = config if settled is None else config.with_run(vars(settled))
    failed = next((caught for caught in shards.all(error) if caught is not None), None)
    if failed is not None:
        if setup is not None:
            setup.close()
        raise failed
    assert setup is not None
    return setup


def _go(
    setup: Setup,
    directory: RunFolder,
    on_row: RowCallback | None,
    on_note: Callable[[str], None] | None,
    observers: Sequence[Observer],
    *,
    resumed: Sequence[str] | None = None,
) -> RunResult:
    """Execute the run to its end, from the folder's checkpoint or from the start."""
    shards, engine = setup.shards, Engine(setup)
    with ExitStack() as stack:
        shards.by_first(lambda: stack.enter_context(directory.at_work()))
        try:
            execution = Execution(engine, directory, on_row, on_note, observers)
        except NotWrittenError:
            raise
        except Exception:  # a user's schedule or attendance may fail in its first snapshot
            if resumed is None and shards.rank == 0:
                directory.remove()
            raise
        if resumed is not None:
            entry = about(setup.config.run.device)
            shards.by_first(lambda: directory.note(*resumed, resumed=entry))
        if not execution.finished:
            try:
                execution.run()
            except BaseException as error:
                made = resumed is not None or execution.resumable or execution.finished
                kept = made or isinstance(error, NotWrittenError)
                lost = isinstance(error, (KeyboardInterrupt, WorkerDiedError))
                if error is execution.ending or lost:
                    command = f"wirelessfl resume {directory.path}{_trusting(setup.config)}"
                    if on_note is not None:
                        with suppress(Exception):  # the terminal may be closed
                            on_note(f"interrupted; to resume: {command}")
                elif isinstance(error, Exception) and not kept and execution.leads:
                    directory.remove()  # otherwise it would block the next run in this folder
                raise
    rows, ended, stored = shards.by_first(
        lambda: (directory.rows(), execution.ended, directory.notes())
    )
    return RunResult(setup.config, rows, engine.params(), directory.path, ended, notes=stored)
