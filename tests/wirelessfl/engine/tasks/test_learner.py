"""Task training matches reference loops with their own queues, mini-batches and merges.

The loops use autograd and share no code with the learner, the requests or the executors. They
redraw durations, clients and batches from the named streams, and train a request when its update
arrives.
"""

import heapq
from collections import Counter, deque
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from channels.streams import Stream
from wirelessfl.config import Config
from wirelessfl.models import FCNN
from wirelessfl.runs.build import build
from wirelessfl.runs.engine import Engine
from wirelessfl.runs.execution import Execution
from wirelessfl.runs.folder.new_folder import create

SEED, STEPS, BATCH, LR, DECAY, SERVER_LR, STEP_SECONDS = 5, 3, 8, 0.2, 0.01, 0.7, 0.1
COMMON = {
    "seed": SEED,
    "split": "dirichlet",
    "alpha": 0.7,
    "min_samples": 5,
    "local_steps": STEPS,
    "batch_size": BATCH,
    "lr": LR,
    "weight_decay": DECAY,
    "server_lr": SERVER_LR,
    "threads": 1,
    "workers": 1,
    "chunk": 3,
    "eval_every": 1,
    "delays": "shifted-exponential",
    "step_seconds": STEP_SECONDS,
}


def small_model():
    torch.manual_seed(3)
    return FCNN((12,), 4, hidden=(9,))


@pytest.fixture
def ran(tmp_path, toy):
    """A factory of finished runs: engine, rows, initial layers, and all training jobs."""

    def make(algorithm, *, watch=lambda engine: None, **flags):
        config = Config.from_flags(algorithm, **COMMON | {"out": tmp_path / "run"} | flags)
        module = small_model()
        engine = Engine(build(config, data=toy, model=module))
        executor, jobs = engine.setup.learners[0].local.executor, []
        train = executor.train
        executor.train = lambda job: (jobs.append(job), train(job))[1]
        watch(engine)
        execution = Execution(engine, create(config.run.out, config), None)
        execution.run()
        layers = [p.detach().clone() for p in small_model().parameters()]
        client_samples = [np.asarray(part) for part in engine.setup.models[0].client_samples]
        return SimpleNamespace(
            engine=engine,
            rows=execution.directory.rows(),
            layers=layers,
            jobs=jobs,
            client_samples=client_samples,
        )

    return make


def logits(layers, x):
    first, first_bias, second, second_bias = layers
    return torch.relu(x @ first.T + first_bias) @ second.T + second_bias


