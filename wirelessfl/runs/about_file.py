"""The file ``about.json`` in the folder of a run."""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from channels.notes import of_each_kind
from wirelessfl.drafts import TEXT_BYTES, read_stored, reading, replacing
from wirelessfl.import_paths import short
from wirelessfl.runs.about import NOTES, checked_entries

CHECKSUM = "checksum"
"""Entry that has the checksum of the others."""


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
            entries = json.loads(read_stored(self.path, TEXT_BYTES).decode())
            if isinstance(entries, dict):
                before = entries.pop(CHECKSUM, None)  # none after an edit
                if before is not None and before != _checksum(entries):
                    raise ValueError(f"it differs from its {CHECKSUM!r}; after an edit, remove it")
            return checked_entries(entries)

    def write(self, entries: dict[str, Any]) -> None:
        """Replace the file atomically."""
        text = json.dumps({**entries, CHECKSUM: _checksum(entries)}, indent=2)
        with replacing(self.path) as draft:
            draft.write_text(text + "\n", encoding="utf-8")

    def note_resumed(self, entry: dict[str, Any], notes: Sequence[str]) -> None:
        """Add an entry to the list ``resumed``, and new notes to ``notes``.

        Args:
            entry: the entry, from ``wirelessfl.runs.about``.
            notes: the notes on the resumed run.

        Raises:
            ConfigError: the file is missing or damaged.
        """
        entries = self.entries()
        entries["resumed"] = [*entries.get("resumed", []), entry]
        self.write(_with_notes(entries, notes))

    def add_note(self, note: str) -> None:
        """Add a note to ``notes``, unless they have one of its kind.

        Raises:
            ConfigError: the file is missing or damaged.
        """
        self.write(_with_notes(self.entries(), [note]))

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


def hashes_at_start(entries: Mapping[str, Any], named: str) -> Mapping[str, str] | None:
    """The hashes of code or files when the run began, from the entries; None if there are none.

    Args:
        entries: those of ``about.json``.
        named: the setting and its value, e.g. "model /home/me/m.py:make". A file of code may have
            had another folder, see ``RunDirectory.open``.
    """
    began: Mapping[str, Mapping[str, str]] = entries.get("named", {})
    alike = (name for name in began if _without_folder(name) == _without_folder(named))
    return began.get(named) or began.get(next(alike, ""))


def _without_folder(named: str) -> str:
    setting, _, path = named.partition(" ")
    return f"{setting} {short(path)}"


def _with_notes(entries: dict[str, Any], notes: Sequence[str]) -> dict[str, Any]:
    found = of_each_kind([*entries.get(NOTES, []), *notes])
    return entries | {NOTES: found} if found else entries


def _checksum(entries: Mapping[str, Any]) -> int:
    return zlib.crc32(json.dumps(entries, sort_keys=True).encode())
