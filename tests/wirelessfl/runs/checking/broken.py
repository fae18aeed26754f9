"""Users' classes and functions that break one contract each."""

import itertools
from dataclasses import dataclass, field, replace

import numpy as np
import torch
from torch import nn
from torch.nn.functional import cross_entropy

from channels import Access, EqualBands, EqualSlots, section_vi_c
from wirelessfl.data import Dataset
from wirelessfl.extend import (
    IID,
    Bandit,
    Buffered,
    Compression,
    FadingModel,
    Failing,
    FedAvg,
    Initial,
    Scaffold,
    Selection,
    StepSizes,
    Tdma,
    WarmStart,
)
from wirelessfl.observers import Observer

CALLS = itertools.count()


class Drawing(FedAvg):
    """Draws from torch's global generator."""

    def gradient(self, grads, params, cohort):
        return grads + 0.01 * torch.randn_like(grads)


class Counting(FedAvg):
    """Keeps a counter in the class: later runs differ."""

    def send(self, params, state, cohort):
        return {"update": (params - cohort.start) * (1 + 0.01 * next(CALLS))}


class Forgetful(FedAvg):
    """Keeps a counter in the object, which no checkpoint stores."""

    def merge(self, server, received):
        rounds = vars(self).setdefault("rounds", [])
        rounds.append(1)
        mean = received.mean["update"]
        return {
            **super().merge(server, received),
            "params": server["params"] + mean / (1 + len(rounds)),
        }


class InPlace(FedAvg):
    """Changes what the server has sent."""

    def send(self, params, state, cohort):
        return {"update": params - cohort.start.mul_(1.0 + 1e-3)}


class InPlaceMerge(FedAvg):
    """Changes the state of the server."""

    def merge(self, server, received):
        server["params"].add_(received.mean["update"])
        return {**super().merge(server, received), "params": server["params"].clone()}


class OverClients(FedAvg):
    """Subtracts the largest update of the clients that happen to train together."""

    def send(self, params, state, cohort):
        update = params - cohort.start
        return {"update": update - 0.1 * update.amax(0)}


class KeptChanged(Scaffold):
    """Changes in ``send`` what ``keep`` has returned."""

    def keep(self, params, state, cohort):
        return {name: value.clone() for name, value in cohort.kept.items()}

    def send(self, params, state, cohort):
        sent = super().send(params, state, cohort)
        next(iter(cohort.kept.values())).add_(1.0)
        return sent


@dataclass(frozen=True)
class Unhashable(FedAvg):
    """A setting that is a list."""

    widths: list[int] = field(default_factory=list)


@dataclass(frozen=True)
class Unpicklable(FedAvg):
    """Holds a function that no other process can read."""

    def __post_init__(self):
        object.__setattr__(self, "function", lambda value: value)


class NotFinite(FedAvg):
    """Diverges."""

    def merge(self, server, received):
        return {**super().merge(server, received), "params": server["params"] * torch.nan}


class OwnDraws(IID):
    """Draws from NumPy's global generator."""

    def deal(self, samples, cell_of, stream):
        order = np.random.permutation(len(samples.labels))  # noqa: NPY002
        return [np.sort(part) for part in np.array_split(order, len(cell_of))]


class ShuffledLabels(IID):
    """Sorts the labels that it is given."""

    def deal(self, samples, cell_of, stream):
        samples.labels.sort()
        return super().deal(samples, cell_of, stream)


def access(name, serve, **more):
    """An uplink whose access serves ``serve(service of equal slots, load, draw)``."""
    body = {"serve": lambda self, load, draw: serve(EqualSlots().serve(load, draw), load, draw)}
    cls = type("Own", (Access,), body | more)
    return type(name, (Tdma,), {"access": property(lambda self: cls()), "__module__": __name__})


def crowded(service, load, draw):
    """A client's seconds grow with the number of clients of the network."""
    return replace(service, seconds=service.seconds * draw.network.clients)


def changed_load(service, load, draw):
    load.elements[...] = 0.5 * load.elements
    return service


ChangedLoad = access("ChangedLoad", changed_load)
Counted = access(
    "Counted",
    lambda service, load, draw: replace(service, seconds=service.seconds + 1e-3 * next(CALLS)),
)
Crowded = access("Crowded", crowded)


