"""Settings that earlier versions had in another table, so that stored runs stay readable."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

MOVED: Mapping[tuple[str, str], tuple[str, str]] = {
    ("data", "dataset"): ("dataset", "name"),
    ("data", "pixels"): ("dataset", "pixels"),
    ("data", "tokenizer"): ("dataset", "tokenizer"),
    ("data", "max_length"): ("dataset", "max_length"),
}
"""Today's table and key of each moved setting, by those of earlier versions."""


def with_moved(tables: Mapping[str, Any]) -> dict[str, Any]:
    """A copy of ``tables`` with each moved setting in today's table.

    A setting whose new table is given too stays where it is, and is refused as unknown.
    """
    found = dict(tables)
    given = found.get("given")
    replaced = isinstance(given, Mapping) and given.get("data") is not None
    for (section, key), (kind, name) in MOVED.items():
        table = found.get(section)
        if not isinstance(table, Mapping) or key not in table or kind in tables:
            continue
        found[section] = {k: value for k, value in table.items() if k != key}
        if not replaced:  # without effect on given data
            found[kind] = {**found.get(kind, {}), name: table[key]}
    return found
