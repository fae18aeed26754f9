"""Models have the published sizes; dropout masks do not depend on the executor."""

import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from torch import nn
from torch.func import functional_call, vmap
from torch.nn.utils import parameters_to_vector

from channels.streams import Stream
from tests.wirelessfl.training.jobs import job_for, plain_loop, training_data, updates
from wirelessfl.base.errors import ConfigError
from wirelessfl.models import (
    FCNN,
    MLP,
    FedASTCNN,
    GroupNormCNN,
    LeNet5,
    LinearClassifier,
    StreamDropout,
    build_model,
)
from wirelessfl.models.shapes import Declared
from wirelessfl.models.submodels import make_partition
from wirelessfl.training.module_executors import LoopExecutor, VmapExecutor
from wirelessfl.training.stacked import StackedExecutor
from wirelessfl.training.trial import check_partition


@pytest.mark.parametrize(
    ("name", "shape", "parameters"),
    [
        ("fcnn", (1, 28, 28), 238_510),
        ("lenet5", (1, 28, 28), 44_426),
        ("cifar-cnn", (3, 32, 32), 541_094),
        ("mlp", (1, 28, 28), 784 * 200 + 200 + 200 * 200 + 200 + 200 * 10 + 10),
        (
            "fedast-cnn",  # sides 32, 28, pooled 14, 10, pooled 5: 64 * 5 * 5 features
            (3, 32, 32),
            (3 * 25 + 1) * 64 + (64 * 25 + 1) * 64 + 1601 * 384 + 385 * 192 + 193 * 10,
        ),
    ],
)
def test_sizes_are_the_published_ones(name, shape, parameters):
    model = build_model(name, shape, 10, dropout=0.5, stream=Stream(1))
    assert sum(p.numel() for p in model.parameters()) == parameters
    assert model(torch.zeros(2, *shape)).shape == (2, 10)


@pytest.mark.thorough(every=8)
@pytest.mark.parametrize(
    ("make", "shape"),
    [(MLP, (6,)), (LinearClassifier, (6,)), (FedASTCNN, (3, 32, 32))],
    ids=["mlp", "linear", "fedast-cnn"],
)
def test_executors_equal_the_plain_loop(make, shape):
    """Updates agree for two steps of two clients and a padded batch.

    The models' hidden neurons can be partitioned.
    """
    torch.manual_seed(0)
    module = make(shape, 4)
    data = training_data(shape, [3, 2], batch_size=3)
    objective, job = job_for(module, data, lr=0.01, steps=2)
    expected = plain_loop(module, data, job, lr=0.01)
    assert float(expected.abs().max()) > 1e-3
    for executor in (
        LoopExecutor(objective, data),
        VmapExecutor(objective, data, 2),
        StackedExecutor(objective, data, 2),
    ):
        found = updates(executor, job)
        assert torch.allclose(found, expected, atol=5e-6), executor.name
    if make is LinearClassifier:
        return
    check_partition(objective, make_partition(module, objective.spec), data.inputs[:4])


def test_the_group_norm_network_normalises_each_sample():
    """Executors agree with the plain loop; a sample's logits do not depend on the others."""
    model = build_model("gn-cnn", (1, 28, 28), 10, dropout=0, stream=Stream(1))
    norms, sides = 2 * (16 + 32 + 64), 3 * 3  # 28, 14, 7, 3
    convolutions = 9 * (16 + 16 * 32 + 32 * 64)
    assert sum(p.numel() for p in model.parameters()) == convolutions + norms + 10 * (
        64 * sides + 1
    )
    x = torch.randn(3, 1, 28, 28)
    assert torch.allclose(model(x)[:1], model(x[:1]), atol=1e-5)
    assert torch.allclose(model(x)[:1], model(torch.cat([x[:1], 9 * x[1:]]))[:1], atol=1e-5)
    torch.manual_seed(0)
    module = GroupNormCNN((2, 9, 11), 4)
    data = training_data((2, 9, 11), [3, 2], batch_size=3)
    objective, job = job_for(module, data, lr=0.01, steps=2)
    expected = plain_loop(module, data, job, lr=0.01)
    for executor in (LoopExecutor(objective, data), VmapExecutor(objective, data, 2)):
        assert torch.allclose(updates(executor, job), expected, atol=5e-6), executor.name
    with pytest.raises(ConfigError, match=r"gn-cnn needs images of at least 8x8"):
        build_model("gn-cnn", (1, 7, 28), 10, dropout=0, stream=Stream(1))
    with pytest.raises(ConfigError, match=r"gn-cnn needs images"):
        build_model("gn-cnn", (12,), 10, dropout=0, stream=Stream(1))


def test_linear_is_one_layer_without_options():
    model = build_model("linear", (1, 28, 28), 10, dropout=0, stream=Stream(1))
    assert [tuple(p.shape) for p in model.parameters()] == [(10, 784), (10,)]
    x = torch.randn(3, 1, 28, 28)
    half = 0.5 * (model(x) + model(torch.zeros_like(x)))
    assert torch.allclose(model(x / 2), half, atol=1e-6)
    with pytest.raises(ConfigError, match=r"linear.*Leave hidden out, or choose fcnn"):
        build_model("linear", (4,), 2, dropout=0, stream=Stream(1), hidden=(5,))
    with pytest.raises(ConfigError, match=r"linear.*Leave dropout out, or choose fcnn"):
        build_model("linear", (4,), 2, dropout=0.5, stream=Stream(1))


