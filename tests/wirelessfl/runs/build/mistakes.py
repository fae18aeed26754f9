"""Classes of users with a mistake in one method."""

from dataclasses import dataclass, replace

import numpy as np

from channels.fading import Rayleigh
from wirelessfl.air.radio import FadingModel
from wirelessfl.air.uplinks.tdma import Tdma
from wirelessfl.air.uplinks.uplink import Reception
from wirelessfl.algorithms.step_sizes import StepSizes
from wirelessfl.data.splits.split import OwnedSplit
from wirelessfl.engine.sessions.presence import PresenceModel, churn
from wirelessfl.engine.sessions.processes import Arrivals
from wirelessfl.training.rules import Received

ROUNDS = {"algorithm": "fedavg"}
SOME = {"algorithm": "fedavg", "clients_per_round": 2}
REQUESTS = {"algorithm": "fedavg", "schedule": "buffered", "requests": 3, "buffer": 2}
TASKS = {"algorithm": "sync-st", "clients_per_round": 2}
SESSIONS = {"algorithm": "fedavg", "sessions": 2}


def own(base, method, *rest):
    """A subclass of ``base`` whose ``method`` has a mistake.

    Args:
        base: class of a choice.
        method: its method or property.
        rest: a function that maps the valid result to another one; or the class of the object
            that ``method`` makes, the method of that class with the mistake, and such a function.
    """
    if len(rest) > 1:
        made = own(*rest)

        def result(valid):
            twin = object.__new__(made)
            twin.__dict__.update(vars(valid))
            return twin

    else:
        (result,) = rest

    def override(self, *args, **kwargs):
        valid = getattr(base, method)
        valid = valid.fget if isinstance(valid, property) else valid
        return result(valid(self, *args, **kwargs))

    override.__name__ = method
    as_property = isinstance(getattr(base, method), property)
    body = {method: property(override) if as_property else override, "__module__": __name__}
    return type("Own", (base,), body)


def nothing(valid):
    return None


def fails(valid):
    return {}["nothing"]


def first(change):
    """Change the first entry of an array."""

    def changed(valid):
        copy = np.array(valid)
        copy.flat[0] = change
        return copy

    return changed


@dataclass(frozen=True)
class OwnRayleigh:
    def draw(self, stream, index, clients, root):
        return Rayleigh().draw(stream, index, clients, root)


@dataclass(frozen=True)
class OwnFading(FadingModel):
    def build(self):
        return OwnRayleigh()


@dataclass(frozen=True)
class Owned(OwnedSplit):
    name = "owned"

    def owners(self, labels, cell_of, stream):
        return np.arange(len(labels)) % len(cell_of)


@dataclass(frozen=True)
class Halving(StepSizes):
    def shares(self, rounds):
        return lambda number: 0.5**number


@dataclass(frozen=True)
class OwnPresence(PresenceModel):
    def process(self, scene):
        return Arrivals(scene.clients, 1.0, 9.0, None, scene.stream)

    def attendance(self, scene):
        return churn(self.process(scene), "rounds", scene)


@dataclass(frozen=True)
class OwnTdma(Tdma):
    def receive(self, air):
        return Reception(air)


def received(change):
    return lambda valid: Received(
        {name: change(mean) for name, mean in valid.mean.items()}, {}, valid.clients, valid.node
    )


def served(**changes):
    """Change fields of a service."""
    return lambda valid: replace(
        valid, **{name: change(getattr(valid, name)) for name, change in changes.items()}
    )
