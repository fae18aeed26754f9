"""Code of one's own that settings of tests name."""

from torch import nn


def undeclared(input_shape, classes):
    """A model that does not declare its fully connected layers."""
    return nn.Sequential(nn.Flatten(), nn.Linear(64, 6), nn.ReLU(), nn.Linear(6, classes))


def declared(input_shape, classes):
    """The same model with the attribute that declares them."""
    model = undeclared(input_shape, classes)
    model.fully_connected = ("1", "3")
    return model
