"""Creates the folder of a new run, with entries about its data, code and given objects."""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import Any

from channels.notes import of_each_kind
from wirelessfl.base.import_paths import short
from wirelessfl.config import Config
from wirelessfl.runs.build.given import GivenObjects
from wirelessfl.runs.build.setups import Setup
from wirelessfl.runs.folder.about import NOTES
from wirelessfl.runs.folder.directory import RunDirectory
from wirelessfl.runs.folder.fingerprints import NAMED, SETTINGS, named_hashes, settings_hash
from wirelessfl.runs.folder.given_files import GIVEN, stored_arrays


def new_directory(
    config: Config,
    setup: Setup,
    given: GivenObjects,
    hashes: Mapping[str, Any],
    notes: Sequence[str] = (),
) -> RunDirectory:
    """Create the folder of a new run.

    Args:
        config: its settings, before the setup has resolved automatic values.
        setup: parts of the run.
        given: the objects that replace settings.
        hashes: their hashes, see ``given_hashes``.
        notes: the notes on the run.
    """
    entries = _about_setup(setup, hashes)
    if not config.given.names:
        entries[SETTINGS] = settings_hash(config)
    if notes:
        entries[NOTES] = of_each_kind(notes)
    arrays = stored_arrays(setup, given)
    if config.run.out is not None:
        return RunDirectory.create(config.run.out, setup.config, entries=entries, arrays=arrays)
    return _stamped_directory(setup.config, entries, arrays)


def _about_setup(setup: Setup, given: Mapping[str, Any]) -> dict[str, Any]:
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
    if given:
        entries[GIVEN] = dict(given)
    return entries


def _stamped_directory(
    config: Config, entries: Mapping[str, Any], arrays: Mapping[str, Mapping[str, Any]]
) -> RunDirectory:
    """Create a new folder below ``runs/`` that no other process uses."""
    stamp = datetime.now().strftime("%Y%m%d-%H%M%S")
    data = "+".join(dict.fromkeys(task.dataset.title for task in config.tasks.values()))
    name = re.sub(r"[^\w.+-]", ".", f"{short(config.named('algorithm'))}-{data}-{stamp}")
    for number in itertools.count(1):
        path = Path("runs", name if number == 1 else f"{name}-{number}")
        with suppress(FileExistsError):
            return RunDirectory.create(path, config, new=True, entries=entries, arrays=arrays)
    raise AssertionError("unreachable: the loop over names does not end")
