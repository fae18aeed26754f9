"""Reads checkpoints of an earlier layout, so that interrupted runs can be resumed."""

from __future__ import annotations

from typing import Any

LAYOUT = 7
"""The earlier layout, in which runs of one model and of tasks had entries of their own."""


def upgraded(state: dict[str, Any]) -> dict[str, Any]:
    """The state of a checkpoint of layout 7 in layout 8; other states are returned unchanged.

    Args:
        state: the state, without the tensors, which have kept their names.
    """
    if state.get("layout") != LAYOUT:
        return state
    found = dict(state)
    if "task_specs" in found:
        specs, handler = found.pop("task_specs"), found.pop("regime")
        shapes = [{"shapes": shapes, "ties": ties} for shapes, ties in specs.values()]
        learners = [old | new for old, new in zip(found["learners"], shapes, strict=True)]
        tasks = list(specs)
        now = handler["now"] if "now" in handler else handler["requests"]["now"]
    else:
        kept = {name: found.pop(name) for name in ("totals", "shapes", "ties")}
        learners = [{**kept, "metrics": found.pop("metrics", {})}]
        # Rounds had their entries beside those of the run.
        names = ("merged_at", "decisions")
        handler = {name: found.pop(name) for name in names if name in found}
        for name in ("sessions", "cells"):
            handler |= found.pop(name, {})
        tasks, now = None, found["sim_seconds"]
    return {
        "reached": [],
        "client_log": None,
        **found,
        "handler": handler,
        "learners": learners,
        "tasks": tasks,
        "sim_seconds": now,
        "layout": LAYOUT + 1,
    }
