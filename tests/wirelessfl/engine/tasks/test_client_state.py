"""A client's queued requests update its state in order: reference loops, batching, checkpoints."""

import itertools
import json

import numpy as np
import pytest
import torch
from torch.func import functional_call
from torch.nn import functional as F

from wirelessfl.algorithms.fadamgc import FAdamGC
from wirelessfl.algorithms.fedavg import FedAvg
from wirelessfl.algorithms.moon import Moon
from wirelessfl.algorithms.scaffold import Scaffold
from wirelessfl.engine.tasks import deferred_training

RULES = {
    "scaffold": Scaffold(lr=0.2),
    "fadamgc": FAdamGC(lr=0.02, vhat="carried"),
    "moon": Moon(lr=0.2, mu=2.0),
}


def gradient(made, params, client, step):
    """Gradient of a client's mini-batch number ``step``, counted over all its requests."""
    data = made.model.executor.data
    batch = data.source.draw(np.array([client]), np.array([step]), 1)
    x, y = data.batch(batch.index[0][0][batch.weight[0][0] > 0])
    leaf = params.clone().requires_grad_()
    spec = made.model.objective.spec
    loss = F.cross_entropy(functional_call(made.module, spec.views(leaf), (x,)), y)
    return torch.autograd.grad(loss, leaf)[0]


def scaffold_request(made, sent, client, first, own):
    """Train a SCAFFOLD client; return its model change and its next c_i.

    ``sent`` is the received (model, c), ``first`` the number of the first local step, and ``own``
    the client's current c_i.
    """
    model, control = sent
    params, total = model.clone(), torch.zeros_like(model)
    for step in range(first, first + made.steps):
        slope = gradient(made, params, client, step)
        total += slope
        params = params - 0.2 * (slope + control - own)
    return params - model, total / made.steps


def test_one_client_with_a_queue_of_scaffold_requests(task):
    """With R = 3 and b = 2, each queued request starts from the c_i that the previous one left."""
    made = task(clients=1)
    learner = made.learner(Scaffold(lr=0.2))
    size = made.model.objective.spec.size
    model, control, own = made.model.start, torch.zeros(size), torch.zeros(size)
    steps, queue, held, version = 0, [], [], 0
    for number in range(3):
        made.issue(learner, number, 0)
        queue.append((number, (model, control), version))
    for number in range(3, 15):
        first, sent, issued = queue.pop(0)
        learner.came_back(first)
        change, latest = scaffold_request(made, sent, 0, steps, own)
        held.append((first, version - issued, change, latest - own))
        steps, own = steps + made.steps, latest
        if len(held) == 2:
            numbers, staleness, changes, moves = zip(*held, strict=True)
            learner.merge_updates(numbers, staleness)
            model, control = model + sum(changes) / 2, control + sum(moves)  # n = 1
            held, version = [], version + 1
            server = learner.server
            for found, wanted in (
                (server.cloud["params"], model),
                (server.nodes["tracking"][0], control),
                (server.states.get("tracking", 0), own),
            ):
                torch.testing.assert_close(found, wanted, rtol=0, atol=1e-5)
        made.issue(learner, number, 0)
        queue.append((number, (model, control), version))
    assert version == 6


def story(made, learner, *, merges=8, lost=(), each=None, then=None):
    """Issue requests to random clients, and return them in the order of each client's queue.

    Args:
        lost: numbers of requests that are lost.
        each: called with the learner after every returned update, to train requests early.
        then: maps the learner to its replacement after each merge; None to keep it.

    Yields:
        The learner after each merge, and the clients whose updates were merged.
    """
    dice, queues, held, numbers = np.random.default_rng(0), {}, [], itertools.count()

    def ask():
        number, client = next(numbers), int(dice.integers(4))
        made.issue(learner, number, client, lost=number in lost)
        if number in lost:
            ask()
        else:
            queues.setdefault(client, []).append((number, learner.server.version))

    for _ in range(9):
        ask()
    done = 0
    while done < merges:
        client = int(dice.choice([client for client, queue in queues.items() if queue]))
        number, version = queues[client].pop(0)
        learner.came_back(number)
        held.append((number, client, learner.server.version - version))
        if each is not None:
            each(learner)
        if len(held) == 3:
            learner.merge_updates([one[0] for one in held], [one[2] for one in held])
            learner = learner if then is None else then(learner)
            yield learner, [one[1] for one in held]
            held, done = [], done + 1
        ask()


def state_of(learner):
    """Server and client states as a checkpoint contains them."""
    return learner.server.tensors()


def assert_equal(one, other):
    assert one.keys() == other.keys()
    for name, value in one.items():
        assert torch.equal(value, other[name]), name


