"""RAM-Fed's memory with requests: reference loop in order of arrival, mean over all clients."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch.func import functional_call
from torch.nn import functional as F

from wirelessfl.algorithms.ra_fed import RamFed
from wirelessfl.engine.server.weights import Weights

LR = 0.2


def change(made, params, client, first):
    """A client's model change in a request whose first local step has the number ``first``."""
    data, spec, before = made.model.executor.data, made.model.objective.spec, params
    for step in range(first, first + made.steps):
        batch = data.source.draw(np.array([client]), np.array([step]), 1)
        x, y = data.batch(batch.index[0][0][batch.weight[0][0] > 0])
        leaf = params.clone().requires_grad_()
        loss = F.cross_entropy(functional_call(made.module, spec.views(leaf), (x,)), y)
        params = params - LR * torch.autograd.grad(loss, leaf)[0]
    return params - before


def test_one_client_with_a_queue_of_ram_fed_requests(task):
    """With R = 3 and b = 2, the second update of a merge is compared with the first one."""
    made = task(clients=1)
    learner = made.learner(RamFed(lr=LR, capacities=(1.0,), server_lr=0.7))
    size = made.model.objective.spec.size
    model, memory, mean = made.model.start, torch.zeros(size), torch.zeros(size)
    steps, queue, held, version = 0, [], [], 0
    for number in range(3):
        made.issue(learner, number, 0)
        queue.append((number, model, version))
    for number in range(3, 15):
        first, sent, issued = queue.pop(0)
        learner.came_back(first)
        held.append((first, version - issued, change(made, sent, 0, steps) / -LR))
        steps += made.steps
        if len(held) == 2:
            numbers, staleness, (one, two) = zip(*held, strict=True)
            learner.merge_updates(numbers, staleness)
            news = [one - memory, two - one]
            model = model - 0.7 * LR * (mean + sum(news) / 2)
            mean, memory = mean + sum(news), two  # n = 1
            held, version = [], version + 1
            server = learner.server
            for found, wanted, apart in (
                (server.cloud["params"], model, 1e-5),
                (server.nodes["memory"][0], mean, 1e-4),
                (server.states.get("memory", 0), memory, 1e-4),
            ):
                torch.testing.assert_close(found, wanted, rtol=0, atol=apart)
        made.issue(learner, number, 0)
        queue.append((number, model, version))
    assert version == 6


@pytest.mark.thorough(every=8)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("capacities", [(1.0,), (0.7, 0.5, 0.3)])
def test_the_mean_memory_is_the_weighted_mean_over_all_clients(task, capacities, weighted):
    """This also holds if a client has several updates in a merge, and for submodels."""
    made, samples = task(), np.array([5.0, 1.0, 2.0, 4.0]) if weighted else np.ones(4)
    weights = Weights(np.zeros(4, dtype=np.int64), samples)
    rule = RamFed(lr=LR, capacities=capacities, masks="random")
    learner, dice = made.learner(rule, weights=weights), np.random.default_rng(1)
    number = most = 0
    for _ in range(10):
        clients = dice.integers(4, size=5).tolist()
        numbers = list(range(number, number + 5))
        number += 5
        most = max(most, *np.bincount(clients))
        for one, client in zip(numbers, clients, strict=True):
            made.issue(learner, one, client)
            learner.came_back(one)
        learner.merge_updates(numbers, [0] * 5)
        kept = [learner.server.states.get("memory", client) for client in range(4)]
        parts = zip(samples / samples.sum(), kept, strict=True)
        mean = sum(share * value for share, value in parts if value is not None)
        found = learner.server.nodes["memory"][0]
        torch.testing.assert_close(found, mean.float(), rtol=0, atol=1e-5)
        assert float(found.norm()) > 0.1
    assert most >= 3


def test_the_rule_is_called_once_per_merge_of_distinct_clients(task):
    """If a client has two updates in a merge, the memory rule is called twice."""
    made, asked = task(), []

    class Counting(RamFed):
        def remember(self, received):
            asked.append(received.clients.tolist())
            return super().remember(received)

    rule = Counting(**vars(replace(RamFed(), lr=LR, capacities=(1.0,))))
    learner = made.learner(rule)
    learner.train_round(np.array([0, 2, 3]))
    assert asked == [[0, 2, 3]]
    for number, client in enumerate([1, 1, 0]):
        made.issue(learner, number, client)
        learner.came_back(number)
    learner.merge_updates([0, 1, 2], [0, 0, 0])
    assert asked[1:] == [[1, 1, 0]] * 2
