"""Hashes of given functions: what changes their results changes the hash, and nothing else does."""

import functools
import importlib
import sys
from pathlib import Path

import pytest
import torch
from torch.nn import functional as F

from wirelessfl.runs.folder.identity import code_hash

BASE = "class Base:\n    def __call__(self, outputs, labels):\n        return outputs * {}\n"
CHILD = "from base_of_loss import Base\n\nclass Child(Base):\n    pass\n"
HELPED = """
WEIGHT, CALLS = {}, []

def helper(x):
    return x * {}

def loss(outputs, labels):
    CALLS.append(1)
    return helper(outputs) * WEIGHT
"""


def weighted(outputs, labels, weight=1.0):
    return F.cross_entropy(outputs, labels) * weight


class Weighted:
    def __init__(self, weight):
        self.weight, self.calls = weight, 0

    def __call__(self, outputs, labels):
        self.calls += 1
        return F.cross_entropy(outputs, labels) * self.weight


def around(weight):
    calls = 0

    def loss(outputs, labels):
        nonlocal calls
        calls += 1
        return F.cross_entropy(outputs, labels) * weight

    return loss


def cross_entropy(weight):
    return torch.nn.CrossEntropyLoss(torch.tensor([1.0, weight]))


def lambdas(weight):
    return (lambda x, y: x * 1.0) if weight == 1.0 else (lambda x, y: x * 2.0)


MAKERS = {
    "partial": lambda weight: functools.partial(weighted, weight=weight),
    "object": Weighted,
    "closure": around,
    "module": cross_entropy,
    "smoothed": lambda weight: torch.nn.CrossEntropyLoss(label_smoothing=weight / 4),
    "lambdas of a line": lambdas,
    "method": lambda weight: Weighted(weight).__call__,
    "set": lambda weight: Weighted({weight}),
    "path": lambda weight: Weighted(Path(f"{weight}.csv")),
    "bfloat16": lambda weight: Weighted(torch.tensor(weight, dtype=torch.bfloat16)),
    "no source": lambda weight: eval(f"lambda x, y: x * {weight}"),
}


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_values_count(make):
    assert code_hash(make(1.0)) == code_hash(make(1.0))
    assert code_hash(make(1.0)) != code_hash(make(2.0))


def test_functions_of_one_file_differ():
    assert code_hash(weighted) != code_hash(cross_entropy)


@pytest.mark.parametrize("make", [Weighted, around])
def test_what_a_function_counts_itself_does_not_count(make):
    loss = make(1.0)
    before = code_hash(loss)
    loss(torch.zeros(1, 2), torch.zeros(1, dtype=torch.int64))
    assert code_hash(loss) == before


@pytest.fixture
def module(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    count = iter(range(99))

    def make(text, name=None):
        name = name or f"module_of_loss_{next(count)}"
        (tmp_path / f"{name}.py").write_text(text)
        importlib.invalidate_caches()
        monkeypatch.delitem(sys.modules, name, raising=False)
        return importlib.import_module(name)

    yield make
    for name in [name for name in sys.modules if name.startswith(("module_of_loss", "base_of"))]:
        del sys.modules[name]


def test_functions_and_values_of_the_module_count(module):
    """But not a list, which may be filled as the function runs."""
    found = [code_hash(module(HELPED.format(*values)).loss) for values in [(1, 1), (1, 2)]]
    other = module(HELPED.format(2, 1)).loss
    assert len({*found, code_hash(other)}) == 3
    before = code_hash(other)
    other(1, 1)
    assert code_hash(other) == before


def test_a_parent_class_in_another_file_counts(module, tmp_path):
    found = []
    for number in (1, 22):
        module(BASE.format(number), "base_of_loss")
        found.append(code_hash(module(CHILD, "child_of_base").Child()))
    del sys.modules["child_of_base"]
    assert found[0] != found[1]


def test_of_the_main_program_only_functions_and_what_they_read_count(module):
    """Its file may start the run, and later resume it."""

    def hash_of(*values, rest=""):
        loss = module(HELPED.format(*values) + rest).loss
        loss.__module__ = loss.__globals__["helper"].__module__ = "__main__"
        return code_hash(loss)

    before = hash_of(1, 1)
    assert hash_of(1, 1, rest="print('resumes')\n") == before
    assert len({before, hash_of(1, 2), hash_of(2, 1)}) == 3
