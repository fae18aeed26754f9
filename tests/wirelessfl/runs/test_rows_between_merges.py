"""Rows between merges of cells report the last merge, even after resuming."""

import pytest

import wirelessfl


class StoppedError(Exception):
    """Interrupts a run."""


@pytest.mark.thorough
def test_resumed_between_two_merges(config, toy, same):
    """A run interrupted at any row, often between merges, and resumed equals the whole run."""
    flags = {
        "local": "heterofl", "schedule": "buffered", "buffer": 2, "cells": 2, "edge_rounds": 1,
        "rounds": 2, "eval_seconds": 0.02, "checkpoint_seconds": 0, "step_seconds": 0.01,
        "local_steps": 9, "clients": 4, "uplink": "fixed",
    }  # fmt: skip
    whole = wirelessfl.run(config("hfedavg", **flags), data=toy)
    told = [row["round"] for row in whole.rows if "coverage" in row]
    assert len(told) > 1 + whole.rows[-1]["round"]
    for place in range(len(whole.rows)):
        settings, rows = config("hfedavg", **flags), []

        def stop(row, place=place, rows=rows):
            rows.append(row)
            if len(rows) > place:
                raise StoppedError

        with pytest.raises(StoppedError):
            wirelessfl.run(settings, data=toy, on_row=stop)
        same(wirelessfl.resume(settings.run.out, data=toy), whole)
