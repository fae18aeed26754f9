"""Users' losses, metrics, networks and observers that break one contract each."""

import itertools
from dataclasses import fields

import torch
from torch.nn.functional import cross_entropy

from channels import Network, section_vi_c
from wirelessfl.losses import CrossEntropy
from wirelessfl.observers import Observer

CALLS = itertools.count()


def no_gradient(outputs, labels):
    """The error rate has no useful gradient."""
    return (outputs.argmax(1) != labels).float() + 0 * outputs.sum(1)


def overwriting(outputs, labels):
    """Changes the labels."""
    labels.clamp_(max=5)
    return cross_entropy(outputs, labels, reduction="none")


def noisy(outputs, labels):
    """Every call gives another loss."""
    return cross_entropy(outputs, labels, reduction="none") * (1 + 0.1 * next(CALLS))


def weighted(outputs, labels):
    """A weighted mean divides by the weights of the whole batch."""
    return cross_entropy(outputs, labels, weight=torch.arange(1.0, 11.0))


class OfBatch(CrossEntropy):
    """Subtracts the mean over the batch."""

    def values(self, outputs, labels):
        return super().values(outputs - outputs.mean(0), labels)


class OtherInVmap(CrossEntropy):
    """Gives another loss for a batch that vmap makes."""

    def values(self, outputs, labels):
        found = super().values(outputs, labels)
        return 2 * found if torch._C._functorch.is_batchedtensor(outputs) else found


def as_text(outputs, labels):
    """No number."""
    return "0.5"


def of_samples(outputs, labels):
    """As many numbers as samples."""
    return (outputs.argmax(1) == labels).float()


def sorting(outputs, labels):
    """Sorts the labels that it is given."""
    labels[:] = labels.sort().values
    return float(labels[0])


def counting(outputs, labels):
    """A counter."""
    return float(next(CALLS))


def moody(stream):
    """Another network in every call."""
    return section_vi_c(1, 6, stream=stream.child("call", next(CALLS)))


class Louder(Network):
    """Its channels are stronger, which no file says."""

    def draw(self, *given, **more):
        draw = super().draw(*given, **more)
        return type(draw)(draw.network, 2 * draw.h)


def own_class(stream):
    """A network of a class of its own."""
    network = section_vi_c(1, 6, stream=stream)
    return Louder(
        **{entry.name: getattr(network, entry.name) for entry in fields(network) if entry.init}
    )


class Flattering(Observer):
    """Changes the row that it sees."""

    def row(self, run, row):
        row["accuracy"] = 1.0


class Forgetful(Observer):
    """Counts rows in the object, and so forgets those before an interruption."""

    def __init__(self):
        self.rows = 0

    def row(self, run, row):
        self.rows += 1
        return "enough rows" if self.rows > 3 else None


class Talking(Observer):
    """Returns a number instead of a reason."""

    def row(self, run, row):
        return 3
