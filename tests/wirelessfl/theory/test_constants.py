"""Estimates of the theory's constants on problems whose constants are known."""

from itertools import combinations

import numpy as np
import pytest
import torch
from torch import nn
from torch.autograd.functional import hessian
from torch.func import functional_call
from torch.nn import functional as F

from channels.streams import Stream
from wirelessfl.models import FCNN
from wirelessfl.models.submodels import ParamSpec
from wirelessfl.theory import constants as estimates
from wirelessfl.theory import estimate_constants, sgd_path

STREAM = Stream(7, ("theory",))
BATCH = 3
cell_of = np.array([0, 1, 0, 1, 1])


def half_squared_error(outputs, labels):
    return (outputs.squeeze(-1) - labels).square().mean() / 2


@pytest.fixture
def regression():
    """A linear model w.x, the data of 5 clients of different sizes, and three points w."""
    random = STREAM.child("data").generator()
    inputs = random.standard_normal((31, 4)).astype(np.float32)
    labels = random.standard_normal(31).astype(np.float32)
    clients = np.split(random.permutation(31), [9, 13, 20, 27])
    points = list(torch.from_numpy(random.standard_normal((3, 4)).astype(np.float32)))
    with torch.random.fork_rng():
        torch.manual_seed(1)
        module = nn.Linear(4, 1, bias=False)
    return module, torch.from_numpy(inputs), torch.from_numpy(labels), clients, points


def estimate(problem, points, **options):
    module, inputs, labels, clients, _ = problem
    defaults = {"batch_size": BATCH, "stream": STREAM, "loss": half_squared_error}
    tight = {"iterations": 500, "tolerance": 0.0}
    return estimate_constants(
        module, inputs, labels, clients, cell_of, points=points, **(defaults | tight | options)
    )


def known(problem, points):
    """The four constants over ``points`` in closed form: sample gradients are x (x.w - y)."""
    _, inputs, labels, clients, _ = problem
    x, y = inputs.double().numpy(), labels.double().numpy()
    curvature = max(np.linalg.eigvalsh(x[rows].T @ x[rows] / len(rows))[-1] for rows in clients)
    sigma, delta_1, delta_2 = [], [], []
    for w in points:
        samples = x * (x @ w.double().numpy() - y)[:, None]
        grads = np.array([samples[rows].mean(0) for rows in clients])
        for rows, own in zip(clients, grads, strict=True):
            n, spread = len(rows), ((samples[rows] - own) ** 2).sum(1).mean()
            sigma.append(spread / BATCH * (n - BATCH) / (n - 1))
        members = [grads[np.flatnonzero(cell_of == j)] for j in range(2)]
        cells = np.array([own.mean(0) for own in members])
        delta_1.append(((cells - cells.mean(0)) ** 2).sum(1).mean())
        delta_2 += [((own - own.mean(0)) ** 2).sum(1).mean() for own in members]
    return curvature, max(sigma), max(delta_1), max(delta_2)


def values(constants):
    return (
        constants.smoothness,
        constants.gradient_variance,
        constants.delta_1_sq,
        constants.delta_2_sq,
    )


def test_all_four_constants_of_a_linear_regression(regression):
    points = regression[-1]
    found = estimate(regression, points)
    assert values(found) == pytest.approx(known(regression, points), rel=2e-5)
    assert found.points == 3


def test_the_estimate_is_the_maximum_over_points(regression):
    points = regression[-1]
    single = [values(estimate(regression, [point])) for point in points]
    assert values(estimate(regression, points)) == pytest.approx(np.max(single, axis=0), rel=1e-5)
    assert len({deltas[2] for deltas in single}) == 3


def test_chunk_sizes_do_not_change_the_estimate(regression, monkeypatch):
    points = regression[-1]
    whole = values(estimate(regression, points))
    monkeypatch.setattr(estimates, "_SAMPLES_AT_ONCE", 4)
    monkeypatch.setattr(estimates, "_SAMPLE_GRADIENT_BYTES", 32)
    assert values(estimate(regression, points)) == pytest.approx(whole, rel=1e-5)


