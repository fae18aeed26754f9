"""Small modules for tests of the neuron finder."""

from torch import nn
from torch.nn import functional as F

CLASSES = 4


class Layered(nn.Module):
    """A module with named layers, whose forward is a given function of module and inputs."""

    def __init__(self, forward, **layers):
        super().__init__()
        for name, layer in layers.items():
            setattr(self, name, layer)
        self.function = forward

    def forward(self, x):
        return self.function(self, x)


def chain(**layers):
    def forward(self, x):
        for name in layers:
            x = getattr(self, name)(x)
        return x

    return Layered(forward, **layers)


class Flattening(nn.Module):
    """A convolution and two linear layers, with a given ``flatten`` function in between."""

    def __init__(self, flatten, conv=3, width=4):
        super().__init__()
        self.conv = nn.Conv2d(1, conv, 3, bias=False)
        self.fc1, self.fc2 = nn.Linear(conv * 4, width), nn.Linear(width, CLASSES)
        self.flatten = flatten

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.conv(x)), 2)
        return self.fc2(nn.functional.gelu(self.fc1(self.flatten(x))))
