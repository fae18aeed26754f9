"""Models whose neurons cannot be omitted raise a one-line error with the reason."""

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from tests.wirelessfl.models.submodels.modules import CLASSES, Flattening, Layered, chain
from wirelessfl.base.errors import ConfigError
from wirelessfl.models import FCNN, LSTM, LeNet5, LinearClassifier
from wirelessfl.models.submodels import ParamSpec, find_neurons

CONV = {"conv": nn.Conv2d(1, 6, 3)}


def found(module, *shape):
    return find_neurons(module, ParamSpec.of(module), torch.randn(3, *shape))


def twice(self, x):
    return self.fc(self.same(self.same(self.first(x)).relu()))


def frozen():
    module = FCNN((5,), CLASSES, hidden=(4, 3))
    module.layers[4].weight.requires_grad_(False)
    return module


def tied():
    module = chain(a=nn.Linear(5, 5), b=nn.Linear(5, 5), c=nn.Linear(5, CLASSES))
    module.b.weight = module.a.weight
    return module


def last(self, x):
    return self.fc(self.lstm(self.first(x)[:, None])[0][:, -1])


def looping(self, x):
    return self.fc(x) if x.sum() > 0 else self.fc(-x)


def hidden(**between):
    return chain(fc1=nn.Linear(5, 6), **between, fc2=nn.Linear(6, CLASSES))


def images(**between):
    return chain(conv=nn.Conv2d(1, 6, 3), **between, flat=nn.Flatten(), fc=nn.Linear(96, CLASSES))


class Squeezing(Layered):
    """A convolution whose pooled channels ``squeezed`` makes a matrix."""

    def __init__(self, squeezed):
        super().__init__(
            lambda m, x: m.fc(squeezed(F.adaptive_avg_pool2d(m.conv(x), 1))),
            conv=nn.Conv2d(1, 6, 3),
            fc=nn.Linear(6, CLASSES),
        )


