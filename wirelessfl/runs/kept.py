"""Runs that are executed once, in a folder named by the hash of their settings.

The hash includes the code and files that settings name, so a run of edited code has a new folder.
A run of a sweep that differs only in its radio is not trained: it has the rows of another one.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from channels.notes import of_each_kind
from channels.streams import Stream
from wirelessfl.base.errors import ConfigError, DataError, TrainingError
from wirelessfl.base.files import copy_stored
from wirelessfl.base.import_paths import short
from wirelessfl.config import Config
from wirelessfl.config.choices import TASK_SETTINGS
from wirelessfl.engine.server.ledger import PREFIX as LEDGER
from wirelessfl.runs.folder.about import NOTES
from wirelessfl.runs.folder.identity import (
    SETTINGS,
    network_hash,
    non_defaults,
    settings_hash,
)
from wirelessfl.runs.folder.log import Row
from wirelessfl.runs.folder.named_files import HASHES
from wirelessfl.runs.folder.new_folder import create
from wirelessfl.runs.folder.run_folder import LOGS, PARTITION, InUseError, RunFolder
from wirelessfl.runs.observers import Observer
from wirelessfl.runs.pricing.price import Priced, priced
from wirelessfl.runs.pricing.radio import check_independent, of_radio, repriced
from wirelessfl.runs.result import RunResult
from wirelessfl.runs.run import resume, run

PRICED = "priced_from"
"""Entry of ``about.json`` of a priced run: the name of the folder of the trained run."""


def priced_from(folder: Path) -> str | None:
    """The name of the folder of the trained run; None if this run has been trained itself."""
    try:
        name = RunFolder(folder).about().get(PRICED)
    except ConfigError:
        return None
    return None if name is None else str(name)


def price_run(config: Config, source: Path, folder: Path) -> list[Row]:
    """Store a run as if it had been trained, with the rows of another run over its own radio.

    Args:
        config: its settings.
        source: folder of a finished run that trains the same model.
        folder: its folder, which must not hold a run; it is created whole or not at all.

    Returns:
        Its rows.

    Raises:
        ConfigError: the run must be trained itself.
        DataError: data are missing.
    """
    trained, here = RunFolder.open(source, config.code)
    checkpoint, about = trained.load(), trained.about()
    if checkpoint is None or not checkpoint[1]["finished"]:
        raise ConfigError(f"the run in {source} has not finished.")
    tensors, state = checkpoint
    trained.check_numerics(state)
    there = config.with_run({**vars(here.run), "out": folder})
    prices = repriced(trained.rows(state), here, there)
    simulated = prices.simulated
    cost, notes = simulated.model.step_cost, trained.notes()
    if notes:  # those on model and data hold here too
        of_radio = priced(here, 1, joules=False).notes
        notes = tuple(note for note in notes if note not in of_radio)
    network = network_hash(simulated.setup.network, Stream(config.run.seed))
    entries = {
        "data": about["data"],
        HASHES: about.get(HASHES, {}) | {"the network": network},
        PRICED: about.get(PRICED, source.name),
        SETTINGS: settings_hash(config),
        "step_costs": cost and [asdict(cost)],
        NOTES: of_each_kind([*notes, *simulated.notes]),
    }
    folder.parent.mkdir(parents=True, exist_ok=True)
    draft = Path(tempfile.mkdtemp(prefix=".priced-", dir=folder.parent))
    try:
        draft.chmod(folder.parent.stat().st_mode)
        directory = create(draft, there, entries)
        for file in trained.files(*LOGS, f"{PARTITION}*.npz"):
            copy_stored(file, draft / file.name)
        for row in prices.rows:
            directory.append(row)
        directory.save(
            _tensors(tensors, simulated), _state(state, directory, prices.rows, simulated)
        )
        os.replace(draft, folder)
    except BaseException:
        shutil.rmtree(draft, ignore_errors=True)
        raise
    return prices.rows


def _tensors(tensors: dict[str, torch.Tensor], simulated: Priced) -> dict[str, torch.Tensor]:
    """The tensors of the trained run, with the joules of the clients over the other radio."""
    ledger = simulated.setup.one_model.ledger.tensors()
    return {
        name: ledger[name] if name.startswith(LEDGER) else value for name, value in tensors.items()
    }


def _state(
    state: dict[str, Any], directory: RunFolder, rows: list[Row], simulated: Priced
) -> dict[str, Any]:
    """The state of the trained run, with the costs of the other radio."""
    handler, costs = dict(state["handler"]), simulated.setup.handler.snapshot()
    handler |= {name: costs[name] for name in ("totals", "merged_at") if name in costs}
    if "extras" in handler:
        handler["extras"] |= {"extra_seconds": rows[-1]["extra_seconds"]}
    return state | {
        "handler": handler,
        "sim_seconds": simulated.setup.clock.now,
        "fingerprint": directory.fingerprint(),
    }


def _same_settings(config: Config, folder: Path) -> bool:
    _, stored = RunFolder.open(folder, config.code)
    return _without_run(config) == _without_run(stored) and config.run.seed == stored.run.seed


def _without_run(config: Config) -> dict[str, Any]:
    """Settings that differ from their defaults, without those of section ``run``."""
    settings = non_defaults(config)
    kept = {name: value for name, value in settings.items() if not name.startswith("run.")}
    if "task" in kept:
        kept["task"] = [
            {name: value for name, value in table.items() if name not in TASK_SETTINGS["run"]}
            for table in kept["task"]
        ]
    return kept


def training_key(config: Config) -> str | None:
    """What identifies the training of a run; None if it depends on the radio.

    Runs with the same key train the same model.
    """
    try:
        check_independent(config)
    except ConfigError:
        return None
    settings = non_defaults(config)
    kept = {key: v for key, v in settings.items() if not of_radio(*key.partition(".")[::2])}
    return repr(sorted(kept.items()))


def kept_name(config: Config) -> str:
    """Name of the run with these settings: its algorithm, and their hash."""
    return f"{short(config.named('algorithm')).replace(':', '.')}-{settings_hash(config)}"


def kept_folder(config: Config, root: Path) -> Path:
    """Folder below ``root`` for the run with these settings."""
    return root / kept_name(config)


def is_finished(config: Config, root: Path) -> bool:
    """Whether ``root`` contains a finished run with these settings."""
    folder = kept_folder(config, root)
    try:
        checkpoint = RunFolder(folder).load()
        finished = checkpoint is not None and checkpoint[1]["finished"]
        return finished and _same_settings(config, folder)
    except ConfigError:
        return False


def kept_run(
    config: Config,
    root: Path,
    on_row: Callable[[Row], None] | None = None,
    observers: Sequence[Observer] = (),
    on_note: Callable[[str], None] | None = None,
) -> RunResult:
    """Read the run with these settings from disk, resume it, or start it.

    If another process is executing it, this one waits.

    Args:
        config: the settings; ``out`` is ignored.
        root: folder of all runs.
        on_row: called with each row as it is written.
        observers: see a run that is started or resumed, see ``wirelessfl.observers``.
        on_note: as for ``wirelessfl.run``.
    """
    folder = kept_folder(config, root)
    callbacks: dict[str, Any] = {"on_row": on_row, "on_note": on_note, "observers": observers}
    while True:
        try:
            if not RunFolder.holds_run(folder):
                return run(config.with_run({"out": folder}), **callbacks)
            if not _same_settings(config, folder):
                raise ConfigError(
                    f"{folder} contains a run made with other default settings. Remove it, or "
                    "choose another folder."
                )
            RunFolder(folder).wait()
            return resume(folder, trust=config.code, **callbacks)
        except InUseError:  # another sweep has been faster
            pass


def why_failed(
    config: Config, folder: Path, on_row: Callable[[Row], None], source: Path | None = None
) -> str:
    """Execute the run with these settings by ``kept_run``; its folder keeps its notes.

    Args:
        config: the settings.
        folder: folder of the run, from ``kept_folder``, perhaps in another process.
        on_row: called with each row as it is written.
        source: folder of a finished run that trains the same model over another radio, from which
            this run is priced if possible.

    Returns:
        The reason for its failure, in one line; an empty string if it has finished.
    """
    try:
        if kept_folder(config, folder.parent) != folder:
            return (
                "code or files that the settings name have changed since the sweep began, or are "
                "others on this machine. Start the sweep again."
            )
        rows = None
        if source is not None and not RunFolder.holds_run(folder):
            with suppress(ConfigError, DataError, OSError):  # if it cannot be priced, it is trained
                rows = price_run(config, source, folder)
        if rows is None:
            kept_run(config, folder.parent, on_row, on_note=lambda note: None)
        for row in rows or ():
            on_row(row)
    except (ConfigError, DataError, TrainingError) as error:
        return str(error) or type(error).__name__
    except Exception as error:  # a user's class can raise any error; other runs continue
        lines = str(error).splitlines() or [""]
        return f"{type(error).__name__}: {lines[0]}"
    return ""