@pytest.mark.thorough(every=8)
@pytest.mark.parametrize("name", RULES)
def test_results_do_not_depend_on_when_and_in_which_batches_requests_train(task, name, monkeypatch):
    """Server and client states are bit-identical for all four combinations.

    Requests are trained as soon as updates return or only at the merge, and one at a time or
    together with queued requests.
    """
    made, jobs = task(), []
    train = made.model.executor.train
    made.model.executor.train = lambda job: (jobs.append(job), train(job))[1]

    def eager(learner):
        learner.deferred.updates(learner.back)

    last, ahead = [], 0
    for room, each in ((1, eager), (1, None), (1 << 30, None), (1 << 30, eager)):
        monkeypatch.setattr(deferred_training, "RESULT_BYTES", room)
        made.model.executor.chunk = 1 if room == 1 else 4
        learner, lost = made.learner(RULES[name]), {2, 3, 11, 20}
        for _ in story(made, learner, lost=lost, each=each):
            last.append(state_of(learner))
            ahead += len(learner.deferred.states.snapshot()["left"])
    assert ahead > 10  # requests that were trained before they returned
    assert max(len(job.clients) for job in jobs) == 4
    assert all(len(set(job.clients.tolist())) == len(job.clients) for job in jobs)
    for merge in range(8):
        for other in (8, 16, 24):
            assert_equal(last[merge], last[other + merge])
    assert learner.server.version == 8


@pytest.mark.parametrize("name", ["scaffold", "fadamgc"])
def test_the_tracking_term_is_the_mean_over_all_clients(task, name):
    """y = (1/n) sum y_i over all n clients, even if a client has several updates in a merge."""
    made = task()
    learner, twice = made.learner(RULES[name]), 0
    for _, clients in story(made, learner, merges=12):
        server = learner.server
        twice += len(set(clients)) < len(clients)
        kept = [server.states.get("tracking", client) for client in range(4)]
        mean = sum(value for value in kept if value is not None) / 4
        torch.testing.assert_close(server.nodes["tracking"][0], mean, rtol=0, atol=1e-6)
        assert float(mean.norm()) > 0.01
    assert twice > 2


@pytest.mark.parametrize("name", RULES)
def test_a_lost_request_leaves_no_state(task, name):
    """A lost request uses up mini-batches, but does not change the client's state."""
    made = task()
    found = []
    for lost in (True, False):
        learner = made.learner(RULES[name])
        if lost:
            made.issue(learner, 0, 1, lost=True)
        else:
            learner.steps_done[1] += made.steps
        made.issue(learner, 1, 1)
        learner.came_back(1)
        learner.merge_updates([1], [0])
        found.append(state_of(learner))
    assert_equal(*found)
    # MOON's contrastive term is zero in a client's first request, which has no previous model.
    if name == "moon":
        plain = made.learner(FedAvg(lr=0.2))
        plain.steps_done[1] += made.steps
        made.issue(plain, 1, 1)
        plain.came_back(1)
        plain.merge_updates([1], [0])
        torch.testing.assert_close(plain.server.cloud["params"], found[0]["server.cloud.params"])


@pytest.mark.thorough(every=8)
@pytest.mark.parametrize("name", RULES)
@pytest.mark.parametrize("room", [1, 1 << 30])
def test_cancelled_requests_do_not_change_states(task, name, room, monkeypatch):
    """Cancelling requests that were already trained changes neither server nor client states."""
    monkeypatch.setattr(deferred_training, "RESULT_BYTES", room)
    made = task()
    made.model.executor.chunk = 1
    learner = made.learner(RULES[name])
    for number, client in enumerate([0, 1, 0, 0, 1, 2]):
        made.issue(learner, number, client)
    for number in (0, 1):
        learner.came_back(number)
    learner.merge_updates([0, 1], [0, 0])
    before = {key: value.clone() for key, value in state_of(learner).items()}
    learner.deferred.updates([3, 4, 5])
    assert learner.deferred.trained == 6
    assert_equal(state_of(learner), before)
    learner.end()
    assert_equal(state_of(learner), before)
    kept = RULES[name].client_state[0]
    left = learner.deferred.states.get(kept, 0)
    assert torch.equal(left, learner.server.states.get(kept, 0))


@pytest.mark.thorough(every=8)
@pytest.mark.parametrize("name", RULES)
@pytest.mark.parametrize("ahead", [False, True])
def test_restoring_after_every_merge_is_bit_identical(task, name, ahead):
    """Restored and uninterrupted learners have the same state after each merge."""
    made = task()

    def each(learner):
        if ahead:
            learner.deferred.updates(learner.back)

    def restored(learner):
        """A new learner, restored from a checkpoint of ``learner``."""
        other = made.learner(RULES[name])
        tensors = {key: value.clone() for key, value in learner.tensors().items()}
        other.restore(tensors, json.loads(json.dumps(learner.snapshot())))
        return other

    stories = (
        story(made, made.learner(RULES[name]), each=each, lost={4, 9}, then=then)
        for then in (None, restored)
    )
    for (whole, _), (moved, _) in zip(*stories, strict=True):
        assert_equal(whole.tensors(), moved.tensors())
        assert whole.snapshot() == moved.snapshot()
