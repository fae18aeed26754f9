"""Attributes that a module may declare for training."""

from torch import nn

from wirelessfl.models import LeNet5
from wirelessfl.models.shapes import Declared


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
