"""Algorithms equal reference loops, and coincide with each other in special cases."""

from contextlib import suppress
from dataclasses import dataclass

import numpy as np
import pytest
import torch
from torch.func import functional_call
from torch.nn import functional as F

import wirelessfl
from channels.streams import Stream
from tests.wirelessfl.small import flat, model
from wirelessfl.algorithms import algorithm_classes
from wirelessfl.algorithms.algorithm import ServerMemory
from wirelessfl.algorithms.fedavg import FedAvg
from wirelessfl.base.errors import ConfigError
from wirelessfl.models import FCNN, build_model
from wirelessfl.models.submodels import ParamSpec
from wirelessfl.runs.build import build
from wirelessfl.training.executor import Job
from wirelessfl.training.rules import Payload

FIND = "wirelessfl.config.kinds.find_algorithm"


def test_one_cell_is_fedavg(config, toy):
    """With one cell, 2 rounds of 3 edge rounds are bit-identical to 6 rounds of FedAvg."""
    star = wirelessfl.run(config("fedavg", rounds=6), data=toy, model=model())
    for algorithm in ("hist", "hfedavg"):
        one = config(algorithm, cells=1, edge_rounds=3, rounds=2)
        result = wirelessfl.run(one, data=toy, model=model())
        assert torch.equal(flat(result), flat(star)), algorithm
        assert result.rows[-1]["accuracy"] == star.rows[-1]["accuracy"]
        assert result.rows[-1]["uplink_mib"] == pytest.approx(star.rows[-1]["uplink_mib"])
    assert star.rows[-1]["accuracy"] > star.rows[0]["accuracy"] + 0.2


@pytest.mark.thorough(every=8)
@pytest.mark.parametrize(
    ("algorithm", "own"),
    [
        ("hfedavg", {}),
        ("hist", {}),
        ("hist", {"hidden_biases": "local"}),
        ("hist", {"mask_sizes": "fixed", "mask_shares": (0.7, 0.3)}),
    ],
)
@pytest.mark.parametrize("hidden", [(10,), (9, 8, 7)])
@pytest.mark.parametrize("weighting", ["uniform", "samples"])
def test_hist_and_hfedavg_equal_a_reference_loop(config, toy, algorithm, own, hidden, weighting):
    """A client-by-client loop over (4) to (7) with masked full vectors gives the same model.

    Coordinates of several cells are averaged. Local hidden biases change in a client's steps, but
    are never sent.
    """
    settings = config(
        algorithm,
        rounds=2,
        edge_rounds=2,
        clients=5,
        cells=2,
        split="dirichlet",
        min_samples=5,
        weighting=weighting,
        **own,
    )
    module = model(hidden)
    setup = build(settings, data=toy, model=module)
    training, objective = setup.learner, setup.model.objective
    sizes = np.array([len(p) for p in setup.model.client_samples], dtype=float)
    cell_of = setup.planner.network.cell_of
    if weighting == "uniform":
        sizes[:] = 1.0
    x = objective.spec.from_module(module)
    unsent = torch.zeros(objective.spec.size)
    if "hidden_biases" in own:
        for layer in setup.planner.model.partition("alternate").layers:
            objective.spec.views(unsent)[f"{layer.name}.bias"][:] = 1.0
    steps_done = 0
    for number in range(2):
        index = setup.planner.plan(number).submodels.index
        masks = torch.ones(2, objective.spec.size)
        if algorithm == "hist":
            masks = torch.zeros(2, objective.spec.size)
            for cell in range(2):
                masks[cell, index[cell][index[cell] >= 0]] = 1.0
            assert (masks.sum(0) >= 1).all()
            if "mask_shares" in own:
                assert masks[0].sum() > masks[1].sum()
        edge_models = []
        for cell in range(2):
            members = np.flatnonzero(cell_of == cell)
            edge = masks[cell] * x
            for e in range(2):
                total = torch.zeros_like(edge)
                for client in members:
                    batches = training.local.executor.data.source.draw(
                        np.array([client]), np.array([steps_done + 3 * e]), 3
                    )
                    local = edge.clone()
                    for rows, weight in zip(batches.index[0], batches.weight[0], strict=True):
                        rows = rows[weight > 0]
                        leaf = local.clone().requires_grad_()
                        logits = functional_call(
                            module, objective.spec.views(leaf), (toy.train_inputs[rows],)
                        )
                        loss = F.cross_entropy(logits, toy.train_labels[rows])
                        local = local - 0.1 * masks[cell] * torch.autograd.grad(loss, leaf)[0]
                    received = torch.where(unsent > 0, edge, local)
                    total += sizes[client] / sizes[members].sum() * received
                edge = total
            edge_models.append(edge)
        steps_done += 6
        cell_weight = [
            sizes[cell_of == cell].sum() if weighting == "samples" else 1.0 for cell in range(2)
        ]
        total = sum(w * m * e for w, m, e in zip(cell_weight, masks, edge_models, strict=True))
        x = total / sum(w * m for w, m in zip(cell_weight, masks, strict=True))
    result = wirelessfl.run(settings, data=toy, model=model(hidden))
    assert torch.allclose(flat(result), x, atol=2e-6)
    assert not torch.allclose(flat(result), objective.spec.from_module(model(hidden)), atol=1e-2)