def batch(part, client, step):
    """Sample indices of a client's mini-batch number ``step``; each epoch is reshuffled."""
    epoch, index = divmod(step, -(-len(part) // BATCH))
    shuffle = Stream(SEED).child("client", client, "batches").generator(epoch)
    return part[shuffle.permutation(len(part))[index * BATCH : (index + 1) * BATCH]]


def trained(data, part, client, layers, first_step):
    """Change of each layer after a client's local steps of SGD with weight decay."""
    own = [layer.clone() for layer in layers]
    for step in range(first_step, first_step + STEPS):
        rows = torch.from_numpy(batch(part, client, step))
        leaves = [layer.requires_grad_() for layer in own]
        loss = F.cross_entropy(logits(leaves, data.train_inputs[rows]), data.train_labels[rows])
        slopes = torch.autograd.grad(loss, leaves)
        own = [(p - LR * (g + DECAY * p)).detach() for p, g in zip(leaves, slopes, strict=True)]
    return [after - before for after, before in zip(own, layers, strict=True)]


def accuracy(data, layers):
    found = logits(layers, data.test_inputs).argmax(-1)
    return float((found == data.test_labels).double().mean())


def asynchronous(
    data, ran, weigh, *, clients, requests, buffer, merges, drop_out=0.0, max_staleness=np.inf
):
    """Reference loop of buffered asynchronous training, which trains one request at a time.

    ``weigh`` maps the clients and staleness of a buffer's updates to their weights; None for 1 /
    number of requests of the version. Returns the model, the rows, and all updates in order of
    arrival.
    """
    stream = Stream(SEED)
    places = stream.child("requests", "clients").generator(0).random(1024)
    fates = stream.child("requests", "drop-outs").generator(0).random(1024)
    excess = stream.child("durations").generator(0).exponential(size=1024)
    shares = {1: [1.0], 5: [1.3, 1.0, 1.0, 1.0, 0.7]}[clients]
    speeds = stream.child("client speeds").generator().permutation(shares)
    free, steps = [0.0] * clients, [0] * clients
    layers, asked, lost, back = ran.layers, 0, 0, []
    coming, held, rows, version = [], [], [], 0
    dropped, issued = 0, Counter()

    def ask(now):
        nonlocal asked
        client, number = int(places[asked] * clients), asked
        seconds = STEPS * STEP_SECONDS * speeds[client] * (1 + 2 * excess[number])
        gone = fates[number] < drop_out
        if gone:
            seconds *= fates[number] / drop_out
        free[client] = max(free[client], now) + seconds  # after the requests in its queue
        heapq.heappush(coming, (free[client], number, client, gone, version, layers, steps[client]))
        steps[client] += STEPS
        issued[version] += 1
        asked += 1

    for _ in range(requests):
        ask(0.0)
    while version < merges:
        now, _, client, gone, sent, model, first = heapq.heappop(coming)
        lost += gone
        if not gone:
            update = trained(data, ran.client_samples[client], client, model, first)
            back.append(update)
            if version - sent <= max_staleness:
                held.append((client, version - sent, update))
            else:
                dropped += 1
        if len(held) == buffer:
            who, stale, updates = zip(*held, strict=True)
            if weigh is None:
                weights = [1 / issued[version - age] for age in stale]
            else:
                weights = weigh(np.array(who), np.array(stale))
            held = []
            layers = [
                layer + SERVER_LR * sum(w * u for w, u in zip(weights, own, strict=True))
                for layer, own in zip(layers, zip(*updates, strict=True), strict=True)
            ]
            version += 1
            rows.append(
                {
                    "round": version,
                    "sim_seconds": now,
                    "staleness_mean": np.mean(stale),
                    "staleness_max": max(stale),
                    "updates": len(back),
                    "lost": lost,
                    "accuracy": accuracy(data, layers),
                    "sent": asked,
                    **({} if max_staleness == np.inf else {"too_stale": dropped}),
                }
            )
        ask(now)
    return layers, rows, back


def assert_same(ran, layers, rows):
    found = ran.engine.params().values()
    for own, other in zip(found, layers, strict=True):
        torch.testing.assert_close(own, other, rtol=0, atol=1e-5)
    vector = 4 * sum(layer.numel() for layer in layers) / len(ran.client_samples) / 2**20
    assert len(ran.rows) == len(rows) + 1
    for own, other in zip(ran.rows[1:], rows, strict=True):
        sent = other.pop("sent")
        assert own["uplink_mib"] == pytest.approx(vector * other["updates"])
        assert own["downlink_mib"] == pytest.approx(vector * sent)
        for name, value in other.items():
            assert own[name] == pytest.approx(value, rel=1e-9), name


def versions_together(jobs):
    """Maximum number of model versions in one training job."""
    return max(len(set(job.node.tolist())) for job in jobs)


def fedbuff_weights(who, stale):
    return (1 + stale) ** -0.5 / len(who)


def even_weights(who, stale):
    return np.full(len(who), 1 / len(who))


@pytest.mark.parametrize("algorithm", ["fedbuff", "fedast"])
def test_one_client_trains_several_versions_together(ran, toy, algorithm):
    """Requests of different versions in one client's queue are trained in the same job."""
    run = ran(algorithm, clients=1, requests=3, buffer=2, rounds=12)
    weigh = fedbuff_weights if algorithm == "fedbuff" else even_weights
    layers, rows, _ = asynchronous(toy, run, weigh, clients=1, requests=3, buffer=2, merges=12)
    assert max(row["staleness_max"] for row in rows) > 0
    assert versions_together(run.jobs) > 1
    assert_same(run, layers, rows)


@pytest.mark.thorough(every=8)
@pytest.mark.parametrize("executor", ["stacked", "vmap", "loop"])
@pytest.mark.parametrize(
    ("algorithm", "drop_out", "flags"),
    [("fedbuff", 0.0, {}), ("fedast", 0.3, {"weighting": "samples"})],
)
def test_clients_train_the_models_they_received(ran, toy, algorithm, drop_out, flags, executor):
    """Jobs mix clients and model versions in any order, with and without lost requests."""
    run = ran(
        algorithm, clients=5, requests=7, buffer=3, rounds=14, drop_out=drop_out,
        executor=executor, **flags,
    )  # fmt: skip
    sizes = np.array([len(part) for part in run.client_samples])
    assert len(set(sizes.tolist())) == 5

    def weigh(who, stale):
        if algorithm == "fedbuff":
            return fedbuff_weights(who, stale)
        return sizes[who] / sizes[who].sum()

    layers, rows, _ = asynchronous(
        toy, run, weigh, clients=5, requests=7, buffer=3, merges=14, drop_out=drop_out
    )
    assert (rows[-1]["lost"] > 5) == (drop_out > 0)
    assert versions_together(run.jobs) > 2
    assert any(job.clients.tolist() != list(range(len(job.clients))) for job in run.jobs)
    assert any(len(set(job.first_steps.tolist())) > 2 for job in run.jobs)
    assert_same(run, layers, rows)


@pytest.mark.parametrize("drop_out", [0.0, 0.3])
def test_stale_updates_are_dropped_and_others_weighted_by_their_version(ran, toy, drop_out):
    """Dropped updates are sent and replaced, but not merged; lost ones count in their version."""
    size = {"clients": 5, "requests": 7, "buffer": 2}
    flags = {"max_staleness": 2, "update_weights": "version"}
    run = ran("fedast", **size, **flags, rounds=14, drop_out=drop_out)
    layers, rows, back = asynchronous(
        toy, run, None, **size, merges=14, drop_out=drop_out, max_staleness=2
    )
    assert rows[-1]["too_stale"] == len(back) - 2 * 14 > 5
    assert max(row["staleness_max"] for row in rows) == 2
    assert_same(run, layers, rows)


def test_spread_is_measured_over_the_latest_updates(ran, toy):
    """Each measured sigma equals that of Algorithm 4 for the last V = 4 updates.

    Settings accept option D only for several tasks, so the test sets it on the scheduler.
    """
    seen = []

    def watch(engine):
        learner, back = engine.setup.learners[0], engine.setup.handler.ledger.returned
        learner.spread_updates, learner.recent = 4, deque(maxlen=4)
        engine.setup.schedule.period = 4  # 2/3 * M * sum R
        spread = learner.spread
        learner.spread = lambda: (seen.append((back[0], spread())), seen[-1][1])[1]

    run = ran("fedast", clients=5, requests=6, buffer=3, rounds=10, watch=watch)
    layers, rows, back = asynchronous(
        toy, run, even_weights, clients=5, requests=6, buffer=3, merges=10
    )
    assert_same(run, layers, rows)
    assert [count for count, _ in seen] == list(range(4, 31, 4))
    for count, sigma in seen:
        latest = [torch.cat([u.flatten() for u in own]) for own in back[count - 4 : count]]
        mean = sum(latest) / 4
        apart = sum(float((own - mean).square().sum()) for own in latest) / 4
        expected = (LR * SERVER_LR * STEPS * apart / float(mean.square().sum())) ** 0.5
        assert sigma == pytest.approx(expected, rel=1e-4)


@pytest.mark.thorough(every=8)
@pytest.mark.parametrize(
    ("weighting", "drop_out", "availability"),
    [("uniform", 0.0, 1.0), ("samples", 0.0, 0.8), ("samples", 0.4, 1.0)],
)
def test_rounds_train_only_awaited_clients(ran, toy, weighting, drop_out, availability):
    """Only the first two of four clients, or fewer after drop-outs, train and are merged."""
    plans = []

    def watch(engine):
        plan = engine.setup.handler.plan
        engine.setup.handler.plan = lambda number: (plans.append(plan(number)), plans[-1])[1]

    run = ran(
        "sync-st", clients=5, rounds=10, clients_per_round=4, first=2, weighting=weighting,
        drop_out=drop_out, availability=availability, chunk=1, watch=watch,
    )  # fmt: skip
    stream = Stream(SEED)
    speeds = stream.child("client speeds").generator().permutation([1.3, 1.0, 1.0, 1.0, 0.7])
    excess = stream.child("durations").generator(0).exponential(size=1024)
    fates = stream.child("requests", "drop-outs").generator(0).random(1024)
    available = round(5 * availability)
    vector = 4 * sum(layer.numel() for layer in run.layers) / 5 / 2**20
    layers, steps, now, back, gone = run.layers, [0] * 5, 0.0, 0, 0
    few = 0
    for number, row in enumerate(run.rows[1:]):
        in_time, dropped = [], []
        for place, client in enumerate(plans[number].chosen[0].tolist()):
            drawn = number * available + place
            seconds = STEPS * STEP_SECONDS * speeds[client] * (1 + 2 * excess[drawn])
            if fates[drawn] < drop_out:
                dropped.append(seconds * fates[drawn] / drop_out)
            else:
                in_time.append((seconds, client))
        awaited = sorted(in_time)[:2]
        now += max([s for s, _ in awaited] + (dropped if len(awaited) < 2 else []))
        few += len(awaited) < 2
        who = sorted(client for _, client in awaited)
        if who:
            updates = [trained(toy, run.client_samples[c], c, layers, steps[c]) for c in who]
            sizes = [len(run.client_samples[c]) if weighting == "samples" else 1 for c in who]
            layers = [
                layer + SERVER_LR * sum(n / sum(sizes) * u for n, u in zip(sizes, own, strict=True))
                for layer, own in zip(layers, zip(*updates, strict=True), strict=True)
            ]
        for client in who:
            steps[client] += STEPS
        back, gone = back + len(who), gone + len(dropped)
        assert row["sim_seconds"] == pytest.approx(now)
        assert row["accuracy"] == accuracy(toy, layers)
        assert (row["updates"], row["lost"]) == (back, gone)
        assert row["uplink_mib"] == pytest.approx(vector * back)
        assert row["downlink_mib"] == pytest.approx(vector * 4 * (number + 1))
    assert (few > 0) == (drop_out > 0)
    assert len(set(steps)) > 2
    for own, other in zip(run.engine.params().values(), layers, strict=True):
        torch.testing.assert_close(own, other, rtol=0, atol=1e-5)
    found = run.engine.setup.learners[0].mean_losses(np.array([3, 0]))
    for client, loss in zip((3, 0), found, strict=True):
        own = run.client_samples[client]
        expected = F.cross_entropy(logits(layers, toy.train_inputs[own]), toy.train_labels[own])
        assert loss == pytest.approx(float(expected), rel=1e-4)
