"""Submodels of requests: dependence on client and version, masked reference, costs."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch.func import functional_call
from torch.nn import functional as F

from channels.streams import Stream
from wirelessfl.air.delays import ShiftedExponential
from wirelessfl.algorithms.ra_fed import RaFed
from wirelessfl.algorithms.widths import FedAvgSmall, FedRolex, HeteroFL
from wirelessfl.config import Config
from wirelessfl.engine.events import Ask
from wirelessfl.engine.schedules import Clock
from wirelessfl.engine.tasks.asynchronous import Asynchronous
from wirelessfl.engine.tasks.requests import Requests
from wirelessfl.models.submodels.budgets import dealt_capacities
from wirelessfl.runs.build import build
from wirelessfl.training.rules import Payload

CAPACITIES = (1.0, 0.5, 0.25)
WIDTH, LR = 12, 0.2


def held(made, rule, client, version):
    """Hidden neurons of a client's submodel in ``version``, by the definition of the masks."""
    share = dealt_capacities(rule.capacities, 4, made.rounds.stream)[client]
    first = version if rule.name == "fedrolex" else 0
    return (first + np.arange(int(share * WIDTH))) % WIDTH


def mask_of(made, neurons):
    """Mask [P] of a submodel with these hidden neurons."""
    there = torch.zeros(WIDTH)
    there[torch.from_numpy(neurons)] = 1.0
    parts = {
        (WIDTH, 12): there[:, None].expand(WIDTH, 12),
        (WIDTH,): there,
        (4, WIDTH): there.expand(4, WIDTH),
        (4,): torch.ones(4),
    }
    shapes = made.model.objective.spec.shapes.values()
    return torch.cat([parts[shape].reshape(-1) for shape in shapes])


def masked_change(made, params, client, first, mask):
    """A client's change of the full model, with parameters outside the mask fixed at zero."""
    data, spec = made.model.executor.data, made.model.objective.spec
    params = before = params * mask
    for step in range(first, first + made.steps):
        batch = data.source.draw(np.array([client]), np.array([step]), 1)
        x, y = data.batch(batch.index[0][0][batch.weight[0][0] > 0])
        leaf = params.clone().requires_grad_()
        loss = F.cross_entropy(functional_call(made.module, spec.views(leaf), (x,)), y)
        params = params - LR * mask * torch.autograd.grad(loss, leaf)[0]
    return params - before


@pytest.mark.parametrize("kind", [HeteroFL, FedRolex])
def test_requests_train_the_submodel_of_client_and_version(task, kind):
    """Models equal those of masked training, with stale requests and repeated clients."""
    made, rule = task(hidden=(WIDTH,)), kind(lr=LR, capacities=CAPACITIES)
    learner, dice, jobs = made.learner(rule), np.random.default_rng(2), []
    train = made.model.executor.train
    made.model.executor.train = lambda job: (jobs.append(job), train(job))[1]
    model, steps, out, number = made.model.start, [0] * 4, [], 0
    for version in range(6):
        for _ in range(3 if version else 6):
            client = int(dice.integers(4))
            made.issue(learner, number, client)
            mask = mask_of(made, held(made, rule, client, version))
            assert learner.share(client) == pytest.approx(float(mask.mean()))
            change = masked_change(made, model, client, steps[client], mask)
            out.append((number, client, version, mask, change))
            steps[client] += made.steps
            number += 1
        dice.shuffle(out)
        merged, out = out[:3], out[3:]
        for one in merged:
            learner.came_back(one[0])
        learner.merge_updates([one[0] for one in merged], [version - one[2] for one in merged])
        total, count = sum(one[4] for one in merged), sum(one[3] for one in merged)
        model = model + torch.where(count > 0, total / count.clamp(min=1), 0.0)
        torch.testing.assert_close(learner.server.cloud["params"], model, rtol=0, atol=1e-6)
        coverage, uncovered = float(count[count > 0].min()), float((count == 0).float().mean())
        assert learner.metrics == pytest.approx({"coverage": coverage, "uncovered": uncovered})
    # Extracted, not masked: the narrowest submodels train at their own size.
    narrow = {job.spec.size for job in jobs}
    assert min(narrow) == 12 * 3 + 3 + 4 * 3 + 4
    assert learner.server.version == 6


def test_jointly_assigned_masks_are_assigned_among_all_clients(task):
    """A request's mask is the one that its client would have in a round of all clients."""
    made = task(hidden=(WIDTH,))
    learner = made.learner(RaFed(lr=LR, capacities=(0.5, 0.25), masks="covered"))
    for version in (0, 3):
        found = learner.submodels.of_requests(range(4), [version] * 4)
        counts = np.zeros(WIDTH, dtype=int)
        for (neurons,) in found.chosen:
            counts[neurons] += 1
        assert counts.max() - counts.min() <= 1
        alone = learner.submodels.of_requests([2], [version]).chosen[0]
        assert np.array_equal(alone[0], found.chosen[2][0])
        together = learner.submodels.of_round(np.arange(4), version)
        for (one,), (other,) in zip(together.chosen, found.chosen, strict=True):
            assert np.array_equal(one, other)


