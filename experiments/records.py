"""Files of measured and priced numbers: JSON lists of named tuples, one record a line."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeVar

T = TypeVar("T")


def load(kind: Callable[..., T], file: Path) -> list[T]:
    """The records of a file, whose lines are lists or tables; none if there is no file."""
    text = json.loads(file.read_text(encoding="utf-8")) if file.is_file() else []
    return [record(kind, line) for line in text]


def record(kind: Callable[..., T], line: list[Any] | dict[str, Any]) -> T:
    """A record, in which tuples take the place of lists."""
    if isinstance(line, dict):
        return kind(**{name: _tuple(value) for name, value in line.items()})
    return kind(*map(_tuple, line))


def _tuple(value: Any) -> Any:
    return tuple(map(_tuple, value)) if isinstance(value, list) else value


def save(records: Iterable[Any], file: Path) -> None:
    """Write the records of a file; tuples lose the names of their fields."""
    file.write_text(f"{listed(records)}\n", encoding="utf-8")


def listed(records: Iterable[Any]) -> str:
    """The text of a list of records."""
    return "[\n" + ",\n".join(map(json.dumps, records)) + "\n]"