class Bowl(nn.Module):
    """Loss (x - a)^T D (x - a) / 2 of parameters x on sample a."""

    def __init__(self, diagonal):
        super().__init__()
        self.x = nn.Parameter(torch.zeros(len(diagonal)))
        self.register_buffer("diagonal", torch.tensor(diagonal))

    def forward(self, a):
        return ((self.x - a).square() * self.diagonal).sum(-1) / 2


def test_smoothness_is_a_magnitude():
    """L is the largest magnitude of all eigenvalues, even negative ones; 0 for a linear loss."""
    samples = torch.randn(6, 3, generator=torch.Generator().manual_seed(1))
    clients = [np.arange(3), np.arange(3, 6)]

    def smoothness(module, loss):
        cells = np.arange(2)
        return estimate_constants(
            module, samples, samples, clients, cells, batch_size=2, stream=STREAM, loss=loss
        ).smoothness

    assert smoothness(Bowl([1.0, -5.0, 3.0]), lambda out, _: out.mean()) == pytest.approx(5, 1e-3)
    assert smoothness(nn.Linear(3, 1), lambda out, _: out.mean()) == 0.0


def flat_loss(module, flat, inputs, labels):
    return F.cross_entropy(
        functional_call(module, ParamSpec.of(module).views(flat), inputs), labels
    )


