"""Penalties that compare models match NumPy, and training with them matches plain autograd."""

import copy
import pickle
from dataclasses import dataclass, replace
from itertools import cycle
from typing import ClassVar

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn
from torch.nn import functional as F

from tests.executors import EXECUTORS
from tests.wirelessfl.training.jobs import job_for, training_data, updates
from wirelessfl.algorithms.fedavg import FedAvg
from wirelessfl.base.errors import ConfigError
from wirelessfl.models import FCNN, LeNet5
from wirelessfl.runs.build import build
from wirelessfl.training.cohort import Contrast, LogitDistillation, Outputs, RelationDistillation
from wirelessfl.training.module_executors import VmapExecutor
from wirelessfl.training.rules import idle_at_zero
from wirelessfl.training.stacked import StackedExecutor
from wirelessfl.training.workers.workers_executor import WorkersExecutor

SIZES = [20, 5, 50, 16, 33]
CONTRAST = Contrast(mu=3.0, tau=0.5)
PLAIN = LogitDistillation(2.0)
RELATION = RelationDistillation(1.5, (2, 0))
ALONE = [(CONTRAST,), (PLAIN,), (RELATION,)]
PAIRS = [(PLAIN, RELATION), (CONTRAST, PLAIN)]
DECAYS = (0.0, 0.1)


def normal(*shape, seed=0, scale=1.0):
    return scale * torch.randn(
        *shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64
    )


def softmax(row):
    shares = np.exp(row - row.max())
    return shares / shares.sum()


def divergence(p, q):
    return sum(a * (np.log(a) - np.log(b)) for a, b in zip(p, q, strict=True) if a > 0)


def test_contrast_is_equation_3():
    own, like, unlike = (normal(6, 5, seed=seed) for seed in range(3))
    outputs = [Outputs(torch.zeros(6, 4), features) for features in (own, like, unlike)]
    found = Contrast(1.7, 0.3).loss(
        outputs[0], {"global": outputs[1], "previous": outputs[2]}, torch.zeros(6, dtype=torch.long)
    )
    for row in range(6):
        z, glob, prev = (t[row].numpy() for t in (own, like, unlike))
        a, b = (
            z @ other / np.linalg.norm(z) / np.linalg.norm(other) / 0.3 for other in (glob, prev)
        )
        expected = -1.7 * np.log(np.exp(a) / (np.exp(a) + np.exp(b)))
        assert float(found[row]) == pytest.approx(expected, rel=1e-12)


def test_zero_features_give_finite_contrast():
    own, other = torch.zeros(2, 3, requires_grad=True), normal(2, 3).float()
    outputs = {"global": Outputs(own, other), "previous": Outputs(own, 0 * other)}
    found = Contrast(1.0, 0.5).loss(Outputs(own, own), outputs, torch.zeros(2, dtype=torch.long))
    assert torch.allclose(found, torch.full((2,), np.log(2.0)))
    found.sum().backward()
    assert not own.grad.any()


def test_plain_distillation_is_the_divergence_from_the_teacher():
    student, teacher = normal(6, 5, seed=1), normal(6, 5, seed=2)
    found = LogitDistillation(0.5).loss(
        Outputs(student), {"teacher": Outputs(teacher)}, torch.zeros(6, dtype=torch.long)
    )
    for row in range(6):
        expected = 0.5 * divergence(softmax(teacher[row].numpy()), softmax(student[row].numpy()))
        assert float(found[row]) == pytest.approx(expected, rel=1e-12)


@given(st.sets(st.integers(0, 5)), st.integers(0, 10_000))
def test_relation_distillation_written_out(old, seed):
    """For any set of old classes, the loss equals its formula."""
    student, teacher = normal(7, 6, seed=seed), normal(7, 6, seed=seed + 1, scale=3.0)
    labels = torch.arange(7) % 6
    found = RelationDistillation(0.5, tuple(old)).loss(
        Outputs(student), {"teacher": Outputs(teacher)}, labels
    )
    for row, label in enumerate(labels.tolist()):
        target, known = np.eye(6)[label], softmax(teacher[row].numpy())
        for entry in old:
            target[entry] = known[entry]
        expected = 0.5 * divergence(target / target.sum(), softmax(student[row].numpy()))
        assert float(found[row]) == pytest.approx(expected, rel=1e-9, abs=1e-12)


def test_without_old_classes_relation_distillation_is_the_cross_entropy():
    student, labels = normal(7, 6), torch.arange(7) % 6
    found = RelationDistillation(1.0).loss(
        Outputs(student), {"teacher": Outputs(normal(7, 6, seed=1))}, labels
    )
    assert torch.allclose(found, F.cross_entropy(student, labels, reduction="none"))


