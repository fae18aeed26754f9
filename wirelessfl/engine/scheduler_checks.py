"""Checks of what a user's scheduler returns, and the blame for decisions that fail."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import Field, fields
from typing import Any

import numpy as np

from wirelessfl.base.errors import ConfigError, DataError, TrainingError
from wirelessfl.base.guard import Check, UnfitError, described, of_project, title_of


def decisions(kinds: Any) -> Check:
    """A check for a list of decisions of these classes, whose values are valid on their own."""

    def check(value: Any, scheduler: object, event: object) -> Sequence[Any]:
        expected = "a list of decisions of wirelessfl.extend, empty for none"
        if not isinstance(value, list | tuple):
            raise UnfitError(f"{described(value)} on {event}", expected)
        for decision in value:
            if not isinstance(decision, kinds):
                raise UnfitError(f"the decision {described(decision)} on {event}", expected)
            for entry in fields(decision):
                needed = _needed(entry, decision)
                if needed is not None:
                    raise UnfitError(f"{decision} on {event}", f"{needed} as {entry.name}")
        return value

    return check


def state(value: Any, scheduler: object) -> dict[str, Any]:
    """Check for a state that a checkpoint can store as JSON."""
    if not isinstance(value, dict) or not _is_json(value):
        raise UnfitError(described(value), "a dict of plain numbers, lists and strings by name")
    return value


def _needed(entry: Field[Any], decision: Any) -> str | None:
    """The values that a field of a decision may have, in words; None if it has one of them."""
    value = getattr(decision, entry.name)
    match entry.name:
        case "trial":
            return None if isinstance(value, bool) else "True or False"
        case "status":
            plain = isinstance(value, dict) and _is_json(value)
            return None if plain else "a dict of plain values by name"
        case "requests" | "staleness" | "tasks":
            valid = isinstance(value, list | tuple) and all(map(_is_count, value))
            if entry.name == "requests":
                valid = valid and 0 < len(set(value)) == len(value)
                return None if valid else "integers >= 0, at least one, each once,"
            if entry.name == "staleness":
                valid = valid and len(value) == len(decision.requests)
                return None if valid else "an integer >= 0 per request"
            return None if valid else "integers >= 0"
    if _is_count(value) or (entry.default is None and value is None):
        return None
    return "an integer >= 0"


def _is_count(value: Any) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool) and bool(value >= 0)


def _is_json(value: object) -> bool:
    try:
        json.dumps(value, allow_nan=False)
    except (TypeError, ValueError):
        return False
    return True


def refuse(schedule: object, decided: str, error: Exception) -> None:
    """Blame a user's schedule for decisions that cannot be carried out.

    Args:
        schedule: the scheduler.
        decided: its decisions, in words.
        error: the error of its handler.
    """
    explained = isinstance(error, ConfigError | DataError | TrainingError | OSError | MemoryError)
    if explained or of_project(type(schedule)):
        return
    raise ConfigError(
        f"scheduler {title_of(schedule)!r}: decide returned {decided}, which cannot be carried out "
        f"({type(error).__name__}: {' '.join(str(error).split())}). Return decisions on tasks, "
        "rounds and requests that exist: merge what has arrived and is not merged yet."
    ) from error