REFUSED = {
    "linear": (LinearClassifier((5,), CLASSES), "no hidden neurons"),
    "lstm first": (
        Layered(
            lambda m, x: m.fc(m.lstm(x[:, None])[0].mean(1)),
            lstm=nn.LSTM(5, 6, batch_first=True),
            fc=nn.Linear(6, CLASSES),
        ),
        "layer 'lstm' .* is of type LSTM",
    ),
    "lstm behind": (
        Layered(last, first=nn.Linear(5, 5), lstm=nn.LSTM(5, 6), fc=nn.Linear(6, CLASSES)),
        "layer 'first' .* 'getitem'",
    ),
    "layer norm": (hidden(norm=nn.LayerNorm(6)), "'fc1' .* 'norm' is of type LayerNorm"),
    "running": (hidden(norm=nn.BatchNorm1d(6)), "'norm' keeps running statistics"),
    "softmax": (hidden(act=nn.Softmax(-1)), "'act' is of type Softmax"),
    "mean of neurons": (
        Layered(
            lambda m, x: m.fc(m.conv(x).mean(1).flatten(1)),
            conv=nn.Conv2d(1, 4, 3),  # as many channels as rows: shapes are ambiguous
            fc=nn.Linear(16, CLASSES),
        ),
        "'conv' .* operation 'mean'",
    ),
    "pool of neurons": (hidden(pool=nn.MaxPool1d(3, 1, 1)), "'pool' is of type MaxPool1d"),
    "prelu": (hidden(act=nn.PReLU(6)), "'act' is of type PReLU"),
    "function": (
        Layered(
            lambda m, x: m.fc2(torch.cat([m.fc1(x), x], 1)),
            fc1=nn.Linear(5, 6),
            fc2=nn.Linear(11, CLASSES),
        ),
        "'fc1' .* operation 'cat'",
    ),
    "own scale": (
        Layered(
            lambda m, x: m.fc2(m.fc1(x) * m.scale),
            fc1=nn.Linear(5, 6),
            fc2=nn.Linear(6, CLASSES),
            scale=nn.Parameter(torch.ones(6)),
        ),
        "'fc1' .* 'scale'",
    ),
    "twice": (
        Layered(twice, first=nn.Linear(5, 6), same=nn.Linear(6, 6), fc=nn.Linear(6, CLASSES)),
        r"'first' .* 'same\.weight' is used more than once",
    ),
    "tied": (tied(), r"'a' .* 'a\.weight' is tied to 'b\.weight'"),
    "frozen": (frozen(), r"'layers\.1' .* 'layers\.4\.weight' is frozen"),
    "axes": (
        chain(fc1=nn.Linear(5, 6), fc2=nn.Linear(6, 3), flat=nn.Flatten(), fc=nn.Linear(6, 4)),
        "'fc2' cannot be omitted, because 'flat' is of type Flatten",
    ),
    "control flow": (
        chain(fc1=nn.Linear(5, 6), inner=Layered(looping, fc=nn.Linear(6, CLASSES))),
        "layer 'inner' cannot be traced",
    ),
    "grouped": (images(two=nn.Conv2d(6, 6, 1, groups=2)), "'two' is a convolution with 2 groups"),
    "transposed": (images(two=nn.ConvTranspose2d(6, 6, 1)), "'two' is of type ConvTranspose2d"),
    "flattened groups": (
        chain(**CONV, flat=nn.Flatten(), norm=nn.GroupNorm(2, 96), fc=nn.Linear(96, CLASSES)),
        "'norm' is a GroupNorm of flattened",
    ),
    "sizes by number": (
        Flattening(lambda x: x.view(-1, 12)),
        r"'conv' .* 'view' .* .use flatten\(1\)",
    ),
    "squeezed": (Squeezing(lambda x: x.squeeze()), r"'conv' .* 'squeeze' .* .use flatten\(1\)"),
    "squeezed neurons": (
        Squeezing(lambda x: torch.squeeze(x, (1, 2, 3))),
        r"'conv' .* 'squeeze' .* .use flatten\(1\)",
    ),
    "pixels": (Flattening(lambda x: x.transpose(1, 2).flatten(1)), "'conv' .* 'transpose'"),
    "other images": (LeNet5((1, 28, 28), CLASSES), "model LeNet5 does not run"),
}


@pytest.mark.thorough(every=8)
@pytest.mark.parametrize("name", REFUSED)
def test_a_model_whose_neurons_cannot_be_omitted_is_refused(name):
    module, words = REFUSED[name]
    first = next(iter(module.parameters()))
    shape = {"axes": (2, 5), "other images": (1, 12, 12)}.get(name) or (
        (1, 6, 6) if first.ndim == 4 else (5,)
    )
    with pytest.raises(ConfigError, match=words) as caught:
        found(module, *shape)
    assert "\n" not in str(caught.value)
    assert str(caught.value).startswith("model ")
    assert "Choose" in str(caught.value)


def test_models_of_texts():
    """The built-in LSTM cannot be traced; embeddings are accepted and keep all columns."""
    tokens = torch.zeros(3, 5, dtype=torch.long)
    module = LSTM((5,), 8, hidden=(4,))
    with pytest.raises(ConfigError, match=r"model LSTM .* layer 'layers\.0' cannot be traced"):
        find_neurons(module, ParamSpec.of(module), tokens)
    bag = Layered(
        lambda m, x: m.fc2(F.relu(m.fc1(m.embedding(x).mean(1)))),
        embedding=nn.Embedding(8, 6),
        fc1=nn.Linear(6, 7),
        fc2=nn.Linear(7, CLASSES),
    )
    neurons = find_neurons(bag, ParamSpec.of(bag), tokens)
    assert [(layer.name, layer.width) for layer in neurons.layers] == [("fc1", 7)]


def test_pixel_axes_may_be_squeezed():
    for squeezed in (lambda x: x.squeeze(-1).squeeze(dim=2), lambda x: x.squeeze((2, 3))):
        neurons = found(Squeezing(squeezed), 1, 6, 6)
        assert [(layer.name, layer.width) for layer in neurons.layers] == [("conv", 6)]
