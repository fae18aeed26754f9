"""Models that cannot train several clients together are detected; unsuitable ones are refused."""

import pytest
import torch
from torch import nn

from tests.wirelessfl.training.jobs import job_for, plain_loop, samples, training_data, updates
from wirelessfl.base.errors import ConfigError
from wirelessfl.training.module_executors import LoopExecutor
from wirelessfl.training.objective import Objective
from wirelessfl.training.trial import check_model, why_not_vmapped


class Counts(nn.Linear):
    """A module that changes a buffer in every forward pass."""

    def __init__(self):
        super().__init__(9, 4)
        self.register_buffer("calls", torch.zeros(1))

    def forward(self, x):
        self.calls += 1
        return super().forward(x)


class Branches(nn.Linear):
    """A module that branches on values, which vmap does not support."""

    def __init__(self):
        super().__init__(9, 4)

    def forward(self, x):
        return super().forward(x) if x.sum() > 0 else 2 * super().forward(x)


def batchnorm():
    return nn.Sequential(
        nn.Linear(9, 8), nn.BatchNorm1d(8, track_running_stats=False), nn.Linear(8, 4)
    )


def test_models_that_vmap_does_not_support_train_in_the_loop():
    """Models with batch norm, or that branch on values, train in the loop; the reason is given."""
    x, y = samples((9,))
    for module, reason in ((batchnorm(), "mixes the samples"), (Branches(), "under vmap")):
        assert check_model(Objective.of(module), x[:4], y[:4], 4) is None
        assert reason in why_not_vmapped(Objective.of(module), x[:4], y[:4])
    draws = Objective.of(nn.Sequential(nn.Linear(9, 4), nn.Dropout(0.5)))
    assert "global generator" in check_model(draws, x[:4], y[:4], 4)
    module = batchnorm()
    data = training_data((9,), [20, 5, 50])
    task, job = job_for(module, data)
    expected = plain_loop(module, data, job, lr=0.1)
    assert torch.allclose(updates(LoopExecutor(task, data), job), expected, atol=2e-6)


def test_modules_that_do_not_fit_the_data_are_refused():
    x, y = samples((9,))
    for module, message in (
        (
            nn.Linear(8, 4),
            r"on samples of shape \(9,\): .*\. Choose a model of samples of this shape\.$",
        ),
        (nn.Linear(9, 5), r"returns \(4, 5\) for 4 samples"),
        (nn.Unflatten(1, (3, 3)), "trainable"),
        (Counts(), "changes its buffer 'calls'"),
    ):
        with pytest.raises(ConfigError, match=message):
            check_model(Objective.of(module), x[:4], y[:4], 4)


def test_parameters_accessed_other_than_by_name_are_refused():
    """A parameter that forward reads from a list is refused: all clients would share it."""

    class Hidden(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.last = nn.Linear(9, 5), nn.Linear(5, 4)
            self.weights = [self.first.weight]

        def forward(self, x):
            return self.last(torch.tanh(x @ self.weights[0].t()))

    x, y = torch.randn(4, 9), torch.tensor([0, 1, 2, 3])
    with pytest.raises(ConfigError, match=r"uses its parameter 'first.weight' other than by"):
        check_model(Objective.of(Hidden()), x, y, 4)