def test_partition_all_does_not_change_cross_blocks(config, toy):
    """With partition "all", weights between neurons of different cells do not change."""
    module = model((9, 9))
    settings = config("hist", partition="all", rounds=1)
    setup = build(settings, data=toy, model=module)
    index = setup.planner.plan(0).submodels.index
    result = wirelessfl.run(settings, data=toy, model=model((9, 9)))
    moved = flat(result) != setup.model.objective.spec.from_module(model((9, 9)))
    covered = torch.zeros(setup.model.objective.spec.size, dtype=torch.bool)
    covered[index[index >= 0]] = True
    assert not moved[~covered].any()
    hidden = setup.model.objective.spec.views(covered)["layers.4.weight"]
    assert int(hidden.sum()) == 3 * (3 * 3)  # N blocks of (9/N)^2 out of N^2
    assert float(moved[covered].double().mean()) > 0.8


@pytest.mark.thorough
def test_chunks_and_executors_agree_after_three_rounds(config, toy):
    reference = wirelessfl.run(config(dropout=0.2), data=toy)
    for other in ({"chunk": 1}, {"chunk": 4}, {"executor": "loop"}):
        result = wirelessfl.run(config(dropout=0.2, **other), data=toy)
        assert torch.allclose(flat(result), flat(reference), atol=1e-5), other
        for row, expected in zip(result.rows, reference.rows, strict=True):
            assert row["sim_seconds"] == expected["sim_seconds"]
            assert row["accuracy"] == pytest.approx(expected["accuracy"], abs=1e-3)


def test_masks_are_redrawn_each_round(config, toy):
    planner = build(config("hist"), data=toy).planner
    first, second = (planner.plan(t).submodels.index for t in (0, 1))
    assert not torch.equal(first, second)
    assert torch.equal(first, planner.plan(0).submodels.index)


def test_any_module_trains_under_hfedavg_and_under_hist_once_layers_are_named(config, toy):
    def own():
        torch.manual_seed(1)
        return torch.nn.Sequential(torch.nn.Linear(12, 16), torch.nn.Tanh(), torch.nn.Linear(16, 4))

    spec = ParamSpec.of(own())
    for settings in (config("hfedavg"), config("hist", layers="0,2")):
        result = wirelessfl.run(settings, data=toy, model=own())
        assert result.rows[-1]["accuracy"] > 0.5
        own().load_state_dict(result.params)
        assert sum(v.numel() for v in result.params.values()) == spec.size
    with pytest.raises(wirelessfl.ConfigError, match="--layers"):
        wirelessfl.run(config("hist"), data=toy, model=own())


