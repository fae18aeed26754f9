"""Modules with side effects, or whose gradients executors cannot compute, are refused at once."""

import random
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

from tests.wirelessfl.training.jobs import job_for, plain_loop, samples, training_data, updates
from wirelessfl.base.errors import ConfigError
from wirelessfl.training.module_executors import LoopExecutor
from wirelessfl.training.objective import Objective
from wirelessfl.training.stacked import why_not_stacked
from wirelessfl.training.trial import check_model, why_not_vmapped

TOKENS = 11


class Two(nn.Module):
    """Two linear layers; ``between`` maps the module and the hidden values."""

    def __init__(self, between=lambda module, hidden: hidden, before=lambda module: None):
        super().__init__()
        self.first, self.last = nn.Linear(9, 8), nn.Linear(8, 4)
        self.between, self.before = between, before
        self.generator = torch.Generator().manual_seed(3)
        self.calls = 0

    def forward(self, x):
        self.before(self)
        return self.last(self.between(self, torch.relu(self.first(x))))


class Bag(nn.Module):
    """A linear layer of the mean embedding."""

    def __init__(self, **options):
        super().__init__()
        self.embedding, self.last = nn.Embedding(TOKENS, 5, **options), nn.Linear(5, 4)

    def forward(self, x):
        return self.last(self.embedding(x).mean(1))


def private(module, hidden):
    return hidden * (torch.rand(hidden.shape, generator=module.generator) > 0.5)


def by_numpy(module, hidden):
    mask = np.random.rand(*hidden.shape) > 0.5  # noqa: NPY002
    return hidden * torch.from_numpy(mask) if module.training else hidden


def counted(module, hidden):
    module.calls += 1
    return hidden * module.calls


def clamped(module):
    with torch.no_grad():
        module.first.weight.clamp_(-0.1, 0.1)


def clamped_data(module):
    module.first.weight.data.clamp_(-1.0, 1.0)  # no effect on the initial values


def replaced(module):
    weight = module.first.weight
    weight.data = torch.renorm(weight.data, 2, 0, 5.0)


def cached(module):
    if not hasattr(module, "cache"):
        module.register_buffer("cache", torch.ones(3))


def unset(module):
    with torch.no_grad():
        module.first.weight[0, 0] = torch.nan
    return module


REFUSED = {
    "python's generator": (
        lambda: Two(lambda m, h: h if random.random() < 0.5 else 2 * h),
        "draws from the generator of Python's random",
    ),
    "numpy's generator": (lambda: Two(by_numpy), "draws from the generator .* of NumPy"),
    "private generator": (lambda: Two(private), "different outputs for the same samples"),
    "state": (lambda: Two(counted), "different outputs for the same samples"),
    "dropout in evaluation": (
        lambda: Two(lambda m, h: F.dropout(h)),
        r"in evaluation.*pass training=self\.training",
    ),
    "clamp": (lambda: Two(before=clamped), "changes its parameter 'first.weight' in forward"),
    "rare clamp": (lambda: Two(before=clamped_data), "changes its parameter 'first.weight'"),
    "other memory": (lambda: Two(before=replaced), "changes its parameter 'first.weight'"),
    "maximum norm": (lambda: Bag(max_norm=1.0), "changes its parameter 'embedding.weight'.*max_"),
    "no values": (lambda: unset(Two()), "starts with values of its parameter 'first.weight'"),
    "new buffer": (lambda: Two(before=cached), "changes its buffer 'cache'"),
    "sparse": (lambda: Bag(sparse=True), "'embedding.weight' has a sparse gradient.*sparse=False"),
}


def inputs(module):
    x, y = samples((9,))
    return (torch.arange(4 * 7).view(4, 7) % TOKENS if isinstance(module, Bag) else x[:4]), y[:4]


@pytest.mark.parametrize("kind", REFUSED)
def test_modules_with_side_effects_are_refused(kind):
    make, words = REFUSED[kind]
    torch.manual_seed(0)
    module = make()
    with pytest.raises(ConfigError, match=words) as caught:
        check_model(Objective.of(module), *inputs(module), 4)
    assert "\n" not in str(caught.value)


ACCEPTED = {
    "plain": Two,
    "embedding": Bag,
    "counter without effect": lambda: Two(before=lambda m: setattr(m, "calls", m.calls + 1)),
    "stored output": lambda: Two(lambda m, h: setattr(m, "features", h) or h),
}


