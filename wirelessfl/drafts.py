"""Files that are written whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def draft_of(path: Path) -> Path:
    """Temporary name of a file that is being written."""
    return path.with_name(path.name + ".part")


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a temporary name for a file; rename the complete file once it is on disk."""
    draft = draft_of(path)
    try:
        yield draft
        with draft.open("rb") as file:
            os.fsync(file.fileno())
        os.replace(draft, path)
    finally:
        draft.unlink(missing_ok=True)
