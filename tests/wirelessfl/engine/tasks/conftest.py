"""Fixture that builds a task of any algorithm from objects, without a full run."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch

from wirelessfl.air.delays import ShiftedExponential
from wirelessfl.air.traffic import Traffic
from wirelessfl.air.uplinks import UPLINKS
from wirelessfl.algorithms import assigner_of
from wirelessfl.algorithms.algorithm import stored_vectors
from wirelessfl.algorithms.step_sizes import unchanged
from wirelessfl.engine.rounds.local_training import LocalTraining
from wirelessfl.engine.server.client_states import InMemory
from wirelessfl.engine.server.server import Server
from wirelessfl.engine.server.weights import Weights
from wirelessfl.engine.tasks.learner import TaskLearner
from wirelessfl.engine.tasks.request import Request, RequestSeconds, RequestSubmodels
from wirelessfl.models import FCNN
from wirelessfl.runs.build import build
from wirelessfl.runs.build.structure import Structure
from wirelessfl.training.steps import StepCounts

STEPS = 3


def issue(learner, number, client, *, lost=False):
    """Send request ``number`` to a client, with the server's current model version."""
    version = learner.server.version
    learner.issue(Request(number, 0, client, version, 0.0, 1.0, lost_after=0.5 if lost else None))


@pytest.fixture
def task(config, toy):
    """A factory of tasks on the toy data, and of synchronous rounds to compare them with.

    ``learner(algorithm)`` creates a new task with the executor and data of ``rounds``.
    """

    def make(*, clients=4, hidden=(9,), flags=None):
        torch.manual_seed(3)
        module = FCNN((12,), 4, hidden=hidden)
        settings = {
            "clients": clients, "local_steps": STEPS, "batch_size": 8, "rounds": 9,
            "split": "dirichlet", "alpha": 0.7, "min_samples": 5, "executor": "loop",
        }  # fmt: skip
        name, more = flags or ("fedavg", {})
        setup = build(config(name, **settings | more), data=toy, model=module)
        model = setup.models[0]
        structure = Structure(model, None)

        def learner(
            algorithm=None,
            *,
            weights=None,
            lr_share=unchanged,
            spread_updates=None,
            uplink=None,
            delays=None,
        ):
            rule = setup.planner.algorithm if algorithm is None else algorithm
            server = Server(
                rule,
                uplink or UPLINKS.find("tdma")(),
                weights or Weights(np.zeros(clients, dtype=np.int64)),
                InMemory(stored_vectors(rule), model.objective.spec.size),
                model.start,
            )
            assigner = assigner_of(rule)
            tested = assigner.tested(structure.neurons)
            local = LocalTraining(model.executor, StepCounts(STEPS))
            stream = setup.stream
            seconds = RequestSeconds(delays or ShiftedExponential([1.0], np.ones(clients), stream))
            submodels = RequestSubmodels(assigner, structure.whole, clients, stream, seconds)
            tested = None if tested is None else tested.of(np.zeros(1, dtype=np.int64))
            return TaskLearner(
                server,
                local,
                submodels,
                model.evaluation(tested),
                stream,
                Traffic.of(rule, model.objective.spec, element_bits=server.uplink.element_bits),
                lr_share=lr_share,
                spread_updates=spread_updates,
            )

        return SimpleNamespace(
            learner=learner, rounds=setup, model=model, module=module, issue=issue, steps=STEPS
        )

    return make
