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

import numpy as np

from channels.notes import of_each_kind
from wirelessfl.base.errors import ConfigError
from wirelessfl.base.files import check_writable, is_draft, replacing
from wirelessfl.base.import_paths import short
from wirelessfl.config import Config
from wirelessfl.runs.build.given import GivenObjects
from wirelessfl.runs.build.setups import Setup
from wirelessfl.runs.folder.about import NOTES, about, write_about
from wirelessfl.runs.folder.given_files import stored_arrays
from wirelessfl.runs.folder.identity import SETTINGS, settings_hash, setup_hashes
from wirelessfl.runs.folder.named_files import HASHES, NAMED, named_hashes
from wirelessfl.runs.folder.run_folder import ABOUT, BEGUN, InUseError, RunFolder, alone_in


def new_folder(
    config: Config,
    setup: Setup,
    objects: GivenObjects,
    hashes: Mapping[str, Any],
    notes: Sequence[str] = (),
) -> RunFolder:
    """Create the folder of a new run.

    Args:
        config: its settings, before the setup has resolved automatic values.
        setup: parts of the run.
        objects: the objects that replace settings.
        hashes: their hashes, see ``code_hashes``.
        notes: the notes on the run.
    """
    data = (model.data.verification for model in setup.models)
    costs = [model.step_cost for model in setup.models]
    entries = {
        "data": dict(zip(setup.config.tasks, data, strict=True)),
        "step_costs": any(costs) and [None if cost is None else asdict(cost) for cost in costs],
        HASHES: {**hashes, **setup_hashes(setup)},
        SETTINGS: None if config.given.names else settings_hash(config),
        NOTES: of_each_kind(notes),
    }
    arrays = stored_arrays(setup, objects)
    if config.run.out is not None:
        return create(config.run.out, setup.config, entries, arrays)
    stamp = datetime.now().strftime("%Y%m%d-%H%M%S")
    titles = "+".join(dict.fromkeys(task.dataset.title for task in setup.config.tasks.values()))
    name = re.sub(r"[^\w.+-]", ".", f"{short(config.named('algorithm'))}-{titles}-{stamp}")
    for number in itertools.count(1):
        path = Path("runs", name if number == 1 else f"{name}-{number}")
        with suppress(FileExistsError):
            return create(path, setup.config, entries, arrays, new=True)
    raise AssertionError("unreachable: the loop over names does not end")


def check_free(path: Path) -> None:
    """Check that a folder is empty or missing, and writable.

    Drafts, ``about.json`` and files of arrays are ignored without ``config.toml``, which is written
    last: the process that wrote them was killed before the run began.
    """
    check_writable(path)
    if RunFolder.holds_run(path):
        raise InUseError(
            f"out is {path}, which contains a run. Choose another folder, or resume this run: "
            f"wirelessfl resume {path}"
        )
    begun = RunFolder(path).files(*BEGUN) if (path / ABOUT).exists() else []
    if path.exists() and not all(f in begun or is_draft(f.name) for f in path.iterdir()):
        raise ConfigError(
            f"out is {path}: it is not an empty folder. Choose another folder, or empty it."
        )


def create(
    path: Path,
    config: Config,
    entries: Mapping[str, Any] = {},
    arrays: Mapping[str, Mapping[str, Any]] = {},
    *,
    new: bool = False,
) -> RunFolder:
    """Create the folder of a new run, with ``config.toml`` and ``about.json``.

    Args:
        path: the folder; created if it is missing.
        config: the configuration to store.
        entries: further entries of ``about.json``; empty ones are left out.
        arrays: arrays to store in further files, by stem of the file and name.
        new: whether the folder must not exist yet.

    Raises:
        ConfigError: the folder is not empty, or cannot be created.
        FileExistsError: ``new`` is set, and the folder exists.
    """
    text, entries = config.to_toml(), {NAMED: named_hashes(config), **entries}
    content = about(config.run.device) | {name: v for name, v in entries.items() if v}
    check_writable(path)
    directory = RunFolder(path)
    directory.new = not path.exists()
    try:
        path.mkdir(parents=True, exist_ok=not new)
        with alone_in(path):
            check_free(path)
            write_about(directory.about_file, content)
            for stem, named in arrays.items():
                with replacing(path / f"{stem}.npz") as draft, draft.open("wb") as file:
                    np.savez_compressed(file, **named)
            with replacing(path / "config.toml") as draft:
                draft.write_text(text, encoding="utf-8")
    except FileExistsError:
        raise
    except OSError as error:
        raise ConfigError(f"out is {path}: {error.strerror}. Choose another folder.") from error
    return directory
