"""Runs of a sweep that are not trained: their rows are those of another run, over their own radio.

Their folders have all files of a finished run; ``about.json`` names the trained run.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from channels.notes import of_each_kind
from channels.streams import Stream
from wirelessfl.config import Config
from wirelessfl.drafts import copy_stored
from wirelessfl.errors import ConfigError
from wirelessfl.pricing.price import Priced, priced
from wirelessfl.pricing.same_training import repriced
from wirelessfl.runs.about import NOTES, NUMERICS
from wirelessfl.runs.directory import PARTITION, Row, RunDirectory
from wirelessfl.runs.fingerprints import (
    NAMED,
    named_hashes,
    network_fingerprint,
    settings_fingerprint,
)
from wirelessfl.runs.settings_hash import SETTINGS, settings_hash
from wirelessfl.server.ledger import PREFIX as LEDGER

PRICED = "priced_from"
"""Entry of ``about.json`` of a priced run: the name of the folder of the trained run."""


def priced_from(folder: Path) -> str | None:
    """The name of the folder of the trained run; None if this run has been trained itself."""
    try:
        found = RunDirectory(folder).about().get(PRICED)
    except ConfigError:
        return None
    return None if found is None else str(found)


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
    trained, here = RunDirectory.open(source, config.code)
    checkpoint, told = trained.load(), trained.about()
    if checkpoint is None or not checkpoint[1]["finished"]:
        raise ConfigError(f"the run in {source} has not finished.")
    tensors, state = checkpoint
    if state["numerics"] != NUMERICS:
        raise ConfigError(f"the run in {source} has numerics {state['numerics']}.")
    there = config.with_run({**dict(here.run), "out": folder})
    found = repriced(trained.check_rows(state), here, there)
    simulated = found.simulated
    entries = {"data": told["data"], PRICED: told.get(PRICED, source.name)}
    entries[SETTINGS] = settings_hash(config)
    cost, hashes = simulated.planned.model.step_cost, named_hashes(there)
    if cost is not None:
        entries["step_costs"] = [asdict(cost)]
    if hashes:
        entries[NAMED] = hashes
    notes = trained.notes()
    if notes:  # those on model and data hold here too
        of_radio = priced(here, 1, joules=False).notes
        notes = tuple(note for note in notes if note not in of_radio)
    if notes or simulated.notes:
        entries[NOTES] = of_each_kind([*notes, *simulated.notes])
    folder.parent.mkdir(parents=True, exist_ok=True)
    draft = Path(tempfile.mkdtemp(prefix=".priced-", dir=folder.parent))
    try:
        draft.chmod(folder.parent.stat().st_mode)
        directory = RunDirectory.create(draft, there, entries=entries)
        for file in (*trained.logs(), *source.glob(f"{PARTITION}*.npz")):
            copy_stored(file, draft / file.name)
        for row in found.rows:
            directory.append(row)
        directory.save(
            _tensors(tensors, simulated), _state(state, directory, there, found.rows, simulated)
        )
        os.replace(draft, folder)
    except BaseException:
        shutil.rmtree(draft, ignore_errors=True)
        raise
    return found.rows


def _tensors(tensors: dict[str, torch.Tensor], simulated: Priced) -> dict[str, torch.Tensor]:
    """The tensors of the trained run, with the joules of the clients over the other radio."""
    own = simulated.training.ledger.tensors()
    return {
        name: own[name] if name.startswith(LEDGER) else value for name, value in tensors.items()
    }


def _state(
    state: dict[str, Any],
    directory: RunDirectory,
    config: Config,
    rows: list[Row],
    simulated: Priced,
) -> dict[str, Any]:
    """The state of the trained run, with the costs of the other radio."""
    network = simulated.planned.planner.network
    fingerprint = state["fingerprint"] | {
        "the network's values are": network_fingerprint(network, Stream(config.run.seed)),
        **settings_fingerprint(directory),
    }
    [learner], handler = state["learners"], dict(state["handler"])
    if "merged_at" in handler:
        handler["merged_at"] = simulated.merged_at
    if "extras" in handler:
        handler["extras"] |= {"extra_seconds": rows[-1]["extra_seconds"]}
    return state | {
        "learners": [learner | {"totals": simulated.training.totals.row()}],
        "handler": handler,
        "sim_seconds": simulated.seconds,
        "fingerprint": fingerprint,
    }
