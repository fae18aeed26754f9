"""ResNet-18: published size, scope of normalisations, and training by all executors."""

import pytest
import torch

from channels.streams import Stream
from tests.executors import ANY_MODULE
from tests.wirelessfl.training.jobs import job_for, plain_loop, training_data, updates
from wirelessfl.base.errors import ConfigError
from wirelessfl.config import Config
from wirelessfl.models import ResNet18, ResNet34, build_model
from wirelessfl.training.objective import Objective
from wirelessfl.training.trial import check_model, why_not_vmapped


def narrow(size=32, **options):
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return ResNet18((3, size, size), 4, **({"width": 4} | options))


@pytest.mark.parametrize("norm", ["group", "batch"])
def test_it_has_the_published_number_of_parameters(norm):
    """The count by hand: 20 convolutions without bias, a scale and shift per channel, the head."""
    pairs = [(3, 64), *[(64, 64)] * 4]
    for width in (64, 128, 256):
        pairs += [(width, 2 * width), *[(2 * width, 2 * width)] * 3]
    shortcuts = 64 * 128 + 128 * 256 + 256 * 512
    norms = 2 * 5 * (64 + 128 + 256 + 512)  # per stage four, and one in the stem or shortcut
    counted = sum(9 * i * o for i, o in pairs) + shortcuts + norms + 512 * 10 + 10
    assert counted == 11_173_962
    model = build_model("resnet18", (3, 32, 32), 10, dropout=0, stream=Stream(1), norm=norm)
    assert sum(p.numel() for p in model.parameters()) == counted
    assert not list(model.buffers())
    assert round(4 * counted / 1e6, 1) == 44.7


def test_resnet34_has_the_published_layers():
    """Parameters by hand, and 34 convolutions and linear layers besides the shortcuts."""
    pairs = [(3, 64), *[(64, 64)] * 6, (64, 128), *[(128, 128)] * 7]
    pairs += [(128, 256), *[(256, 256)] * 11, (256, 512), *[(512, 512)] * 5]
    shortcuts = 64 * 128 + 128 * 256 + 256 * 512
    norms = 2 * (sum(o for _, o in pairs) + 128 + 256 + 512)
    counted = sum(9 * i * o for i, o in pairs) + shortcuts + norms + 512 * 10 + 10
    assert len(pairs) + 1 == 34
    model = build_model("resnet34", (3, 64, 64), 10, dropout=0, stream=Stream(1))
    assert sum(p.numel() for p in model.parameters()) == counted == 21_282_122
    assert ResNet34((3, 64, 64), 4, width=4)(torch.rand(2, 3, 64, 64)).shape == (2, 4)


@pytest.mark.parametrize("size", [32, 64])
def test_all_blocks_work_on_the_same_maps_at_both_sizes(size):
    model = narrow(size)
    shapes = []
    for block in model.blocks:
        block.register_forward_hook(lambda *call: shapes.append(tuple(call[2].shape[1:])))
    assert model(torch.rand(2, 3, size, size)).shape == (2, 4)
    assert shapes[::2] == shapes[1::2] == [(4, 32, 32), (8, 16, 16), (16, 8, 8), (32, 4, 4)]


def test_a_block_adds_its_input_to_two_convolutions():
    """If its last scale is zero, a block computes relu(x) or relu(shortcut(x))."""
    x = torch.randn(2, 4, 32, 32)
    first, third = narrow().blocks[0], narrow().blocks[2]
    for block, expected in ((first, x), (third, third.shortcut(x))):
        torch.nn.init.zeros_(block.norm2.weight)
        assert torch.equal(block(x), expected.relu())


def test_only_batch_normalisation_mixes_samples():
    """Only with batch normalisation do a sample's logits depend on the batch, in evaluation too."""
    x = torch.randn(6, 3, 32, 32)
    for norm, alone in (("group", True), ("batch", False)):
        model = narrow(norm=norm)
        trained, evaluated = model.train()(x), model.eval()(x)
        assert torch.equal(trained, evaluated)
        assert torch.allclose(model(x[:3]), evaluated[:3], atol=1e-4) == alone


@pytest.mark.thorough
def test_only_batch_normalisation_trains_one_client_at_a_time():
    """The check is right at full width too, where rounding may flip a ReLU.

    A flipped ReLU changes many gradients.
    """
    y = torch.tensor([1, 2, 3, 0])
    for size, width in ((32, 4), (64, 4), (32, 64)):
        torch.manual_seed(2)
        x = 2 * torch.rand(4, 3, size, size) - 1
        assert why_not_vmapped(Objective.of(narrow(size, width=width)), x, y) is None
        assert check_model(Objective.of(narrow(size, width=width)), x, y, 4) is None
        if width == 64:
            continue
        assert check_model(Objective.of(narrow(size, width=width, norm="batch")), x, y, 4) is None
        reason = why_not_vmapped(Objective.of(narrow(size, width=width, norm="batch")), x, y)
        assert reason is not None
        assert "ResNet18 mixes the samples of a batch, so batches cannot be padded" in reason


@pytest.mark.thorough(every=8)
@pytest.mark.parametrize(("norm", "size"), [("group", 32), ("group", 64), ("batch", 32)])
def test_executors_equal_the_plain_loop(norm, size):
    """Updates agree for two steps of two clients and a padded batch."""
    module = narrow(size, norm=norm)
    data = training_data((3, size, size), [3, 2], batch_size=3)
    task, job = job_for(module, data, lr=0.01, steps=2)
    expected = plain_loop(module, data, job, lr=0.01)
    assert float(expected.abs().max()) > 1e-3
    for name, make in ANY_MODULE.items():
        if norm == "group" or name == "loop":
            found = updates(make(task, data), job)
            assert torch.allclose(found, expected, atol=1e-5), name


def test_unsuitable_images_and_options_are_errors():
    for shape in ((3, 28, 28), (3, 64, 32), (3072,)):
        with pytest.raises(ConfigError, match=r"resnet18 needs images of 32x32 or 64x64.*choose"):
            build_model("resnet18", shape, 10, dropout=0, stream=Stream(1))
    for options, message in (
        ({"norm": "layer"}, 'norm is \'layer\': choose "group" or "batch"'),
        ({"width": 3}, "width is 3: give a multiple of 2"),
        ({"width": 0}, "width is 0"),
    ):
        with pytest.raises(ConfigError, match=message):
            narrow(**options)


def test_norm_is_refused_by_models_that_do_not_accept_it():
    for name, shape in (("fcnn", (4,)), ("lenet5", (1, 28, 28))):
        with pytest.raises(ConfigError, match=rf"{name}.*Leave norm out, or choose resnet18\.$"):
            build_model(name, shape, 4, dropout=0, stream=Stream(1), norm="group")
    small = {"dropout": 0.5, "stream": Stream(1), "hidden": (3,), "norm": "batch"}
    with pytest.raises(ConfigError, match=r"Leave dropout and hidden out, or choose fcnn\.$"):
        build_model("resnet18", (3, 32, 32), 4, **small)
    with pytest.raises(ConfigError, match=r"Leave hidden and norm out\.$"):
        build_model("lenet5", (1, 28, 28), 4, **small)
    chosen = Config.from_flags("fedavg", model="resnet18", norm="batch")
    assert chosen.model.norm == chosen.model.norm == "batch"
