"""Classes of users with a mistake in one method."""

from dataclasses import dataclass, replace

import numpy as np
import pytest

from channels.fading import Rayleigh
from wirelessfl.data.splits.split import OwnedSplit
from wirelessfl.radio import FadingModel
from wirelessfl.rounds.step_sizes.step_sizes import StepSizes
from wirelessfl.sessions.presence.presence_model import PresenceModel, churn
from wirelessfl.sessions.processes import Arrivals
from wirelessfl.training.payloads import Received
from wirelessfl.uplinks.tdma import Tdma
from wirelessfl.uplinks.uplink import Reception

ROUNDS = {"algorithm": "fedavg"}
SOME = {"algorithm": "fedavg", "clients_per_round": 2}
REQUESTS = {"algorithm": "fedavg", "schedule": "buffered", "requests": 3, "buffer": 2}
TASKS = {"algorithm": "sync-st", "clients_per_round": 2}
SESSIONS = {"algorithm": "fedavg", "sessions": 2}


def own(base, method, result):
    """A subclass of ``base`` whose ``method`` maps the valid result to another one."""

    def override(self, *args, **kwargs):
        valid = getattr(base, method)
        valid = valid.fget if isinstance(valid, property) else valid
        return result(valid(self, *args, **kwargs))

    override.__name__ = method
    as_property = isinstance(getattr(base, method), property)
    body = {method: property(override) if as_property else override, "__module__": __name__}
    return type("Own", (base,), body)


def made_by(choice, method, base, wrong, result):
    """A choice whose ``method`` returns an object of a subclass of ``base`` with a mistake."""
    cls = own(base, wrong, result)

    def change(valid):
        twin = object.__new__(cls)
        twin.__dict__.update(vars(valid))
        return twin

    return own(choice, method, change)


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
class Poisson(PresenceModel):
    def attendance(self, scene):
        return churn(OwnArrivals(scene.clients, 1.0, 9.0, None, scene.stream), "rounds", scene)


class OwnArrivals(Arrivals):
    pass


@dataclass(frozen=True)
class OwnTdma(Tdma):
    def receive(self, air):
        return Reception(air)


def arrivals(method, result):
    """A presence whose process has a mistake in ``method``."""
    cls = own(Arrivals, method, result)

    @dataclass(frozen=True)
    class Own(PresenceModel):
        def attendance(self, scene):
            return churn(cls(scene.clients, 1.0, 9.0, None, scene.stream), "rounds", scene)

    return Own


def scheduler(base, made, decide):
    """A schedule whose scheduler decides ``decide(valid decisions)``."""
    return made_by(base, "scheduler", made, "decide", decide)


def received(change):
    return lambda valid: Received(
        {name: change(mean) for name, mean in valid.mean.items()}, {}, valid.clients, valid.node
    )


def served(**changes):
    """Change fields of a service."""
    return lambda valid: replace(
        valid, **{name: change(getattr(valid, name)) for name, change in changes.items()}
    )


def each(kind, settings, make, mistakes):
    """Cases of one method: kind of choice, its class, settings, and what the message says."""
    return [
        pytest.param(kind, make(result), settings, text, id=f"{kind}-{at}-{text[:30]}")
        for at, (result, text) in enumerate(mistakes)
    ]