@pytest.mark.parametrize("penalty", [PLAIN, RELATION, RelationDistillation(1.0, (0, 1, 2, 3))])
def test_a_one_hot_teacher_gives_finite_gradients(penalty):
    """Gradients are finite even if probabilities of the teacher underflow to zero."""
    student = torch.zeros(4, 4, requires_grad=True)
    teacher = torch.eye(4).roll(1, 0) * 1e4
    penalty.loss(Outputs(student), {"teacher": Outputs(teacher)}, torch.arange(4)).sum().backward()
    assert student.grad.isfinite().all()
    assert student.grad.any()


def branched():
    """A model that is not a chain; the linear layer that is called last is defined first."""

    class Branched(nn.Module):
        def __init__(self):
            super().__init__()
            self.last, self.first = nn.Linear(7, 4), nn.Linear(9, 7)

        def forward(self, x):
            return self.last(torch.tanh(self.first(x)) + x[:, :7])

    return Branched()


MODELS = {
    "fcnn": (lambda: FCNN((9,), 4, hidden=(13, 8)), (9,)),
    "lenet5": (lambda: LeNet5((1, 28, 28), 4), (1, 28, 28)),
    "branched": (branched, (9,)),
}


@dataclass(frozen=True)
class Keeping(FedAvg):
    """FedAvg whose clients keep their previous models."""

    client_state: ClassVar = ("previous",)
    decay: float = 0.0  # above 0 a step is not plain SGD

    @idle_at_zero("decay")
    def gradient(self, grads, params, cohort):
        return grads + self.decay * params

    def keep(self, params, state, cohort):
        return {"previous": params.clone()}


def case(name, penalties, *, decay=0.0, steps=5):
    """A job whose clients have previous models, except client 3, which trains for the first time.

    There are two groups, with different models and teachers.
    """
    torch.manual_seed(0)
    make, shape = MODELS[name]
    module = make()
    data = training_data(shape, SIZES)
    objective, job = job_for(module, data, steps=steps)
    sent, teacher = (
        job.servers["params"] + normal(2, objective.spec.size, seed=seed, scale=0.1).float()
        for seed in (1, 2)
    )
    own = job.servers["params"] + normal(5, objective.spec.size, seed=3, scale=0.1).float()
    job = replace(
        job,
        rule=Keeping(lr=0.02, decay=decay),
        servers={"params": sent, "teacher": teacher},
        node=np.array([0, 1, 0, 1, 1]),
        first_steps=np.array([3, 1, 2, 0, 4]),
        recall=Own(own),
        penalties=penalties,
    )
    return module, data, objective, job


@dataclass(frozen=True)
class Own:
    """Stands in for ``Job.recall``: returns the clients' previous models."""

    previous: torch.Tensor

    def __call__(self, clients, node):
        return {"previous": self.previous[torch.from_numpy(clients)]}


def with_params(module, flat):
    model = copy.deepcopy(module)
    nn.utils.vector_to_parameters(flat.clone(), model.parameters())
    return model


def run(model, x):
    """Logits and the input of the last linear layer."""
    last = getattr(model, "last", [m for m in model.modules() if isinstance(m, nn.Linear)][-1])
    seen = []
    with last.register_forward_hook(lambda layer, inputs, output: seen.append(inputs[0])):
        return model(x), seen[0]


def term_by_hand(penalty, model, x, y, job, row):
    """Mean of the penalty over a batch without padding, computed on copies of the model."""
    sent, teacher = (job.servers[name][job.node[row]] for name in ("params", "teacher"))
    logits, z = run(model, x)
    if isinstance(penalty, Contrast):
        previous = job.recall.previous[row] if job.first_steps[row] else sent
        powers = []
        for other in (sent, previous):
            with torch.no_grad():
                w = run(with_params(model, other).eval(), x)[1]
            powers.append((F.cosine_similarity(z, w) / penalty.tau).exp())
        return -penalty.mu * (powers[0] / sum(powers)).log().mean()
    with torch.no_grad():
        target = with_params(model, teacher).eval()(x).softmax(1)
    if isinstance(penalty, RelationDistillation):
        known, target = target, F.one_hot(y, 4).float()
        target[:, list(penalty.old)] = known[:, list(penalty.old)]
        target /= target.sum(1, keepdim=True)
    each = torch.special.xlogy(target, target) - target * logits.log_softmax(1)
    return penalty.weight * each.sum(1).mean()


