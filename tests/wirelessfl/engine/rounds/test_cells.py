"""Asynchronous cells match synchronous rounds and a reference loop."""

import heapq
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from channels import Network
from channels.streams import Stream
from wirelessfl.algorithms.algorithm import ServerMemory
from wirelessfl.algorithms.fedadam import FedAdam
from wirelessfl.models import FCNN
from wirelessfl.runs.build import build
from wirelessfl.runs.engine import Engine
from wirelessfl.runs.execution import Execution
from wirelessfl.runs.folder.new_folder import create

CELL_OF = [0, 0, 0, 1, 1, 2, 3]
CPU_HZ = [1e9, 2e9, 1.1e9, 3e8, 4e8, 7e8, 9e8]
SEED, EDGE_ROUNDS, STEPS, BATCH, LR, RATIO, POWER, RATE = 5, 2, 3, 8, 0.1, 0.2, 0.9, 1e6
LOOP = {
    "seed": SEED,
    "split": "dirichlet",
    "alpha": 0.7,
    "min_samples": 5,
    "edge_rounds": EDGE_ROUNDS,
    "uplink": "fixed",
    "rate_mbps": RATE / 1e6,
    "lr_schedule": "poly",
    "lr_ratio": RATIO,
    "lr_power": POWER,
    "weighting": "samples",
    "backhaul_mbps": 0.5,
}


OVER_THE_AIR = {"uplink": "aircomp", "beamformer": "random"}


class CloudMoments(ServerMemory, FedAdam):
    """FedAdam at edge servers; the cloud averages their moments like the model."""

    node_state = False


def under(buffer):
    return {"schedule": "buffered", "buffer": buffer}


def ran(config, data, *, model=None, network=None):
    """Run ``config`` to the end."""
    setup = build(config, model=model, data=data, network=network)
    engine = Engine(setup)
    directory = create(config.run.out, setup.config)
    start = setup.learner.server.cloud["params"].clone()
    Execution(engine, directory, None).run()
    return SimpleNamespace(
        setup=setup,
        rows=directory.rows(),
        start=start,
        params=setup.learner.server.cloud["params"],
    )


@pytest.mark.thorough(every=8)
@pytest.mark.parametrize(
    ("name", "flags", "tolerance"),
    [
        ("hfedavg", {}, None),
        ("hist", {}, None),
        ("hist", {"partition": "all", "hidden": (7, 6, 5)}, None),
        ("hist", {"hidden_biases": "local", "weighting": "samples"}, None),
        ("hist", OVER_THE_AIR, None),
        ("hist", {"cloud_lr": 0.5}, None),
        ("hist", {"local": "fadamgc", "lr": 0.01}, 1e-4),
        ("hfedavg", {"local": "scaffold"}, None),
        ("hist", {"local": f"{__name__}:CloudMoments"}, 1e-4),
        ("hfedavg", {"local": "heterofl", "capacities": (1, 0.5)}, None),
        ("hfedavg", {"downlink_compression": "quantisation", "lr_schedule": "poly"}, None),
    ],
)
def test_merging_all_cells_together_equals_synchronous_rounds(config, toy, name, flags, tolerance):
    """With B = N, times are equal and parameters agree with those of synchronous rounds.

    The tolerance is 1e-6, or a relative 1e-4 of the change with Adam.
    """
    rounds = ran(config(name, rounds=4, backhaul_mbps=1.0, **flags), toy)
    cells = ran(config(name, rounds=4, backhaul_mbps=1.0, **flags, **under(3)), toy)
    difference = (rounds.params - cells.params).norm()
    if tolerance is None:
        torch.testing.assert_close(cells.params, rounds.params, rtol=0, atol=1e-6)
    else:
        assert difference <= tolerance * (rounds.params - rounds.start).norm()
    mine, others = cells.setup.learner.server, rounds.setup.learner.server
    for name in others.cloud.keys() - {"params"}:
        torch.testing.assert_close(mine.cloud[name], others.cloud[name], rtol=1e-3, atol=1e-6)
    for name in others.nodes:
        torch.testing.assert_close(mine.nodes[name], others.nodes[name], rtol=1e-3, atol=1e-5)
    assert ("first" in mine.cloud) == flags.get("local", "").endswith("CloudMoments")
    assert mine.version == others.version == 4
    assert cells.setup.handler.rounds_done == [4, 4, 4]
    assert len(cells.rows) == len(rounds.rows) == 5
    for row, other in zip(rounds.rows, cells.rows, strict=True):
        assert other["sim_seconds"] == row["sim_seconds"]
        assert other["staleness_max"] == 0
        # Rounds report the maximum compression error over cells, asynchronous cells the mean.
        for field in row.keys() - {"wall_seconds", "compression_error"}:
            assert other[field] == pytest.approx(row[field], rel=1e-4), field


