"""The file ``about.json`` in the folder of a run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from wirelessfl.runs.about import checked_entries
from wirelessfl.runs.files import reading, replacing


class AboutFile:
    """Versions, commit, date, device and hashes of a run, and the times at which it was resumed.

    Args:
        path: the file.
        remedy: what to do about damage, the last sentence of error messages.
    """

    def __init__(self, path: Path, remedy: str) -> None:
        self.path, self.remedy = path, remedy

    def entries(self) -> dict[str, Any]:
        """The entries.

        Raises:
            ConfigError: the file is missing or damaged.
        """
        with reading(self.path, self.remedy):
            return checked_entries(json.loads(self.path.read_text(encoding="utf-8")))

    def write(self, entries: dict[str, Any]) -> None:
        """Replace the file atomically."""
        with replacing(self.path) as draft:
            draft.write_text(json.dumps(entries, indent=2) + "\n", encoding="utf-8")

    def note_resumed(self, entry: dict[str, Any]) -> None:
        """Add an entry to the list ``resumed``; other entries do not change.

        Args:
            entry: the entry, from ``wirelessfl.runs.about``.

        Raises:
            ConfigError: the file is missing or damaged.
        """
        entries = self.entries()
        entries["resumed"] = [*entries.get("resumed", []), entry]
        self.write(entries)

    def note_extended(self, entry: dict[str, Any]) -> None:
        """Add an entry to the list ``extended``.

        An earlier entry with the same old values never took effect, and is removed.

        Args:
            entry: ``date``, and the settings that change as ``old`` and ``new``.

        Raises:
            ConfigError: the file is missing or damaged.
        """
        entries = self.entries()
        kept = [other for other in entries.get("extended", []) if other.get("old") != entry["old"]]
        entries["extended"] = [*kept, entry]
        self.write(entries)
