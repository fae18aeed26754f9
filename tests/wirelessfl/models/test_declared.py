"""Attributes that a module may declare."""

from torch import nn

from wirelessfl.models import LeNet5
from wirelessfl.models.declared import Declared


def test_modules_declare_what_they_have():
    assert Declared.of(nn.Linear(2, 2)) == Declared()
    lenet = Declared.of(LeNet5((1, 28, 28), 10))
    assert lenet == Declared(fully_connected=("fc1", "fc2", "fc3"))


def test_what_an_instance_declares_later_counts():
    module = nn.Linear(2, 2)
    module.bytes_per_sample, module.vocabulary = 1 << 28, 17
    assert Declared.of(module) == Declared(bytes_per_sample=1 << 28, vocabulary=17)


def test_a_vocabulary_that_is_no_number_is_the_users_own():
    module = nn.Linear(2, 2)
    module.vocabulary = ["a", "b"]
    assert Declared.of(module).vocabulary is None
