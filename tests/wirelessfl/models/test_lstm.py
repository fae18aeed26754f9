"""The LSTM: agreement with torch's nn.LSTM, all executors, and unsuitable samples."""

import pytest
import torch
from torch import nn

import wirelessfl
from channels.streams import Stream
from tests.executors import ANY_MODULE
from tests.wirelessfl.training.jobs import job_for, plain_loop, samples_of, updates
from wirelessfl.base.errors import ConfigError
from wirelessfl.config import Config
from wirelessfl.data import Dataset
from wirelessfl.models import LSTM, build_model
from wirelessfl.runs.build import build
from wirelessfl.training.batches import BatchSource
from wirelessfl.training.evaluation import evaluate
from wirelessfl.training.executor import TrainingData
from wirelessfl.training.objective import Objective
from wirelessfl.training.stacked import why_not_stacked
from wirelessfl.training.trial import check_model, why_not_vmapped

LENGTH, LETTERS = 6, 5


class TorchLSTM(nn.Module):
    """nn.Embedding, nn.LSTM and nn.Linear with the weights of an ``LSTM``."""

    def __init__(self, model, width):
        super().__init__()
        self.embedding, self.fc = model.embedding, model.fc
        self.lstm = nn.LSTM(8, width, len(model.layers), batch_first=True)
        for number, layer in enumerate(model.layers):
            for name, value in layer.named_parameters():
                getattr(self.lstm, f"{name}_l{number}").data = value.detach().clone()

    def forward(self, x):
        return self.fc(self.lstm(self.embedding(x))[0][:, -1])


def letters(count, seed=0, length=LENGTH, classes=LETTERS):
    random = Stream(seed, ("letters",)).generator()
    x, y = random.integers(0, classes, (count, length)), random.integers(0, classes, count)
    return torch.from_numpy(x), torch.from_numpy(y)


def small(hidden=(4, 3), seed=0):
    return build_model("lstm", (LENGTH,), LETTERS, dropout=0, stream=Stream(seed), hidden=hidden)


@pytest.mark.parametrize(("width", "layers"), [(256, 2), (7, 1), (5, 3)])
def test_it_equals_torchs_lstm(width, layers):
    """Logits, gradients and the range of initial weights equal those of nn.LSTM."""
    torch.manual_seed(1)
    model = LSTM((20,), 80, hidden=(width,) * layers)
    reference = TorchLSTM(model, width)
    x, _ = letters(3, length=20, classes=80)
    logits, expected = model(x), reference(x)
    assert logits.shape == (3, 80)
    assert torch.allclose(logits, expected, atol=1e-5)
    wanted = torch.autograd.grad(expected.square().sum(), reference.lstm.parameters())
    found = torch.autograd.grad(logits.square().sum(), model.layers.parameters())
    for one, other in zip(found, wanted, strict=True):
        assert torch.allclose(one, other, rtol=1e-4, atol=1e-5)
    for layer in model.layers:
        for parameter in layer.parameters():
            assert float(parameter.detach().abs().max()) <= width**-0.5
        largest = float(layer.weight_hh.detach().abs().max())
        assert largest > 0.9 * width**-0.5  # fails with probability 3e-5 for 100 weights


def test_number_and_shapes_of_parameters():
    """A layer has four gates, each with input weights, recurrent weights and two biases."""
    model = build_model("lstm", (80,), 80, dropout=0, stream=Stream(1))
    first, second = (4 * 256 * (inputs + 256 + 2) for inputs in (8, 256))
    assert sum(p.numel() for p in model.parameters()) == 80 * 8 + first + second + 257 * 80
    assert 80 * 8 + first + second + 257 * 80 == 819_920
    narrow = small(hidden=(4, 3))
    shapes = [tuple(layer.weight_ih.shape) for layer in narrow.layers]
    assert shapes == [(16, 8), (12, 4)]
    assert narrow(letters(2)[0]).shape == (2, LETTERS)