def test_models_by_import_path(config, toy, monkeypatch, tmp_path):
    (tmp_path / "my_models.py").write_text(
        "from wirelessfl.models import FCNN\n"
        "def small(input_shape, classes):\n"
        "    return FCNN(input_shape, classes, hidden=(5,))\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    settings = config("hist", model="my_models:small")
    assert build(settings, data=toy).model.objective.spec.size == 12 * 5 + 5 + 5 * 4 + 4
    built = build_model("my_models:small", (12,), 4, dropout=0.0, stream=Stream(1))
    assert isinstance(built, FCNN)
    (tmp_path / "my_script.py").write_text("import sys\nsys.exit()\n")
    with pytest.raises(wirelessfl.ConfigError, match=r"my_script:f' .* calls sys\.exit"):
        build_model("my_script:f", (12,), 4, dropout=0.0, stream=Stream(1))


@dataclass(frozen=True)
class Median(FedAvg):
    """A robust rule: the coordinate-wise median, which needs each client's update."""

    name = "median"
    payloads = (Payload("update", each=True),)

    def merge(self, server, received):
        assert received.clients.tolist() == list(range(6))
        middle = torch.quantile(received.each["update"], 0.5, dim=0, keepdim=True)
        return {"params": server["params"] + middle}


def test_an_algorithm_may_require_each_update(config, toy, monkeypatch):
    """The median rule's result equals the median of six updates, each trained in its own job."""
    monkeypatch.setattr(FIND, lambda name: Median)
    settings = config("fedavg", rounds=1)
    setup = build(settings, data=toy, model=model())
    result = wirelessfl.run(settings, data=toy, model=model())
    start, changes = setup.model.objective.spec.from_module(model()), []
    for client in range(6):
        alone = build(settings, data=toy, model=model()).learner
        one = Job(
            FedAvg(lr=0.1),
            setup.model.objective.spec,
            {"params": start[None]},
            np.zeros(1, dtype=int),
            np.array([client]),
            np.zeros(1, dtype=int),
            3,
        )
        (chunk,) = alone.local.executor.train(one)
        changes.append(chunk.payloads["update"][0])
    expected = start + torch.quantile(torch.stack(changes), 0.5, dim=0)
    assert torch.allclose(flat(result), expected, atol=1e-6)


@dataclass(frozen=True)
class Summing(ServerMemory, FedAvg):
    """Adds to the server state the sum of all mean changes; the cloud averages it over cells."""

    name = "summing"
    node_state = False

    def initial(self, params):
        return {"params": params, "sum": torch.zeros_like(params)}

    def merge(self, server, received):
        return {**super().merge(server, received), "sum": server["sum"] + received.mean["update"]}


def test_the_cloud_may_combine_server_state(config, toy, monkeypatch):
    """With ``node_state = False``, the sum, averaged over cells, equals the model's change."""
    monkeypatch.setattr("wirelessfl.config.kinds.find_local", lambda outer, name: Summing)
    setup = build(config("hfedavg"), data=toy, model=model())
    training, start = setup.learner, setup.model.objective.spec.from_module(model())
    assert not training.server.nodes
    for t in range(3):
        training.learn(setup.planner.plan(t), training.server.cloud)
    assert torch.allclose(
        start + training.server.cloud["sum"], training.server.cloud["params"], atol=1e-6
    )
    assert training.server.cloud["sum"].abs().max() > 0.01


@dataclass(frozen=True)
class Forgetful(FedAvg):
    """Has initial server state that its merge does not return."""

    name = "forgetful"

    def initial(self, params):
        return {"params": params, "momentum": torch.zeros_like(params)}


def test_a_merge_that_drops_server_state_is_refused(config, toy, monkeypatch):
    monkeypatch.setattr(FIND, lambda name: Forgetful)
    with pytest.raises(
        ConfigError, match=r"its merge gets the server state \['momentum', 'params'\]"
    ):
        wirelessfl.run(config("fedavg"), data=toy, model=model())


def test_units_of_payloads():
    """The unit is lr, 1, or a function of the rule; unknown unit names raise an error."""
    rule = FedAvg(lr=0.3, server_lr=0.5)
    assert Payload("update", unit="lr").unit_of(rule, 7) == 0.3
    assert Payload("update").unit_of(rule, 7) == 1.0
    of_steps = Payload("update", unit=lambda rule, steps: rule.server_lr * steps)
    assert of_steps.unit_of(rule, 7) == 3.5
    with pytest.raises(ValueError, match=r"unit of payload 'update' is 'server_lr': choose 'lr'"):
        Payload("update", unit="server_lr")


REACHED = 0.8
SAME_TRAINING = {"sync-bayes-st": "sync-st", "sync-ucb-st": "sync-st"}
"""These algorithms differ only in the assignment of tasks, which is the same for a single task."""


class ReachedError(Exception):
    """Ends a run that has reached the target accuracy."""


def reached(name, out):
    """Run until a row exceeds 80 % accuracy; return its accuracy, or else that of the last row.

    Step sizes are constant, so a run that stops early is a prefix of the full run. All settings are
    defaults except the number of evaluations (thirty), the threads, the chunk and the directory.
    """
    every = wirelessfl.Config.from_flags(name).training.rounds // 30
    config = wirelessfl.Config.from_flags(name, eval_every=every, threads=1, chunk=60, out=out)
    accuracies = []

    def on_row(row):
        accuracies.append(row["accuracy"])
        if accuracies[-1] > REACHED:
            raise ReachedError

    with suppress(ReachedError):
        wirelessfl.run(config, on_row=on_row)
    return accuracies[-1]


@pytest.mark.thorough(every=26)
@pytest.mark.parametrize("name", sorted(algorithm_classes().keys() - SAME_TRAINING.keys()))
def test_default_rates_train_the_default_model(name, tmp_path):
    """A row exceeds 80 % accuracy."""
    assert reached(name, tmp_path / "run") > REACHED