class FourBits(EqualBands):
    """Counts the bits of compressed uploads in rounds alone."""

    def serve(self, load, draw):
        return super().serve(replace(load, bits_per_element=4), draw)


class Slots(Access):
    """An access that is given without an uplink."""

    def serve(self, load, draw):
        return EqualSlots().serve(load, draw)


@dataclass(frozen=True)
class Lucky(Selection):
    """Draws from NumPy's global generator."""

    def select(self, candidates):
        return candidates.smallest(np.random.random(len(candidates.clients)))  # noqa: NPY002


@dataclass(frozen=True)
class Renumbering(Selection):
    """Changes how many clients are selected."""

    def select(self, candidates):
        chosen = candidates.smallest(candidates.clients)
        candidates.counts[...] = 1
        return chosen


class Growing(Buffered):
    """Its scheduler counts merges, and forgets them when it is restored."""

    def scheduler(self, tasks, scope):
        return CountingScheduler(self.server(tasks, scope))


class CountingScheduler:
    """Buffers that grow with the number of events."""

    def __init__(self, server):
        self.server, self.events = server, 0

    def decide(self, event):
        self.events += 1
        decisions = self.server.decide(event)
        for task in self.server.tasks:
            task.buffer = 1 if self.events < 6 else 2
        return decisions

    def snapshot(self):
        return self.server.snapshot()

    def restore(self, state):
        self.server.restore(state)


@dataclass(frozen=True)
class ByNumber(FadingModel):
    """Draws all clients from one generator, so that a channel depends on the others."""

    def build(self):
        return self

    def draw(self, stream, index, clients, root):
        normal = stream.generator(index).standard_normal((2, len(clients), len(root)))
        return ((normal[0] + 1j * normal[1]) / 2**0.5).astype(np.complex64)


@dataclass(frozen=True)
class Moody(Failing):
    """Draws probabilities."""

    def probability(self, snr, draws):
        return np.random.random(snr.shape)  # noqa: NPY002


@dataclass(frozen=True)
class Overwriting(Compression):
    """Sets the smallest elements of its argument to 0."""

    def compress(self, flat, lengths, spec, streams):
        return flat.masked_fill_(flat.abs() < flat.abs().mean(), 0.0).clone()

    def bits(self, lengths, spec):
        return 32 * lengths


@dataclass(frozen=True)
class Decaying(StepSizes):
    """Halves the factor with every call."""

    def shares(self, rounds):
        factor = [1.0]

        def share(number):
            factor[0] *= 0.5
            return factor[0]

        return share


class Amnesiac(Bandit):
    """Stores nothing of what it has learnt."""

    def begin(self, clients, tasks, stream):
        assignment = super().begin(clients, tasks, stream)
        forgetful = type(
            "Amnesiac",
            (type(assignment),),
            {"state": lambda self: {}, "restore": lambda self, state: None},
        )
        copy = object.__new__(forgetful)
        vars(copy).update(vars(assignment))
        return copy


@dataclass(frozen=True)
class Doubling(WarmStart):
    """Changes the model of the last session."""

    def initial(self, opening):
        return Initial(opening.latest.mul_(0.5).clone())


class Mixed(nn.Module):
    """Mixes the samples of a batch."""

    def __init__(self, input_shape, classes):
        super().__init__()
        self.linear = nn.Linear(int(np.prod(input_shape)), classes)

    def forward(self, x):
        x = x.flatten(1)
        return self.linear(x - x.mean(0))


def dealt(data_dir):
    """Different samples in every call."""
    x = torch.rand(60, 8) + next(CALLS)
    y = torch.arange(60) % 3
    return Dataset("dealt", x, y, x, y, 3)


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


def as_text(outputs, labels):
    """No number."""
    return "0.5"


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


class Flattering(Observer):
    """Changes the row that it sees."""

    def row(self, run, row):
        row["accuracy"] = 1.0


class Tiring(Observer):
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


def drawn_model(input_shape, classes):
    """A good model: its initial weights are drawn from torch's global generator."""
    return nn.Sequential(nn.Flatten(), nn.Linear(64, classes))


def drawn_data(data_dir):
    """A good data set, drawn from torch's global generator."""
    x = torch.randn(60, 8)
    y = torch.arange(60) % 3
    return Dataset("drawn", x, y, x, y, 3)