@pytest.mark.thorough(every=8)
@pytest.mark.parametrize("name", ["hfedavg", "hist"])
@pytest.mark.parametrize("schedule", [{}, under(2)])
def test_the_cloud_steps_along_the_mean_change(config, toy, name, schedule):
    """After one aggregation the change is cloud_lr times that of a cloud that averages."""
    whole = ran(config(name, rounds=1, **schedule), toy)
    part = ran(config(name, rounds=1, cloud_lr=0.25, **schedule), toy)
    change = whole.params - whole.start
    assert change.norm() > 1e-3
    torch.testing.assert_close(part.params, part.start + 0.25 * change, rtol=0, atol=1e-6)


def logits(layers, x):
    first, first_bias, second, second_bias = layers
    return torch.relu(x @ first.T + first_bias) @ second.T + second_bias


def batch(part, client, step):
    epoch, number = divmod(step, -(-len(part) // BATCH))
    shuffle = Stream(SEED).child("client", client, "batches").generator(epoch)
    return part[shuffle.permutation(len(part))[number * BATCH : (number + 1) * BATCH]]


def masks_of(neurons, like):
    """Masks by layer: 1 for the parameters of a cell with these hidden neurons, otherwise 0."""
    masks = [torch.zeros_like(layer) for layer in like]
    masks[0][neurons], masks[1][neurons], masks[2][:, neurons], masks[3][:] = 1, 1, 1, 1
    return masks


def cell_round(data, parts, model, masks, clients, first_steps, lr):
    """E edge rounds of SGD on the masked model, each ending with a sample-weighted mean."""
    layers = [layer * mask for layer, mask in zip(model, masks, strict=True)]
    weight = np.array([len(parts[client]) for client in clients], dtype=np.float64)
    for edge_round in range(EDGE_ROUNDS):
        ends = []
        for client in clients:
            end = [layer.clone() for layer in layers]
            for step in range(STEPS):
                number = first_steps + edge_round * STEPS + step
                rows = torch.from_numpy(batch(parts[client], client, number))
                leaves = [layer.requires_grad_() for layer in end]
                out = logits(leaves, data.train_inputs[rows])
                loss = F.cross_entropy(out, data.train_labels[rows])
                slopes = torch.autograd.grad(loss, leaves)
                end = [
                    (p - lr * g * mask).detach()
                    for p, g, mask in zip(leaves, slopes, masks, strict=True)
                ]
            ends.append(end)
        layers = [
            sum(w * layer for w, layer in zip(weight / weight.sum(), each, strict=True))
            for each in zip(*ends, strict=True)
        ]
    return layers


def reference_run(data, run, merges, buffer, neurons):
    """Simulate the cells one by one: finish times, local training, and merges by coverage.

    ``neurons``: initial neurons of each cell; None if all cells have all neurons.
    """
    cells, width = 4, 9
    members = [[c for c, cell in enumerate(CELL_OF) if cell == j] for j in range(cells)]
    parts = [np.asarray(part) for part in run.setup.model.client_samples]
    layers = [p.detach().clone() for p in small_model().parameters()]
    size = sum(layer.numel() for layer in layers)
    dealt, coming, rows = neurons is not None, [], []
    neurons = neurons or [np.arange(width)] * cells
    counts, waiting, version, mib, backhaul = [0] * cells, [], 0, 0.0, 0.0

    def give(cell, now):
        length = int(sum(mask.sum() for mask in masks_of(neurons[cell], layers)))
        steps = STEPS * 1e6 / min(CPU_HZ[c] for c in members[cell]) * length / size
        seconds = EDGE_ROUNDS * (steps + 2 * 32 * length / RATE) + 2 * 32 * length / 5e5
        heapq.heappush(coming, (now + seconds, cell, version, layers, length))

    for cell in range(cells):
        give(cell, 0.0)
    while version < merges:
        now, *work = heapq.heappop(coming)
        waiting.append(work)
        if len(waiting) < buffer:
            continue
        total, weight = ([torch.zeros_like(layer) for layer in layers] for _ in range(2))
        stale = [version - sent for _, sent, _, _ in waiting]
        for cell, sent, model, length in waiting:
            lr = LR * ((1 - RATIO) * (1 - sent / merges) ** POWER + RATIO)
            masks = masks_of(neurons[cell], layers)
            first = counts[cell] * EDGE_ROUNDS * STEPS
            end = cell_round(data, parts, model, masks, members[cell], first, lr)
            samples = sum(len(parts[c]) for c in members[cell])
            for layer, mask in enumerate(masks):
                total[layer] += samples * (end[layer] - model[layer] * mask)
                weight[layer] += samples * mask
            counts[cell] += 1
            mib += EDGE_ROUNDS * 4 * length * len(members[cell]) / len(CELL_OF) / 2**20
            backhaul += 2 * 4 * length / cells / 2**20
        layers = [
            layer + moved / torch.where(share > 0, share, 1.0)
            for layer, moved, share in zip(layers, total, weight, strict=True)
        ]
        version += 1
        merged = sorted(cell for cell, *_ in waiting)
        waiting = []
        if dealt:
            pool = np.sort(np.concatenate([neurons[cell] for cell in merged]))
            stream = Stream(SEED).child("round", version).child("mask", "layers.1")
            circle = stream.generator().permutation(len(pool))
            for cell in merged:
                some, circle = np.split(circle, [len(neurons[cell])])
                neurons[cell] = np.sort(pool[some])
        for cell in merged:
            give(cell, now)
        rows.append((now, float(np.mean(stale)), max(stale), mib, backhaul))
    return layers, rows, counts, neurons


def small_model():
    torch.manual_seed(3)
    return FCNN((12,), 4, hidden=(9,))


@pytest.mark.thorough(every=8)
@pytest.mark.parametrize(
    ("name", "buffer"), [("hfedavg", 1), ("hfedavg", 3), ("hist", 2), ("hist", 3)]
)
def test_cells_of_unequal_speed_match_the_reference_loop(config, toy, name, buffer):
    """Merge times, staleness, submodels, costs and parameters equal the reference loop's."""
    merges = 9
    network = Network.from_snr(CELL_OF, cpu_hz=CPU_HZ, snr_db=20)
    settings = config(name, network=True, rounds=merges, lr=LR, **LOOP, **under(buffer))
    run = ran(settings, toy, model=small_model(), network=network)
    first = None
    if name == "hist":
        found = run.setup.planner.plan(0).submodels.neurons
        first = [np.array(neurons) for (neurons,) in found]
        assert [len(neurons) for neurons in first] == [3, 2, 2, 2]
    layers, rows, counts, neurons = reference_run(toy, run, merges, buffer, first)
    expected = torch.cat([layer.reshape(-1) for layer in layers])
    torch.testing.assert_close(run.params, expected, rtol=0, atol=2e-6)
    assert run.setup.handler.rounds_done == counts
    assert sum(counts) == merges * buffer
    assert len(set(counts)) > 1
    assert max(row[2] for row in rows) > 0
    if name == "hist":
        assert [part[0].tolist() for part in run.setup.handler.parts.neurons] == [
            part.tolist() for part in neurons
        ]
    names = ("sim_seconds", "staleness_mean", "staleness_max", "uplink_mib", "backhaul_mib")
    assert len(run.rows) == merges + 1
    for merge, (row, other) in enumerate(zip(run.rows[1:], rows, strict=True), start=1):
        assert (row["round"], row["version"]) == (merge, merge)
        assert row["updates"] == merge * buffer
        assert [row[field] for field in names] == pytest.approx(list(other), rel=1e-9)


def test_a_plan_has_the_channels_of_the_cell_and_the_step_size_of_the_model(config, toy):
    """One cell has done more rounds than its model has merges, one fewer, one as many."""
    setup = build(
        config("hfedavg", rounds=9, uplink="aircomp", lr_schedule="poly", **under(2)), data=toy
    )
    handler, planner = setup.handler, setup.planner
    handler.rounds_done, handler.sent = [3, 1, 2], {0: 1, 1: 4, 2: 2}
    draws = []
    for cell, (done, version) in enumerate([(3, 1), (1, 4), (2, 2)]):
        plan, whole = handler.plan(cell), planner.plan(done)
        assert plan.clients.tolist() == [2 * cell, 2 * cell + 1]
        assert np.array_equal(plan.draws.h, whole.draws.of(plan.clients).h)
        assert plan.price.seconds[cell] == whole.price.seconds[cell]
        assert plan.lr_share == planner.lr_share(version)
        draws.append(plan.draws.h)
    assert len({draw.tobytes() for draw in draws}) == 3


@pytest.mark.parametrize(
    ("name", "flags", "jobs"),
    [
        ("hist", OVER_THE_AIR | {"local": "fadamgc", "lr": 0.01}, EDGE_ROUNDS),
        ("hfedavg", {"local": "heterofl", "capacities": (1, 0.5), "padding": 0.9}, EDGE_ROUNDS),
        (
            "hfedavg",
            {"lr_schedule": "poly", "lr_ratio": RATIO},
            2 * EDGE_ROUNDS,
        ),  # two versions, so two step sizes
    ],
)
def test_cells_of_a_merge_train_in_one_job(config, toy, monkeypatch, name, flags, jobs):
    """They have the model that they have if each cell trains alone, bit for bit."""
    wanted = config(name, rounds=9, edge_rounds=EDGE_ROUNDS, **flags, **under(2))
    nodes, counts = [], []
    for together in (True, False):
        setup = build(wanted, data=toy, model=small_model())
        handler, executor, training = setup.handler, setup.learner.local.executor, setup.learner
        train, trained, labels = executor.train, training.train, []
        with monkeypatch.context() as patch:
            patch.setattr(
                executor,
                "train",
                lambda job, train=train, into=labels: (into.append(1), train(job))[1],
            )
            if not together:
                patch.setattr(
                    training,
                    "train",
                    lambda issued, trained=trained: [trained([one])[0] for one in issued],
                )
            model = training.server.cloud
            handler.rounds_done, handler.sent = [0, 3, 0], {0: 0, 1: 1}
            handler._models = {0: model, 1: model}
            handler._train([0, 1])
        nodes.append(training.server.cloud)
        counts.append(len(labels))
    assert counts == [jobs, 2 * EDGE_ROUNDS]
    for key, value in nodes[0].items():
        assert torch.equal(value, nodes[1][key])
