"""Runs that an earlier version has interrupted go on as if they had not been."""

import pytest

import wirelessfl
from wirelessfl.runs.directory import RunDirectory
from wirelessfl.runs.earlier_checkpoints import LAYOUT, upgraded

REGIMES = {
    "rounds": ("hist", {"hidden": (8,)}),
    "sessions": ("fedavg", {"sessions": 2, "split": "iid"}),
    "cells": ("hfedavg", {"schedule": "buffered", "buffer": 1}),
    "requests": ("fedavg", {"schedule": "buffered"}),
    "common rounds": ("fedavg", {"schedule": "simultaneous"}),
}


def earlier(state, regime):
    """The state as layout 7 had it: entries of one model beside those of the run."""
    found = {n: v for n, v in state.items() if n not in ("handler", "learners", "tasks", "reached")}
    found |= {"layout": LAYOUT}
    if regime in ("requests", "common rounds"):
        del found["sim_seconds"], found["client_log"]
        pairs = zip(state["tasks"], state["learners"], strict=True)
        specs = {name: [learner["shapes"], learner["ties"]] for name, learner in pairs}
        return found | {
            "regime": state["handler"],
            "learners": [
                {n: v for n, v in learner.items() if n not in ("shapes", "ties")}
                for learner in state["learners"]
            ],
            "reached": state["reached"],
            "task_specs": specs,
        }
    [learner], handler = state["learners"], state["handler"]
    return found | learner | (handler if regime == "rounds" else {regime: handler})


@pytest.mark.thorough(every=8)
@pytest.mark.parametrize("regime", REGIMES)
def test_a_run_with_a_checkpoint_of_layout_7_goes_on(config, toy, same, halt_at, regime):
    algorithm, flags = REGIMES[regime]
    flags = flags | {"checkpoint_seconds": 0, "eval_every": 1}
    whole = wirelessfl.run(config(algorithm, **flags), data=toy)
    settings = config(algorithm, **flags)
    with pytest.raises(KeyboardInterrupt):
        wirelessfl.run(settings, data=toy, on_row=halt_at(2))
    directory = RunDirectory(settings.run.out)
    tensors, state = directory.load()
    old = earlier(state, regime)
    assert old.keys() != state.keys()
    assert upgraded(old) == state == upgraded(state)
    directory.save(tensors, old)
    same(wirelessfl.resume(settings.run.out, data=toy), whole)
