"""FLOPs of a step equal counts by hand; a product of [m, k] and [k, n] counts 2 m n k."""

import pytest
import torch
from torch import nn

from tests.gate.given import residual
from wirelessfl.models import FCNN, LSTM, GPT2LoRA, LeNet5, LinearClassifier, StreamDropout
from wirelessfl.training.objective import Objective
from wirelessfl.training.step_costs import step_flops


def count(module, shape, batch=7, samples=20, classes=4):
    x, y = torch.randn(samples, *shape), torch.arange(samples) % classes
    return sum(step_flops(Objective.of(module), x, y, batch))


def layers(batch, *sizes):
    """FLOPs of linear layers: forward, weight gradient and, except in the first, input gradient."""
    return sum((2 if i == 0 else 3) * 2 * batch * size for i, size in enumerate(sizes))


class Tied(nn.Module):
    """Two layers that share a weight, and a third layer."""

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(12, 12), nn.Linear(12, 12)
        self.second.weight = self.first.weight
        self.last = nn.Linear(12, 4)

    def forward(self, x):
        return self.last(self.second(self.first(x)))


class Recurrent(nn.Module):
    """A model with ``nn.LSTM``, whose fused kernels torch does not count."""

    def __init__(self):
        super().__init__()
        self.cells, self.last = nn.LSTM(3, 5, batch_first=True), nn.Linear(5, 4)

    def forward(self, x):
        return self.last(self.cells(x.unflatten(1, (4, 3)))[0][:, -1])


class Attending(nn.Module):
    """A model with torch's fused attention between two linear layers."""

    def __init__(self):
        super().__init__()
        self.first, self.last = nn.Linear(6, 6), nn.Linear(6, 4)

    def forward(self, x):
        q = self.first(x)[:, None]
        return self.last(nn.functional.scaled_dot_product_attention(q, q, q)[:, 0, 0])


@pytest.mark.parametrize("batch", [1, 7, 50])
def test_fully_connected_layers(batch):
    """The count is exact for batch sizes below and above the number of samples, 20."""
    assert count(LinearClassifier((12,), 4), (12,), batch) == layers(batch, 12 * 4)
    fcnn = FCNN((12,), 4, hidden=(9, 8), dropout=0.3)
    assert count(fcnn, (12,), batch) == layers(batch, 12 * 9, 9 * 8, 8 * 4)


def test_convolutions():
    """LeNet-5 on 28 x 28 pixels: 5 x 5 kernels with outputs of 24 x 24 and 8 x 8 pixels."""
    dense = 3 * 2 * 7 * (256 * 120 + 120 * 84 + 84 * 10)
    first = 2 * 2 * 7 * 24 * 24 * 6 * 25
    second = 3 * 2 * 7 * 8 * 8 * 16 * 6 * 25
    x, y = torch.randn(20, 1, 28, 28), torch.arange(20) % 10
    kinds = step_flops(Objective.of(LeNet5((1, 28, 28), 10)), x, y, 7)
    assert kinds == (dense, first + second, 0)


def test_each_use_of_a_tied_weight_counts():
    assert count(Tied(), (12,)) == layers(7, 144, 144, 48)


def test_frozen_layers_have_no_weight_gradient():
    """Frozen layers count no weight gradient, and a frozen first layer only its forward pass."""
    for frozen, expected in ((0, 108 + 2 * 72 + 3 * 32), (1, 2 * 108 + 2 * 72 + 3 * 32)):
        module = nn.Sequential(nn.Linear(12, 9), nn.ReLU(), nn.Linear(9, 8), nn.Linear(8, 4))
        for parameter in module[2 * frozen].parameters():
            parameter.requires_grad_(False)
        assert count(module, (12,)) == 2 * 7 * expected


def test_models_of_texts():
    """The built-in LSTM has 4 gates per token; its embedding counts nothing."""
    module = LSTM((5,), 11, hidden=(6,))
    x, y = torch.randint(0, 11, (20, 5), dtype=torch.uint8), torch.arange(20) % 11
    found = sum(step_flops(Objective.of(module), x, y, 7))
    # Input products and recurrent products of all tokens; the first state is zero.
    given, recurrent, dense = 5 * 8 * 24, 5 * 6 * 24, 6 * 11
    assert found == 2 * 7 * (3 * given + 2 * recurrent + 4 * 6 * 24 + 3 * dense)


def test_fused_kernels_are_counted_as_matrix_products():
    given, recurrent, dense = 4 * 3 * 20, 4 * 5 * 20, 5 * 4
    expected = 2 * given + 2 * recurrent + 3 * 5 * 20 + 3 * dense
    assert count(Recurrent(), (12,)) == 2 * 7 * expected
    assert torch.backends.mkldnn.enabled
    # Attention over 5 positions with 6 features: two products, each with two gradients.
    projection, attention = 2 * 5 * 36, 3 * 2 * 5 * 5 * 6
    assert count(Attending(), (5, 6)) == 2 * 7 * (projection + attention + 3 * 24)


class Watching(nn.Linear):
    """A layer that sees settings of torch for all threads while it is counted."""

    def forward(self, x):
        self.seen = [torch.backends.mkldnn.enabled, *nn.modules.module._global_forward_hooks]
        return super().forward(x)


def test_counting_changes_nothing_for_other_threads():
    module = Watching(12, 4)
    assert count(module, (12,)) == layers(7, 48)
    assert module.seen == [True]


def test_counting_has_no_side_effects():
    """Gradients, parameters and torch's global generator are unchanged."""
    module = nn.Sequential(nn.Linear(12, 9), nn.Dropout(0.5), StreamDropout(0.5), nn.Linear(9, 4))
    before = {name: value.clone() for name, value in module.state_dict().items()}
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    x, y = torch.ones(20, 12), torch.arange(20) % 4
    assert sum(step_flops(Objective.of(module), x, y, 7)) == layers(7, 108, 36)
    assert torch.equal(torch.rand(3), expected)
    assert all(parameter.grad is None for parameter in module.parameters())
    assert all(torch.equal(value, before[name]) for name, value in module.state_dict().items())


def test_a_module_that_is_not_a_chain_of_layers():
    assert count(residual(), (9,)) == layers(7, 9 * 12, 12 * 12, 12 * 4)


def test_adapters_of_a_language_model(tmp_path):
    """In GPT-2 with LoRA, frozen layers have input gradients only above the first adapter."""
    pytest.importorskip("peft")
    transformers = pytest.importorskip("transformers")
    length, width, rank, classes, batch = 8, 12, 2, 3, 7
    base = transformers.GPT2Config(
        n_layer=2, n_head=2, n_embd=width, vocab_size=20, n_positions=length
    )
    transformers.GPT2LMHeadModel(base).save_pretrained(tmp_path)
    model = GPT2LoRA((length,), classes, pretrained=str(tmp_path), lora_rank=rank)
    x, y = torch.randint(1, 20, (20, length)), torch.arange(20) % classes
    attention = 3 * 2 * length**2 * width  # two products, each with two gradients
    frozen = 2 * length * (width * width + 8 * width * width)  # no weight gradients
    query = length * width * 3 * width
    down, up = length * width * rank, length * rank * 3 * width
    first = query + 2 * down + 3 * up + attention + frozen
    second = 2 * query + 3 * down + 3 * up + attention + frozen
    head = 3 * width * classes
    found = sum(step_flops(Objective.of(model), x, y, batch))
    assert found == 2 * batch * (first + second + head)