@pytest.mark.parametrize("kind", ACCEPTED)
def test_harmless_modules_train_together(kind):
    torch.manual_seed(0)
    module = ACCEPTED[kind]()
    task, (x, y) = Objective.of(module), inputs(module)
    before = task.spec.from_module(module)
    states = random.getstate(), torch.random.get_rng_state()
    assert check_model(task, x, y, 4) is None
    assert why_not_vmapped(task, x, y) is None
    assert torch.equal(task.spec.from_module(module), before)
    assert all(parameter.grad is None for parameter in module.parameters())
    assert states[0] == random.getstate()
    assert torch.equal(states[1], torch.random.get_rng_state())


def test_a_parameter_used_by_name_and_from_a_list_is_refused():
    module = Two(lambda m, h: h)
    module.weights = [module.last.bias]
    module.between = lambda m, h: h + m.weights[0].sum()
    with pytest.raises(ConfigError, match=r"uses its parameter 'last\.bias' other than by its na"):
        check_model(Objective.of(module), *inputs(module), 4)


@pytest.mark.parametrize("kind", ["register_hook", "register_post_accumulate_grad_hook"])
def test_hooks_of_parameters_are_refused(kind):
    module = Two()
    getattr(module.last.weight, kind)(lambda value: None)
    with pytest.raises(ConfigError, match=r"parameter 'last\.weight' has hooks.*remove them"):
        Objective.of(module)


def test_parameters_made_in_inference_mode_are_refused():
    with torch.inference_mode():
        module = Two()
    with pytest.raises(ConfigError, match=r"was made in torch\.inference_mode.*outside"):
        Objective.of(module)


def test_torchscript_modules_are_refused():
    with pytest.warns(DeprecationWarning, match="jit"):
        scripted = torch.jit.script(nn.Linear(9, 8))
    for module in (scripted, nn.Sequential(scripted, nn.Linear(8, 4))):
        with pytest.raises(ConfigError, match=r"TorchScript.*before torch\.jit\.script"):
            Objective.of(module)


class Checkpointed(nn.Module):
    """A linear layer whose activations are computed again in the backward pass."""

    def __init__(self, *, reentrant=False):
        super().__init__()
        self.first, self.last = nn.Linear(9, 8), nn.Linear(8, 4)
        self.again, self.reentrant = True, reentrant

    def forward(self, x):
        def hidden(x):
            return torch.relu(self.first(x))

        if not self.again:
            return self.last(hidden(x))
        if self.reentrant:
            x = x.clone().requires_grad_()
        return self.last(checkpoint(hidden, x, use_reentrant=self.reentrant))


def test_checkpointed_modules_train_one_at_a_time():
    """Activations are computed again from the client's parameters, not from the module's."""
    torch.manual_seed(0)
    module = Checkpointed()
    data = training_data((9,), [20, 5, 50])
    task, job = job_for(module, data)
    alone = check_model(task, *data.first(4), 4)
    assert "activations again in the backward pass" in alone
    found = updates(LoopExecutor(task, data), job)
    module.again = False
    assert torch.allclose(found, plain_loop(module, data, job, lr=0.1), atol=2e-6)


@pytest.mark.filterwarnings("ignore:None of the inputs have requires_grad")
def test_reentrant_checkpoints_are_refused():
    module = Checkpointed(reentrant=True)
    with pytest.raises(ConfigError, match="use_reentrant=False"):
        check_model(Objective.of(module), *inputs(module), 4)


def silent(module, hidden):
    """Raise an error without a message when traced or under vmap."""
    try:
        return hidden if hidden.sum() > 0 else 2 * hidden
    except Exception:
        raise RuntimeError from None


def test_errors_without_a_message_name_their_type():
    module = Two(silent)
    data = training_data((9,), [20])
    assert "(RuntimeError)" in why_not_stacked(Objective.of(module), data)
    assert "(RuntimeError)" in why_not_vmapped(Objective.of(module), *data.first(4))


@pytest.mark.parametrize(
    "draw", [lambda: torch.rand(1), random.random, np.random.rand], ids=["torch", "Python", "NumPy"]
)
def test_other_threads_may_draw_during_the_check(draw):
    """Another thread draws in every second pass."""
    passes = []

    def meanwhile(module, inputs):
        passes.append(module)
        if len(passes) % 2:
            other.submit(draw).result()

    model = Two()
    model.register_forward_pre_hook(meanwhile)
    x, y = samples((9,))
    with ThreadPoolExecutor(1) as other:
        assert check_model(Objective.of(model), x[:8], y[:8], classes=4) is None
    assert len(passes) > 4