def train_by_hand(module, data, job, penalties):
    """Train every client on a copy of the model by plain autograd, one batch at a time."""
    changes, batches = [], job.batches(data.source)
    for row in range(len(job.clients)):
        start = job.servers["params"][job.node[row]]
        model = with_params(module, start).train()
        for index, weight in zip(batches.index[row], batches.weight[row], strict=True):
            x, y = data.inputs[index[weight > 0]], data.labels[index[weight > 0]]
            loss = F.cross_entropy(model(x), y)
            for penalty in penalties:
                loss = loss + term_by_hand(penalty, model, x, y, job, row)
            own = list(model.parameters())
            with torch.no_grad():
                for value, grad in zip(own, torch.autograd.grad(loss, own), strict=True):
                    value -= job.rule.lr * (grad + job.rule.decay * value)
        changes.append(nn.utils.parameters_to_vector(model.parameters()).detach() - start)
    return torch.stack(changes)


STACKED = ("stacked 2", "stacked 2, recorded")


@pytest.mark.thorough(every=8)
@pytest.mark.parametrize(
    ("name", "penalties", "decay"),
    [
        *(("fcnn", terms, decay) for terms in (*ALONE, *PAIRS) for decay in DECAYS),
        *(("branched", *both) for both in zip((*ALONE, *PAIRS), cycle(DECAYS), strict=False)),
        *(("lenet5", *both) for both in zip(PAIRS, DECAYS, strict=True)),
    ],
    ids=str,
)
def test_every_path_minimises_the_loss_with_its_terms(name, penalties, decay):
    """Updates agree with autograd to 5e-6, for padded batches and different anchors per client."""
    steps = 2 if name == "lenet5" else 5
    module, data, task, job = case(name, penalties, decay=decay, steps=steps)
    expected = train_by_hand(module, data, job, penalties)
    without = train_by_hand(module, data, job, ())
    assert float((expected - without).abs().max()) > 1e-3, "the terms have no effect"
    stacks = name != "branched" and CONTRAST not in penalties
    # With chunks of two, the five clients include one that trains alone.
    for path in ("loop", "vmap 2", "vmap 2, flat", "vmap 2, recorded", "vmap 5", *STACKED):
        if stacks or path not in STACKED:
            found = updates(EXECUTORS[path](task, data), job)
            assert torch.allclose(found, expected, atol=5e-6), path


def test_workers_train_with_terms():
    """Penalties in worker processes receive the server's other tensors and the clients' state."""
    _, data, task, job = case("fcnn", (CONTRAST, PLAIN))
    inner = VmapExecutor(task, data, 2)
    executor = WorkersExecutor(inner, 2)
    try:
        assert torch.allclose(updates(executor, job), updates(inner, job), atol=1e-6)
    finally:
        executor.close()


@pytest.mark.thorough(every=8)
def test_teachers_run_without_dropout(path):
    """The teacher's outputs do not depend on the student's dropout masks."""
    module = FCNN((9,), 4, hidden=(40, 20), dropout=0.5)
    data = training_data((9,), SIZES)
    task, job = job_for(module, data, steps=1)
    job = replace(job, servers=job.servers | {"teacher": job.servers["params"]}, penalties=(PLAIN,))
    found = updates(EXECUTORS[path](task, data), job)
    batches = job.batches(data.source)
    for row in range(len(SIZES)):
        index, weight = batches.index[row, 0], batches.weight[row, 0]
        x, y = data.inputs[index[weight > 0]], data.labels[index[weight > 0]]
        with torch.no_grad():
            known = module.eval()(x).softmax(1)
        module.train()
        for layer in module.modules():
            if hasattr(layer, "key"):
                layer.key = batches.keys[row, 0]
        logits = module(x)
        loss = F.cross_entropy(logits, y) + 2.0 * F.kl_div(
            logits.log_softmax(1), known, reduction="batchmean"
        )
        grads = torch.autograd.grad(loss, list(module.parameters()))
        expected = -0.1 * torch.cat([grad.reshape(-1) for grad in grads])
        assert torch.allclose(found[row], expected, atol=1e-6)
    assert module.training


def test_a_recording_is_made_for_its_terms():
    """An executor that has recorded steps with one penalty is correct with others and with none."""
    _, data, task, job = case("fcnn", (PLAIN,))
    for executor in (
        VmapExecutor(task, data, 5, flat=True),
        VmapExecutor(task, data, 5, recorded=True),
        StackedExecutor(task, data, 5, recorded=True),
    ):
        for penalties in ((PLAIN,), (), (LogitDistillation(0.3),), (PLAIN,)):
            own = replace(job, penalties=penalties)
            expected = updates(VmapExecutor(task, data, 5), own)
            assert torch.allclose(updates(executor, own), expected, atol=1e-6)