@pytest.mark.thorough
def test_executors_equal_the_plain_loop():
    """Updates agree for two steps of two clients, a padded batch and one-byte inputs."""
    module = small()
    x, y = letters(5)
    source = BatchSource(samples_of([3, 2]), 3, Stream(2))
    data = TrainingData(x, y, source)
    task, job = job_for(module, data, lr=0.5, steps=2)
    assert check_model(task, *data.first(4), LETTERS) is None
    assert why_not_vmapped(task, *data.first(4)) is None
    assert why_not_stacked(task, data) is not None
    expected = plain_loop(module, data, job, lr=0.5)
    assert float(expected.abs().max()) > 1e-2
    for kept in (x, x.byte()):
        for name, make in ANY_MODULE.items():
            found = updates(make(task, TrainingData(kept, y, source)), job)
            assert torch.allclose(found, expected, atol=1e-5), name


def test_evaluation_accepts_bytes_and_uses_small_batches():
    module = small()
    objective, (x, y) = Objective.of(module), letters(600)
    params = objective.spec.from_module(module)
    whole = evaluate(objective, params, x, y, batch=600)
    assert evaluate(objective, params, x.byte(), y) == pytest.approx(whole, rel=1e-6)
    assert module.test_batch < 600


@pytest.mark.thorough
def test_it_learns_to_copy_the_last_letter(tmp_path):
    """After training with Adam, its accuracy exceeds 90 %; guessing would give 20 %."""
    x, _ = letters(400)
    y = x[:, -1].clone()
    data = Dataset("copy", x[:300].byte(), y[:300], x[300:].byte(), y[300:], LETTERS)
    settings = {
        "model": "lstm",
        "hidden": ("16", "16"),
        "clients": 3,
        "split": "iid",
        "rounds": 1,
        "local_steps": 2,
        "batch_size": 20,
        "threads": 1,
        "out": tmp_path / "run",
    }
    setup = build(Config.from_flags("fedavg", **settings), data=data)
    assert setup.config.run.executor == "vmap"
    objective, training = setup.model.objective, setup.learner
    params = training.server.cloud["params"]
    before, _ = evaluate(objective, params, setup.model.test_inputs, setup.model.test_labels)
    optimizer = torch.optim.Adam(objective.module.parameters(), lr=0.01)
    for _ in range(60):
        optimizer.zero_grad()
        nn.functional.cross_entropy(objective.module(x[:300]), y[:300]).backward()
        optimizer.step()
    params = objective.spec.from_module(objective.module)
    after, _ = evaluate(objective, params, setup.model.test_inputs, setup.model.test_labels)
    assert before < 0.5
    assert after > 0.9


def test_unsuitable_samples_and_options_are_errors():
    with pytest.raises(ConfigError, match=r"lstm needs texts as token ids.*\(1, 28, 28\)"):
        build_model("lstm", (1, 28, 28), 10, dropout=0, stream=Stream(1))
    with pytest.raises(ConfigError, match="hidden is empty"):
        small(hidden=())
    with pytest.raises(ConfigError, match="Leave dropout out, or choose fcnn"):
        build_model("lstm", (LENGTH,), LETTERS, dropout=0.5, stream=Stream(1))
    x, _ = letters(8)
    y = torch.zeros(8, dtype=torch.long)
    data = Dataset("few labels", x + 1, y, x + 1, y, 2)
    config = Config.from_flags("fedavg", model="lstm", clients=2, split="iid")
    with pytest.raises(ConfigError, match=r"model accepts 0 to 1.*or another model"):
        build(config, data=data)


class Recurrent(nn.Module):
    """A user's model whose layer ``torch.vmap`` computes one client at a time."""

    def __init__(self):
        super().__init__()
        self.cells, self.last = nn.LSTM(3, 5, batch_first=True), nn.Linear(5, 4)

    def forward(self, x):
        return self.last(self.cells(x.reshape(-1, 4, 3))[0][:, -1])


def test_torch_does_not_ask_users_to_report_recurrent_layers(config, toy):
    """Warnings are errors in tests."""
    settings = config("fedavg", rounds=1, executor="vmap")
    assert wirelessfl.run(settings, data=toy, model=Recurrent()).finished
