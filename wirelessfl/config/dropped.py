"""Notes on the settings of a file that flags drop: those of a choice that a flag replaces."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from wirelessfl.base.wording import shown
from wirelessfl.config.config import Config
from wirelessfl.config.kinds import chosen_classes, flag_homes
from wirelessfl.config.tables import named_tables


def dropped_notes(tables: Mapping[str, Any], config: Config) -> list[str]:
    """A line for each table of which settings are dropped; it says how to give them again.

    Args:
        tables: the settings of a file, by table.
        config: the configuration of these tables and flags.
    """
    homes = flag_homes(chosen_classes(named_tables(config.given_tables())))
    flags = {place: flag for flag, place in homes.items()}
    notes = []
    for section, table in tables.items():
        if section == "given" or not isinstance(table, Mapping):  # those are refused
            continue
        lost = {
            key: value
            for key, value in table.items()
            if key != "name" and value is not None and (section, key) not in config.places
        }
        if section == "run" and "predicted" in table and config.run.predicted is None:
            notes.append("the settings are not those of the design: its predictions are left out.")
        if not lost:
            continue
        values = ", ".join(f"{key}={shown(value)}" for key, value in lost.items())
        again = " ".join(
            _flag(flags[section, key], value)
            for key, value in lost.items()
            if (section, key) in flags
        )
        kept = [key for key in lost if (section, key) in flags]
        remedy = f" To keep {', '.join(kept)}, give {again}." if again else ""
        old, new = table.get("name"), config.tables.get(section, {}).get("name")
        if new not in (None, old):
            notes.append(f"{section} {new!r} replaces {old!r}, without its {values}.{remedy}")
        else:
            notes.append(f"no effect, so dropped: {values} of [{section}].")
    return notes


def _flag(flag: str, value: Any) -> str:
    """A flag and its value, as on the command line."""
    name = "--" + flag.replace("_", "-")
    if value is True:
        return name
    parts = value if isinstance(value, list | tuple) else [value]
    return f"{name} {','.join(map(str, parts))}"
