"""The hash of settings that identifies a run: in ``about.json``, and in the names of folders."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import MISSING, fields
from typing import Any

from pydantic import BaseModel

from wirelessfl.algorithms import LOCAL
from wirelessfl.config import Config
from wirelessfl.config.choices import DEFAULTS
from wirelessfl.config.sections import SECTIONS, WITHOUT_RESULTS
from wirelessfl.config.task_settings import inherited
from wirelessfl.runs.fingerprints import NAMED, named_hashes
from wirelessfl.setup.given_objects import check_given

SETTINGS = "settings"
"""Entry of ``about.json``: the hash of the settings with which the run was started."""


def settings_hash(config: Config) -> str:
    """Hash of the settings that differ from their defaults, and of code and files that they name.

    A run keeps its hash when later versions add settings and kinds of choices, of which it has the
    defaults, and when a setting moves to another section. Settings that do not change results, such
    as folders, do not count. A changed default changes the hashes of runs that state the old or the
    new value. A run that leaves the setting out keeps its hash although its value changes, so code
    that finds a run by its hash must compare the settings too.

    Raises:
        ConfigError: the settings need an object that must be passed to ``wirelessfl.run``.
    """
    check_given(config.given)
    hashed = {_flat(place): value for place, value in non_defaults(config).items()}
    named = named_hashes(config)
    if named:
        hashed[NAMED] = named
    text = json.dumps(hashed, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _flat(place: str) -> str:
    """The setting without its section; with its kind if it belongs to a choice but the data set."""
    section, _, name = place.partition(".")
    if section == "dataset":
        return section if name == "name" else name
    return name if section in SECTIONS else place


def non_defaults(config: Config) -> dict[str, Any]:
    """Settings that differ from their defaults, by section and name."""
    found: dict[str, Any] = {}
    for section, settings in config.all_tables().items():
        if section == "task":
            if settings:
                found["task"] = [_task_non_defaults(config, table) for table in settings]
            continue
        if isinstance(settings, BaseModel):
            known = {name: info.default for name, info in type(settings).model_fields.items()}
            values = dict(settings)
        elif (choice := config.choice(section)) is not None:
            known = {f.name: f.default for part in choice.setting_owners for f in fields(part)}
            known |= {"local": LOCAL, "name": DEFAULTS.get(section)}
            values = settings
        else:
            continue
        for name, value in values.items():
            if name not in WITHOUT_RESULTS and known.get(name, MISSING) != value:
                found[f"{section}.{name}"] = value
    return found


def _task_non_defaults(config: Config, table: Mapping[str, Any]) -> dict[str, Any]:
    """A task's table without values that equal the run's."""
    run = inherited(config, table, config.tasks[table["name"]])
    return {
        key: value for key, value in sorted(table.items()) if key not in run or value != run[key]
    }