@pytest.fixture(
    params=[
        lambda: FCNN((3, 4, 4), 3, hidden=(2,), dropout=0.5),
        lambda: nn.Sequential(
            nn.Conv2d(3, 2, 3, padding=1), nn.Tanh(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(8, 3)
        ),
    ],
    ids=["fcnn", "convolutional"],
)
def classifier(request):
    """A network with its flat parameters, and 12 samples of 3 classes."""
    with torch.random.fork_rng():
        torch.manual_seed(5)
        module = request.param()
        inputs, labels = torch.randn(12, 3, 4, 4), torch.randint(3, (12,))
    return module, ParamSpec.of(module).from_module(module), inputs, labels


def test_smoothness_of_a_network_is_that_of_its_hessian(classifier):
    module, flat, inputs, labels = classifier
    clients = [np.arange(5), np.arange(5, 12)]
    found = estimate_constants(
        module,
        inputs,
        labels,
        clients,
        np.arange(2),
        batch_size=4,
        stream=STREAM,
        points=[flat],
        iterations=200,
        tolerance=1e-5,
    )
    module.eval()
    largest = [
        torch.linalg.eigvalsh(
            hessian(lambda p, rows=rows: flat_loss(module, p, inputs[rows], labels[rows]), flat)
        )
        .abs()
        .max()
        for rows in clients
    ]
    assert found.smoothness == pytest.approx(float(max(largest)), rel=1e-3)


@pytest.mark.thorough(every=8)
@pytest.mark.parametrize("size", [1, 2, 4, 5, 9])
def test_gradient_variance_is_that_over_all_batches(classifier, size):
    """sigma^2 is the variance over all batches from five samples; 0 for a full batch."""
    module, flat, inputs, labels = classifier
    client = np.array([0, 2, 3, 7, 11])
    found = estimate_constants(
        module, inputs, labels, [client], np.zeros(1), batch_size=size, stream=STREAM, points=[flat]
    )
    module.eval()
    grads = []
    for batch in combinations(client, min(size, 5)):
        leaf = flat.clone().requires_grad_()
        loss = flat_loss(module, leaf, inputs[list(batch)], labels[list(batch)])
        grads.append(torch.autograd.grad(loss, leaf)[0].double())
    spread = (torch.stack(grads) - torch.stack(grads).mean(0)).square().sum(1).mean()
    assert found.gradient_variance == pytest.approx(float(spread), rel=1e-5)
    assert (found.gradient_variance == 0) == (size >= 5)


def test_clients_with_the_same_data_have_zero_deltas(classifier):
    module, _, inputs, labels = classifier
    clients = [np.arange(12)] * 4
    found = estimate_constants(
        module, inputs, labels, clients, np.array([0, 0, 1, 1]), batch_size=12, stream=STREAM
    )
    assert values(found)[1:] == pytest.approx((0, 0, 0), abs=1e-12)


def test_the_module_is_unchanged(classifier):
    module, flat, inputs, labels = classifier
    frozen = module.get_submodule("layers.3" if isinstance(module, FCNN) else "1").eval()
    modes = [layer.training for layer in module.modules()]
    assert not all(modes)
    estimate_constants(
        module, inputs, labels, [np.arange(12)], np.zeros(1), batch_size=5, stream=STREAM
    )
    assert [layer.training for layer in module.modules()] == modes
    assert not frozen.training
    assert torch.equal(ParamSpec.of(module).from_module(module), flat)


def test_sampled_clients_limit_two_of_the_constants(regression):
    """With one sampled client, L and sigma^2 are those of one client; deltas use all clients."""
    points = regression[-1][:1]
    every = estimate(regression, points)
    one = estimate(regression, points, clients_sampled=1)
    assert (one.delta_1_sq, one.delta_2_sq) == (every.delta_1_sq, every.delta_2_sq)
    module, inputs, labels, clients, _ = regression
    alone = [
        values(
            estimate_constants(
                module,
                inputs,
                labels,
                [rows],
                np.zeros(1),
                batch_size=BATCH,
                stream=STREAM,
                points=points,
                loss=half_squared_error,
                iterations=500,
                tolerance=0.0,
            )
        )[:2]
        for rows in clients
    ]
    assert any(values(one)[:2] == pytest.approx(pair, rel=1e-5) for pair in alone)
    assert values(every)[:2] == pytest.approx(np.max(alone, axis=0), rel=1e-5)
    assert estimate(regression, points, clients_sampled=99) == every


def test_the_path_is_gradient_descent_with_full_batches(regression):
    """A full batch contains each sample of the given clients once, and no others."""
    module, inputs, labels, clients, _ = regression
    used = clients[:3]
    options = {"batch_size": 1000, "stream": STREAM, "step_size": 0.1, "loss": half_squared_error}
    path = sgd_path(module, inputs, labels, used, points=3, steps=2, **options)
    rows = np.concatenate(used)
    x, y = inputs.double().numpy()[rows], labels.double().numpy()[rows]
    w = module.weight.detach().double().numpy()[0]
    by_hand = [w]
    for _ in range(4):
        w = w - 0.1 * x.T @ (x @ w - y) / len(rows)
        by_hand.append(w)
    np.testing.assert_allclose(torch.stack(path), by_hand[::2], rtol=1e-5, atol=1e-6)


@pytest.mark.thorough
def test_points_are_by_default_those_of_an_sgd_path(regression):
    module, inputs, labels, clients, _ = regression
    path = sgd_path(
        module,
        inputs,
        labels,
        clients,
        batch_size=BATCH,
        stream=STREAM.child("path"),
        points=4,
        loss=half_squared_error,
    )
    assert len({tuple(point.tolist()) for point in path}) == 4
    found = estimate(regression, None, samples=4)
    assert found == estimate(regression, path)
    assert found.points == 4
    assert found == estimate(regression, None, samples=4)
    assert found != estimate(regression, None, samples=4, stream=Stream(8))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"batch_size": 0}, "batch_size is 0"),
        ({"samples": 0, "points": None}, "samples is 0"),
        ({"iterations": 0}, "iterations is 0"),
        ({"clients_sampled": 0}, "clients_sampled is 0"),
        ({"points": []}, "points is empty"),
        ({"points": [torch.zeros(5)]}, r"points\[0\] is torch.float32 \[5\]: give float32 \[4\]"),
        ({"points": [torch.full((4,), torch.nan)]}, "gradient of the loss is not finite"),
    ],
)
def test_invalid_arguments_are_rejected(regression, options, message):
    with pytest.raises(ValueError, match=message):
        estimate(regression, **({"points": regression[-1]} | options))


def test_mismatched_data_are_rejected(regression):
    module, inputs, labels, clients, points = regression
    with pytest.raises(ValueError, match="cell_of has 5 entries: give one for each of the 4"):
        estimate((module, inputs, labels, clients[:4], points), points)
    outside = [*clients[:4], np.array([31])]
    with pytest.raises(ValueError, match=r"clients\[4\] is \[31\]: .* in \[0, 30\]"):
        estimate((module, inputs, labels, outside, points), points)
    with pytest.raises(ValueError, match="inputs has 31 entries, labels 30 and clients 5"):
        estimate((module, inputs, labels[:30], clients, points), points)
    with pytest.raises(ValueError, match="step_size is 0"):
        sgd_path(module, inputs, labels, clients, batch_size=2, stream=STREAM, step_size=0)