def test_initial_weights_come_from_the_stream():
    def first(seed):
        return next(build_model("fcnn", (4,), 2, dropout=0, stream=Stream(seed)).parameters())

    before = torch.random.get_rng_state()
    assert torch.equal(first(1), first(1))
    assert not torch.equal(first(1), first(2))
    assert torch.equal(before, torch.random.get_rng_state())


def test_other_threads_may_draw_while_weights_are_drawn():
    def weights():
        return parameters_to_vector(build_model("linear", (2,), 2, stream=Stream(1)).parameters())

    def draw():
        while not over.is_set():
            torch.rand(1)

    alone, over, interval = weights(), threading.Event(), sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        with ThreadPoolExecutor(1) as other:
            other.submit(draw)
            built = [weights() for _ in range(50)]
            over.set()
    finally:
        sys.setswitchinterval(interval)
    assert all(torch.equal(found, alone) for found in built)


def test_wrong_input_and_unknown_model_are_explained():
    with pytest.raises(ConfigError, match="28x28"):
        build_model("lenet5", (1, 8, 8), 10, dropout=0, stream=Stream(1))
    with pytest.raises(ConfigError, match=r"fcnn, .*, gpt2-lora, gpt2-lora-tiny, lenet5"):
        build_model("resnet", (1, 8, 8), 10, dropout=0, stream=Stream(1))
    with pytest.raises(ConfigError, match="nowhere"):
        build_model("nowhere:model", (1, 8, 8), 10, dropout=0, stream=Stream(1))
    with pytest.raises(ValueError, match="dropout is 1"):
        FCNN((4,), 2, dropout=1.0)


def test_hidden_layers_have_the_given_widths_or_are_refused():
    for name in ("fcnn", "mlp"):
        model = build_model(name, (7,), 3, dropout=0, stream=Stream(1), hidden=(5, 4))
        shapes = [tuple(p.shape) for p in model.parameters() if p.dim() == 2]
        assert shapes == [(5, 7), (4, 5), (3, 4)]
    for name, shape in (
        ("lenet5", (1, 28, 28)),
        ("cifar-cnn", (3, 32, 32)),
        ("fedast-cnn", (3, 32, 32)),
    ):
        with pytest.raises(ConfigError, match=rf"{name}.*Leave hidden out, or choose fcnn"):
            build_model(name, shape, 10, dropout=0, stream=Stream(1), hidden=(5,))


def keys(client, step):
    return torch.tensor([Stream(0, ("c", client)).key() % 2**31, step], dtype=torch.int32)


def test_dropout_keeps_and_scales_the_requested_fraction():
    """Over 4e5 draws, the fraction of kept elements is 1 - p (standard error 7e-4)."""
    for p in (0.2, 0.5, 0.9):
        layer = StreamDropout(p)
        masks = []
        for step in range(40):
            layer.key = keys(1, step)
            masks.append(layer(torch.ones(100, 100)) > 0)
        share = torch.stack(masks).double().mean(0)
        assert abs(float(share.mean()) - (1 - p)) < 3e-3
        layer.key = keys(1, 0)
        out = layer(torch.ones(100, 100))
        assert torch.allclose(out[out > 0], torch.tensor(1 / (1 - p)))
        assert torch.equal(layer.eval()(torch.ones(3, 3)), torch.ones(3, 3))


def test_dropout_masks_are_independent_across_clients_steps_and_layers():
    """Any two masks of 10^4 bits agree on half of the bits (standard error 0.5 %)."""
    first = StreamDropout(0.5)
    first.key = keys(1, 0)
    reference = first(torch.ones(100, 100)) > 0
    for salt, key in ((0, keys(1, 1)), (0, keys(2, 0)), (1, keys(1, 0))):
        other = StreamDropout(0.5, salt)
        other.key = key
        agree = ((other(torch.ones(100, 100)) > 0) == reference).double().mean()
        assert abs(float(agree) - 0.5) < 0.02


def test_dropout_masks_do_not_depend_on_padding_or_vmap():
    layer = StreamDropout(0.5)
    three = torch.stack([keys(c, 7) for c in range(3)])

    def masked(key, x):
        return functional_call(layer, {"key": key}, (x,))

    wide = vmap(masked)(three, torch.ones(3, 6, 50))
    for client in range(3):
        alone = masked(three[client], torch.ones(4, 31))  # fewer samples, fewer neurons
        assert torch.equal(alone, wide[client, :4, :31])


def test_class_attributes_are_read():
    assert Declared.of(nn.Linear(2, 2)) == Declared()
    lenet = Declared.of(LeNet5((1, 28, 28), 10))
    assert lenet == Declared(fully_connected=("fc1", "fc2", "fc3"))


def test_instance_attributes_are_read():
    module = nn.Linear(2, 2)
    module.bytes_per_sample, module.vocabulary = 1 << 28, 17
    assert Declared.of(module) == Declared(bytes_per_sample=1 << 28, vocabulary=17)


def test_attributes_of_other_types_are_ignored():
    module = nn.Linear(2, 2)
    module.fully_connected, module.test_batch = nn.Linear(2, 2), 0
    module.bytes_per_sample, module.vocabulary = "much", True
    assert Declared.of(module) == Declared()
    module = nn.Linear(2, 2)
    module.fully_connected = "first"
    assert Declared.of(module) == Declared()
    module.fully_connected = ["first", "last"]
    assert Declared.of(module).fully_connected == ("first", "last")


def test_a_vocabulary_that_is_not_an_integer_is_ignored():
    module = nn.Linear(2, 2)
    module.vocabulary = ["a", "b"]
    assert Declared.of(module).vocabulary is None
