"""A request uses the step size of its model version; a merge uses the current version's."""

from dataclasses import dataclass

import numpy as np
import pytest
import torch
from torch.func import functional_call
from torch.nn import functional as F

from wirelessfl.algorithms.fedavg import FedAvg
from wirelessfl.engine.tasks import deferred_training
from wirelessfl.engine.tasks.request import spread

LR = 0.2


def share(version):
    return 1 / (1 + version)


@dataclass(frozen=True)
class Noting(FedAvg):
    """Adds its step size to the server's state at each merge."""

    name = "noting"

    def initial(self, params):
        return {"params": params, "rates": torch.zeros(1)}

    def merge(self, server, received):
        return {**super().merge(server, received), "rates": server["rates"] + self.lr}


def test_versions_that_are_merged_together_use_their_own_step_sizes(task, monkeypatch):
    """If a merge needs requests of versions 0 and 1, each version is trained in its own job."""
    monkeypatch.setattr(deferred_training, "RESULT_BYTES", 1)  # nothing is trained ahead
    made, jobs, changes = task(), [], {}
    made.model.executor.chunk = 1
    train = made.model.executor.train
    made.model.executor.train = lambda job: (jobs.append(job), train(job))[1]
    learner = made.learner(Noting(lr=LR), lr_share=share, spread_updates=2)
    data, spec, model = made.model.executor.data, made.model.objective.spec, made.model.start

    def ask(number, client, version):
        made.issue(learner, number, client)
        params = model
        for step in range(made.steps):
            batch = data.source.draw(np.array([client]), np.array([step]), 1)
            x, y = data.batch(batch.index[0][0][batch.weight[0][0] > 0])
            leaf = params.clone().requires_grad_()
            loss = F.cross_entropy(functional_call(made.module, spec.views(leaf), (x,)), y)
            params = params - share(version) * LR * torch.autograd.grad(loss, leaf)[0]
        changes[number] = params - model

    for number in (0, 1):
        ask(number, number, 0)
    learner.came_back(0)
    learner.merge_updates([0], [0])
    model = model + changes[0]
    ask(2, 2, 1)
    jobs.clear()
    for number in (1, 2):
        learner.came_back(number)
    gradients = [changes[1] / LR, changes[2] / (LR / 2)]
    sigma = spread(torch.stack(gradients), LR / 2, 1.0, made.steps)
    assert learner.spread() == pytest.approx(sigma, rel=1e-4)
    learner.merge_updates([1, 2], [1, 0])
    model = model + (changes[1] + changes[2]) / 2
    torch.testing.assert_close(learner.server.cloud["params"], model, rtol=0, atol=1e-6)
    assert float(learner.server.nodes["rates"][0, 0]) == pytest.approx(LR * (1 + 1 / 2))
    assert sorted(job.rule.lr for job in jobs) == [LR / 2, LR]
    # The merged updates keep their own step sizes, while that of the task has decayed to LR / 3.
    sigma = spread(torch.stack(gradients), LR / 3, 1.0, made.steps)
    assert learner.spread() == pytest.approx(sigma, rel=1e-4)
