"""Modules that change their input in place train and test as if they did not."""

from dataclasses import replace

import pytest
import torch
from torch import nn

import wirelessfl
from tests.wirelessfl.training.jobs import job_for, training_data, updates
from wirelessfl.training.cohort import LogitDistillation
from wirelessfl.training.evaluation import evaluate
from wirelessfl.training.module_executors import LoopExecutor
from wirelessfl.training.objective import Objective
from wirelessfl.training.trial import check_model, why_not_vmapped


class Normalised(nn.Linear):
    """A linear layer of normalised inputs."""

    def __init__(self, *, in_place, features=9):
        super().__init__(features, 4)
        self.in_place = in_place

    def forward(self, x):
        x = x.flatten(1)
        x = x.sub_(0.5).div_(0.25) if self.in_place else (x - 0.5) / 0.25
        return super().forward(x)


def two(features=9):
    """The same model with and without operations in place."""
    torch.manual_seed(0)
    models = [Normalised(in_place=in_place, features=features) for in_place in (True, False)]
    models[0].load_state_dict(models[1].state_dict())
    return models


def test_evaluation_and_checks_leave_the_samples_unchanged():
    data = training_data((9,), [20, 30])
    before = data.inputs.clone()
    found = []
    for module in two():
        task = Objective.of(module)
        assert check_model(task, *data.first(4), 4) is None
        why_not_vmapped(task, *data.first(4))
        params = task.spec.from_module(module)
        for _ in range(2):
            found.append(evaluate(task, params, data.inputs, data.labels, 16))
        assert torch.equal(data.inputs, before)
    assert found == found[:1] * 4


def test_a_run_leaves_the_data_unchanged(config, toy):
    before = toy.train_inputs.clone(), toy.test_inputs.clone()
    found = [
        wirelessfl.run(config("fedavg", executor="loop"), data=toy, model=module).rows
        for module in two(12)
    ]
    for one, other in zip(*found, strict=True):
        assert one["loss"] == other["loss"]
    assert torch.equal(toy.train_inputs, before[0])
    assert torch.equal(toy.test_inputs, before[1])


@pytest.mark.parametrize("terms", [(), (LogitDistillation(2.0),)], ids=["plain", "distillation"])
def test_every_model_of_a_penalty_sees_the_same_samples(terms):
    """The loss runs the client's model and its anchors on one batch."""
    data = training_data((9,), [20, 30])
    found = []
    for module in two():
        task, job = job_for(module, data)
        servers = {**job.servers, "teacher": job.servers["params"].flip(-1)}
        job = replace(job, penalties=terms, servers=servers)
        found.append(updates(LoopExecutor(task, data), job))
    assert torch.equal(*found)