def test_awaited_clients_train_the_submodels_of_their_round(task):
    """Submodels are assigned among all clients of a round, not only the awaited ones."""
    made = task(hidden=(WIDTH,))
    learner = made.learner(RaFed(lr=LR, capacities=(0.5,), masks="covered"))
    chosen, awaited = np.array([0, 1, 3]), np.array([1, 3])
    dealt = learner.submodels.of_round(chosen, 0)
    masks = [mask_of(made, dealt.chosen[row][0]) for row in (1, 2)]
    changes = [
        masked_change(made, made.model.start, client, 0, mask)
        for client, mask in zip(awaited.tolist(), masks, strict=True)
    ]
    learner.train_round(awaited, chosen)
    wanted = made.model.start + sum(changes) / sum(masks).clamp(min=1)
    torch.testing.assert_close(learner.server.cloud["params"], wanted, rtol=0, atol=1e-6)


def test_the_tested_submodel_is_evaluated(task, toy):
    made = task(hidden=(WIDTH,))
    rule = FedAvgSmall(lr=LR, capacities=(1.0, 0.25))
    learner = made.learner(rule)
    mask = mask_of(made, np.arange(3))
    params = made.model.objective.spec.views(made.model.start * mask)
    logits = functional_call(made.module, params, (toy.test_inputs,))
    loss = float(F.cross_entropy(logits, toy.test_labels))
    found, _ = learner.evaluation.of(learner.server.cloud["params"])
    assert found.loss == pytest.approx(loss, rel=1e-5)


def test_durations_and_counts_scale_with_the_submodel(task):
    """With the same draws, times and model counts are proportional to the submodel's size."""
    made = task(hidden=(WIDTH,))
    seconds = {}
    for rule in (HeteroFL(lr=LR, capacities=(1.0,)), HeteroFL(lr=LR, capacities=CAPACITIES)):
        learner, clock = made.learner(rule), Clock()
        delays = ShiftedExponential([2.0], np.array([1.3, 1.0, 1.0, 0.7]), Stream(4))
        requests = Requests(
            clock, delays, 4, Stream(5), choose=lambda number: number, traffic=[learner.traffic]
        )
        handler = Asynchronous([learner], requests)
        handler.carry_out(Ask(0, 4))
        handler.settle()
        seconds[rule.capacities] = [request.seconds for request in requests.out.values()]
        shares = [float(mask_of(made, held(made, rule, c, 0)).mean()) for c in range(4)]
        assert handler.ledger.down == pytest.approx([32 * learner.spec.size * sum(shares)])
        while (what := clock.next()) is not None:
            assert handler.happened(what) is not None
        assert handler.ledger.up == pytest.approx(handler.ledger.down)
    whole, parts = seconds.values()
    assert whole == [delays.seconds(0, client, client) for client in range(4)]
    assert parts == pytest.approx([share * one for share, one in zip(shares, whole, strict=True)])
    assert min(shares) < 0.4


class Twice(FedRolex):
    """Clients send two vectors."""

    payloads = (Payload("update"), Payload("again"))


@pytest.mark.parametrize("kind", [HeteroFL, FedRolex, Twice])
def test_clients_load_the_channel_with_the_elements_of_their_submodels(task, kind):
    """Requests of several versions, and awaited clients of a round: their union, and each one's."""
    made, rule = task(hidden=(WIDTH,)), kind(lr=LR, capacities=(0.5, 0.25))
    learner, sent = made.learner(rule), [(1, 0), (3, 0), (0, 1), (2, 1)]
    for number, (client, version) in enumerate(sent):
        learner.server.version = version
        made.issue(learner, number, client)
    awaited = np.array([0, 3])
    requests = [SimpleNamespace(client=client, version=version) for client, version in sent]
    loads = {
        ((1, 0), (3, 0), (2, 1)): learner.air_load([requests[row] for row in (0, 1, 3)]),
        ((0, 1), (3, 1)): learner.air_load_of_round(awaited, np.arange(4)),
    }
    for who, load in loads.items():
        masks = torch.stack([mask_of(made, held(made, rule, *one)) for one in who])
        vectors = len(rule.payloads)
        assert load.vectors == vectors
        assert load.jointly == int(masks.any(0).sum())
        assert load.elements.tolist() == masks.sum(1).tolist()
        assert load.elements.max() < masks.shape[1]


def test_a_client_has_the_same_capacity_for_all_tasks():
    """Capacities belong to clients and static masks to tasks."""
    rafed = {"name": "ra-fed", "capacities": [1.0, 0.25], "masks": "static"}
    config = Config.of(
        {
            "algorithm": rafed,
            "schedule": {"name": "simultaneous"},
            "delays": {"name": "wireless"},
            "dataset": "digits",
            "network": {"clients": 16},
            "training": {"rounds": 2, "local_steps": 2, "clients_per_round": 4},
            "run": {"workers": 1},
            "task": [{"name": "a"}, {"name": "b"}],
        }
    )
    first, second = build(config).learners
    shares = [learner.shares(np.arange(16)).tolist() for learner in (first, second)]
    assert shares[0] == shares[1]
    assert len(set(shares[0])) == 2
    narrow = int(np.argmin(shares[0]))
    held = [
        learner.submodels.of_requests([narrow], [0]).chosen[0][0] for learner in (first, second)
    ]
    assert not np.array_equal(*held)
