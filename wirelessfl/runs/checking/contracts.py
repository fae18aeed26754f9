"""The contracts: what must hold of every class and function that takes part in runs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from multiprocessing.reduction import ForkingPickler
from typing import Any

import numpy as np

from channels import Load
from wirelessfl.air.uplinks.checked import checked_access
from wirelessfl.base.errors import ConfigError
from wirelessfl.base.registry import Choice
from wirelessfl.base.rows import has_diverged
from wirelessfl.base.torch_state import seeded_generators
from wirelessfl.runs.checking.kinds import CHECKED
from wirelessfl.runs.checking.recorded import Recorder, difference
from wirelessfl.runs.checking.subject import Subject
from wirelessfl.runs.result import RunResult

CLOSE = 1e-4
"""Largest difference of parameters by rounding, relative to the largest parameter."""
CLOSE_SERVICE = 1e-9
ELEMENTS, CLOSE_RATES = (1e6, 2e6), 0.01
"""Two uploads, and the largest relative difference of what serve and rates take for the rest."""
DRAWING = ("model", "dataset")
"""Kinds whose functions may draw from the global generators, which a run seeds before."""
TIME = ("wall_seconds",)
"""Values of rows that differ between equal runs."""


class BrokenError(Exception):
    """A contract does not hold; the text says what is wrong."""


class NotTestedError(Exception):
    """A contract cannot be tested; the text says why."""


@dataclass(frozen=True)
class Contract:
    """One contract.

    Args:
        name: what must hold, e.g. "gives the same answer twice".
        test: tests a subject; raises ``BrokenError``, ``NotTestedError``, or what the user's code
            raises.
        needs: name of a contract that must hold first; empty if there is none.
        kinds: kinds of choice that it concerns; None for all.
    """

    name: str
    test: Callable[[Subject], None]
    needs: str = ""
    kinds: tuple[str, ...] | None = None


def _valid(subject: Subject) -> None:
    made = subject.made()
    for entry in fields(made) if isinstance(made, Choice) else ():
        value = getattr(made, entry.name)
        try:
            hash(value)
        except TypeError as error:
            kind = type(value).__name__
            raise BrokenError(f"its setting {entry.name} is a {kind}: use a tuple") from error


def _pickled(subject: Subject) -> None:
    made = subject.made()
    try:
        copy = ForkingPickler.loads(ForkingPickler.dumps(made))
    except Exception as error:  # anything that a user's __reduce__ raises
        remedy = "Define the class at the top level of a module"
        raise BrokenError(f"{type(error).__name__}: {error}. {remedy}") from error
    if difference(vars(made), vars(copy)) is not None:
        raise BrokenError("a pickled copy differs: keep settings in the dataclass's fields alone")


def _trains(subject: Subject) -> None:
    subject.plain = subject.run()
    rows = subject.plain.rows
    for row in rows:
        if has_diverged(row):
            raise BrokenError(
                f"its loss is not finite in round {row['round']}: try other settings, e.g. a "
                "smaller lr"
            )
    if len(rows) < 2:
        raise BrokenError("the run wrote no row after the first")
    if len({row["loss"] for row in rows}) == 1:
        raise BrokenError(f"nothing is learnt: the loss is {rows[0]['loss']:g} in every round")


def _pure(subject: Subject) -> None:
    stream = subject.stream.child("global", 1)
    recorder = Recorder(stream if subject.kind in DRAWING else None)
    with recorder.recording(subject.thing) as recorded:
        subject.run_of(recorded)
    for call in recorder.calls:
        if call.changed is not None:
            raise BrokenError(
                f"{call.title} changes its argument {call.changed}, which others use: copy it"
            )
    for call in recorder.calls:
        if subject.kind == "observer":  # it may write to files and screens
            return
        with seeded_generators(stream):
            where = call.repeated()
        if where is not None:
            raise BrokenError(
                f"{call.title} returns another result{where} for equal arguments: draw from the "
                "given streams, and keep no state outside of the object"
            )


def _twice(subject: Subject) -> None:
    remedy = "Draw from the given streams, not global generators, and keep no state in the class"
    _check_equal(subject, subject.run(seed=1), remedy)


def _resumes(subject: Subject) -> None:
    remedy = "Keep state only where a checkpoint stores it, not in the object"
    for result in subject.resumed():
        _check_equal(subject, result, remedy, "after an interruption, ")


def _check_equal(subject: Subject, result: RunResult, remedy: str, when: str = "") -> None:
    assert subject.plain is not None
    rows, others = subject.plain.rows, result.rows
    for one, two in zip(rows, others, strict=False):
        for name in dict.fromkeys([*one, *two]):
            if name not in TIME and difference(one.get(name), two.get(name)) is not None:
                raise BrokenError(
                    f"{when}{name} of round {one['round']} is {two.get(name)!r} instead of "
                    f"{one.get(name)!r}. {remedy}"
                )
    if len(rows) != len(others):
        raise BrokenError(f"{when}a run has {len(others)} rows instead of {len(rows)}. {remedy}")
    where = difference(dict(subject.plain.params), dict(result.params))
    if where is not None:
        raise BrokenError(f"{when}the final parameters{where} differ. {remedy}")


def _agree(subject: Subject) -> None:
    assert subject.plain is not None
    parameters = dict(subject.plain.params)
    ways: tuple[dict[str, Any], ...] = ({"chunk": 1}, {"executor": "loop"}, {"executor": "vmap"})
    for changes in ways:
        try:
            result = subject.run(subject.config(**changes))
        except ConfigError as error:
            if "executor" in str(error):  # which refuses some models
                raise NotTestedError(str(error)) from error
            raise
        where = difference(parameters, dict(result.params), CLOSE)
        if where is not None:
            ((name, value),) = changes.items()
            raise BrokenError(
                f"the parameters{where} are others with {name}={value}: treat each client and each "
                "sample on its own"
            )


def _cells(subject: Subject) -> None:
    network, made = subject.network(), subject.made()
    if subject.kind == "fading":
        network = replace(network, fading=made.build())
    draw = network.draw(subject.stream.child("channel"), 3)
    last = np.flatnonzero(network.cell_of == network.cells - 1)
    alone = network.of(last).draw(subject.stream.child("channel"), 3)
    values, others = {"channels": draw.h[last]}, {"channels": alone.h}
    if subject.kind == "uplink":
        access, cycles = checked_access(made), np.linspace(1e6, 5e6, network.clients)
        elements = np.linspace(4000.0, 500.0, network.clients)
        service = access.serve(Load(cycles, elements), draw)
        less = access.serve(Load(cycles[last], elements[last]), draw.of(last))
        for name in ("seconds", "joules", "arrived"):
            values[name] = np.broadcast_to(getattr(service, name), network.clients)[last]
            others[name] = np.broadcast_to(getattr(less, name), len(last))
    for name, value in values.items():
        if difference(value, others[name], CLOSE_SERVICE) is not None:
            raise BrokenError(
                f"the {name} of a cell change if another cell is added: compute them per cell, and "
                "draw per client, by stream.normals or stream.uniforms"
            )


def _rates(subject: Subject) -> None:
    access = checked_access(subject.made())
    if not subject.made().access.asynchronous:
        raise NotTestedError("its access has no method rates, and serves whole rounds only")
    draw = subject.network(1).of(np.zeros(1, np.int64)).draw(subject.stream.child("channel"))
    band = float(draw.network.bandwidth_hz[0])
    loads = [Load(0.0, np.full(1, elements), bits_per_element=32) for elements in ELEMENTS]
    less, more = (float(access.serve(load, draw).seconds[0]) for load in loads)
    bits = float(loads[1].bits[0] - loads[0].bits[0])
    bps = float(access.rates(np.asarray(draw.snr_hz / band), band).bps[0])
    if np.isfinite(more) and abs((more - less) * bps / bits - 1) > CLOSE_RATES:
        raise BrokenError(
            f"one client alone sends {bits / (more - less):.4g} bit/s by serve and {bps:.4g} bit/s "
            "by rates: schedule buffered asks rates, so count the same bits in both"
        )


def _divided(subject: Subject) -> None:
    try:
        subject.run(subject.config(algorithm="hist", cells=2, rounds=1))
    except ConfigError as error:
        raise NotTestedError(f"with algorithm hist, {error}") from error


CHOICES = tuple(kind for kind in CHECKED if kind not in ("network", "observer"))
VALID, TRAINS = "has valid settings", "trains three rounds"
PURE = "is pure and leaves its arguments unchanged"
TWICE = "gives the same answer twice"
CONTRACTS = (
    Contract(VALID, _valid),
    Contract("can be sent to worker processes", _pickled, VALID, CHOICES),
    Contract(TRAINS, _trains, VALID),
    Contract(PURE, _pure, TRAINS),
    Contract(TWICE, _twice, PURE),
    Contract("resumes as if it had not been interrupted", _resumes, TWICE),
    Contract("gives the same by all chunks and executors", _agree, TWICE),
    Contract("does not depend on other cells", _cells, PURE, ("fading", "uplink")),
    Contract("sends as fast at any time as in rounds", _rates, PURE, ("uplink",)),
    Contract("can be divided between cells", _divided, TRAINS, ("model",)),
)
"""All contracts, in the order of their tests."""