def test_terms_compare_by_settings_and_can_be_pickled():
    for penalty in (CONTRAST, PLAIN, RELATION):
        again = pickle.loads(pickle.dumps(penalty))
        assert again == penalty
        assert hash(again) == hash(penalty)
    assert LogitDistillation(1.0) != LogitDistillation(2.0)


def test_stacked_layers_have_no_features():
    _, data, task, job = case("fcnn", (CONTRAST,))
    with pytest.raises(ConfigError, match=r'"stacked" does not compute features.*executor "vmap"'):
        updates(StackedExecutor(task, data, 5), job)


def toy_model():
    torch.manual_seed(3)
    return FCNN((12,), 4, hidden=(10,))


def plain_moon(setup, rounds):
    """MOON's global models after each round, by autograd on copies of the model."""
    training, spec = setup.learner, setup.model.objective.spec
    source, data = training.local.executor.data.source, training.local.executor.data
    x, kept, path = training.server.cloud["params"].clone(), {}, []
    steps = np.zeros(len(setup.model.client_samples), dtype=np.int64)
    for t in range(rounds):
        who, after = setup.planner.plan(t).clients, []
        for client in who:
            model, previous = with_params(setup.model.objective.module, x), kept.get(client, x)
            batches = source.draw(np.array([client]), steps[[client]], 3)
            for index, weight in zip(batches.index[0], batches.weight[0], strict=True):
                rows = index[weight > 0]
                logits, z = run(model, data.inputs[rows])
                powers = []
                for other in (x, previous):
                    with torch.no_grad():
                        w = run(with_params(model, other), data.inputs[rows])[1]
                    powers.append((F.cosine_similarity(z, w) / 0.5).exp())
                loss = F.cross_entropy(logits, data.labels[rows])
                loss = loss - 5.0 * (powers[0] / sum(powers)).log().mean()
                own = list(model.parameters())
                with torch.no_grad():
                    for value, grad in zip(own, torch.autograd.grad(loss, own), strict=True):
                        value -= 0.1 * grad
            kept[client] = nn.utils.parameters_to_vector(model.parameters()).detach()
            after.append(kept[client])
            steps[client] += 3
        x = torch.stack(after).mean(0)
        path.append(x)
    assert len(x) == spec.size
    return path, kept


def test_moon_keeps_each_clients_last_model(config, toy):
    """Absent clients keep their previous models, and new clients have none.

    Two of six clients participate in each round.
    """
    settings = config("moon", mu=5.0, tau=0.5, clients_per_round=2, rounds=6)
    expected, kept = plain_moon(build(settings, data=toy, model=toy_model()), 6)
    setup = build(settings, data=toy, model=toy_model())
    asked = []
    for t in range(6):
        plan = setup.planner.plan(t)
        setup.learner.learn(plan, setup.learner.server.cloud)
        asked.append(set(plan.clients.tolist()))
        assert torch.allclose(setup.learner.server.cloud["params"], expected[t], atol=1e-5)
    assert any(
        client in asked[s] and client in asked[t] and client not in asked[s + 1]
        for client in range(6)
        for s in range(4)
        for t in range(s + 2, 6)
    ), "no client returns after an absence"
    for client, model in kept.items():
        assert torch.allclose(setup.learner.server.states.get("previous", client), model, atol=1e-5)
    without = build(config("fedavg", clients_per_round=2, rounds=6), data=toy, model=toy_model())
    for t in range(6):
        without.learner.learn(without.planner.plan(t), without.learner.server.cloud)
    assert not torch.allclose(without.learner.server.cloud["params"], expected[-1], atol=1e-3)


def test_the_executor_supports_the_terms(config, toy):
    for algorithm, flags, kind in (
        ("moon", {}, "vmap"),
        ("hist", {"local": "moon"}, "vmap"),
        ("fedacg", {}, "stacked"),
        ("moon", {"executor": "loop"}, "loop"),
    ):
        settings = config(algorithm, **flags)
        assert build(settings, data=toy, model=toy_model()).config.run.executor == kind
    with pytest.raises(
        ConfigError, match=r'"stacked" cannot compare .* algorithm "moon" requires.*"vmap"'
    ):
        build(config("moon", executor="stacked"), data=toy, model=toy_model())


def test_a_model_without_features_is_refused_at_the_start(config, toy):
    class Table(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(torch.zeros(4, 12))

        def forward(self, x):
            return x @ self.weight.t()

    for executor in ("auto", "loop"):
        with pytest.raises(ConfigError, match=r"model Table runs no nn\.Linear"):
            build(config("moon", executor=executor), data=toy, model=Table())
    build(config("fedacg"), data=toy, model=Table())
