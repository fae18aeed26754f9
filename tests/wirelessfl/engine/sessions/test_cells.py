"""Cells and means of client states when clients join and leave."""

from itertools import pairwise

import numpy as np
import pytest
import torch

import wirelessfl
from tests.wirelessfl.engine.sessions.full_batch import full_batch_round
from wirelessfl.air.participants import PresentClients
from wirelessfl.engine.loop import simulate
from wirelessfl.engine.server.client_states import InMemory, Overlay
from wirelessfl.models import FCNN
from wirelessfl.runs.build import build
from wirelessfl.runs.engine import Engine

FLAGS = {"sessions": 4, "clients": 8, "split": "iid", "rounds": 3}
ALL_DAY = {"presence": "trace", "presence_unit": "rounds"}


def test_server_means_cover_the_present_clients(config, toy):
    """When a session begins, SCAFFOLD's c is the mean of the c_i of the present clients."""
    settings = config("scaffold", **FLAGS, out=None)

    setup = build(settings, data=toy)
    engine, training = Engine(setup), setup.learner
    seen = []

    def report(decision):
        if decision.status["session_round"] == 0:
            kept = [
                training.server.states.get("tracking", c)
                for c in np.flatnonzero(training.server.present.mask)
            ]
            kept = [
                torch.zeros(training.server.states.size) if own is None else own for own in kept
            ]
            seen.append(float(torch.stack(kept).norm()))
            torch.testing.assert_close(
                training.server.nodes["tracking"][0], torch.stack(kept).mean(0)
            )

    engine.start()
    simulate(engine.setup.schedule, engine.setup.handler, engine.setup.clock, report, lambda: None)
    assert seen[:2] == [0.0, 0.0]  # no client has trained yet
    assert min(seen[2:]) > 0


@pytest.mark.thorough(every=8)
@pytest.mark.parametrize("uplink", ["tdma", "aircomp"])
@pytest.mark.parametrize(
    ("name", "flags"),
    [
        ("hist", {"cells": 2, "mask_sizes": "optimized"}),
        ("fadamgc", {}),
        ("hist", {"cells": 2, "local": "fadamgc"}),
    ],
)
def test_cells_and_tracking_in_sessions(config, toy, trace, name, flags, uplink):
    """Runs with trial rounds exceed 60 % accuracy; a run continues if a cell becomes empty."""
    common = FLAGS | {"rounds": 4, "lr": 0.02, "uplink": uplink, "edge_rounds": None} | flags
    if name == "hist":
        common["edge_rounds"] = 2
    if uplink == "aircomp":
        common["beamformer"] = "random"  # optimising one takes a second
    result = wirelessfl.run(config(name, **common, warm_start="proposed"), data=toy)
    last = result.rows[-1]
    assert last["extra_rounds"] == 3
    assert last["extra_uploads"] == 3 * 4 * (common["edge_rounds"] or 1)
    assert last["accuracy"] > 0.6
    stays = trace(*[(c, 0, "" if c < 4 else 9.5) for c in range(8)])
    gone = wirelessfl.run(config(name, **common, **ALL_DAY, trace=stays), data=toy)
    ends = {row["session"]: row for row in gone.rows}
    assert ends[2]["dropped"] == ends[3]["dropped"] == 4
    assert ends[3]["present"] == 4
    assert np.isfinite(ends[3]["loss"])


def test_server_means_are_recomputed_when_a_client_leaves(config, toy, trace):
    """After each round, SCAFFOLD's c is the mean of the c_i of the present clients."""
    stays = trace(*[(c, 0, "") for c in range(4)], (4, 0, 1.5), (5, 0, 2.5))
    setup = build(config("scaffold", **FLAGS | ALL_DAY, trace=stays), data=toy)
    engine, training = Engine(setup), setup.learner
    seen = []

    def report(decision):
        kept = [
            training.server.states.get("tracking", c)
            for c in np.flatnonzero(training.server.present.mask)
        ]
        kept = [torch.zeros(training.server.states.size) if own is None else own for own in kept]
        torch.testing.assert_close(
            training.server.nodes["tracking"][0], torch.stack(kept).mean(0), rtol=1e-4, atol=1e-7
        )
        seen.append(len(kept))

    engine.start()
    simulate(engine.setup.schedule, engine.setup.handler, engine.setup.clock, report, lambda: None)
    assert seen[:4] == [6, 6, 5, 4]


@pytest.mark.parametrize("local", ["fedavg", "fedacg"])
def test_an_empty_cell_does_not_affect_the_cloud(config, toy, trace, local):
    """The cloud uses the other cell's model, and the empty cell's state does not change."""
    flags = FLAGS | {"cells": 2, "edge_rounds": 2, "sessions": 1, "rounds": 4, "local": local}
    flags |= {"local_steps": 1, "batch_size": 1000, **ALL_DAY}
    stays = trace(*[(c, 0, "" if c < 4 else 1) for c in range(8)])
    module = FCNN((12,), 4, hidden=(10,))
    setup = build(config("hfedavg", **flags, trace=stays), data=toy, model=module)
    run, training, spec = Engine(setup), setup.learner, setup.model.objective.spec
    states = []

    def report(decision):
        states.append(
            {n: v.clone() for n, v in {**training.server.cloud, **training.server.nodes}.items()}
        )

    run.start()
    simulate(setup.schedule, setup.handler, setup.clock, report, lambda: None)
    for before, after in pairwise(states[1:]):
        if local == "fedacg":
            assert torch.equal(before["momentum"][1], after["momentum"][1])
            assert not torch.equal(before["momentum"][0], after["momentum"][0])
            continue
        params = before["params"]
        for _ in range(2):  # edge rounds of full-batch steps, by hand
            params = full_batch_round(training, spec, module, toy, params, range(4), 0.1)
        torch.testing.assert_close(after["params"], params, rtol=1e-4, atol=1e-6)


def test_an_empty_cell_gets_the_smallest_submodel(config, toy, trace):
    """With optimized mask sizes, a cell without clients gets no larger submodel than the other."""
    flags = FLAGS | {"cells": 2, "edge_rounds": 2, "mask_sizes": "optimized"}
    stays = trace(*[(c, 0, "") for c in range(8)])
    setup = build(config("hist", **flags | ALL_DAY, trace=stays), data=toy)
    present = np.arange(8) < 4
    whole, half = setup.planner.plan(3), setup.planner.plan(3, PresentClients(present))
    assert half.submodels.lengths[1] <= half.submodels.lengths[0]
    assert half.price.seconds[1] == 0.0
    assert whole.price.seconds[1] > 0


def test_states_written_in_a_trial_do_not_change_the_stored_states():
    """In the trial, even a zero replaces a client's nonzero state."""
    below = InMemory(["tracking"], 3)
    below.put("tracking", 1, torch.ones(3))
    trial = Overlay(below)
    assert torch.equal(trial.get("tracking", 1), torch.ones(3))
    trial.put("tracking", 1, torch.zeros(3))
    trial.put("tracking", 2, torch.full((3,), 2.0))
    assert torch.equal(trial.get("tracking", 1), torch.zeros(3))
    assert torch.equal(below.get("tracking", 1), torch.ones(3))
    assert below.get("tracking", 2) is None
