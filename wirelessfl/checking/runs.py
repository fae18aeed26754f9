"""Contracts of all kinds, tested by small runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from multiprocessing.reduction import ForkingPickler
from typing import Any

from wirelessfl.checking.contract import (
    Contract,
    NotTestedError,
    broken,
    difference,
)
from wirelessfl.checking.subject import Subject
from wirelessfl.config import Config
from wirelessfl.divergence import has_diverged
from wirelessfl.errors import ConfigError
from wirelessfl.runs.result import RunResult

CLOSE = 1e-4
"""Largest difference of parameters by rounding, relative to the largest parameter."""
TRAINS, TWICE = "trains three rounds", "gives the same answer twice"
TIME = ("wall_seconds",)
"""Values of rows that differ between equal runs."""


def _created(subject: Subject) -> None:
    made = subject.made()
    if not is_dataclass(made):
        return
    for entry in fields(made):
        value = getattr(made, entry.name)
        try:
            hash(value)
        except TypeError:
            broken(f"its setting {entry.name} is a {type(value).__name__}: use a tuple")


def _pickled(subject: Subject) -> None:
    made = subject.made()
    try:
        copy = ForkingPickler.loads(ForkingPickler.dumps(made))
    except Exception as error:  # anything that a user's __reduce__ raises
        broken(f"{type(error).__name__}: {error}. Define the class at the top level of a module")
    if vars(copy) != vars(made):
        broken("a pickled copy differs: keep settings in the fields of the dataclass alone")


def _trains(subject: Subject) -> None:
    subject.plain = subject.run()
    for row in subject.plain.rows:
        if has_diverged(row):
            broken(
                f"its loss is not finite in round {row['round']}: try other settings, e.g. a "
                "smaller lr"
            )
    if len(subject.plain.rows) < 2:
        broken("the run wrote no row after the first")


def _twice(subject: Subject) -> None:
    assert subject.plain is not None
    found = apart(subject.plain, subject.run(seed=1))
    if found:
        broken(
            f"{found}. Draw from the given streams instead of global generators, and keep no state "
            "in the class"
        )


def _resumes(subject: Subject) -> None:
    assert subject.plain is not None
    for result in subject.resumed():
        found = apart(subject.plain, result)
        if found:
            broken(
                f"after an interruption, {found}. Keep state only where a checkpoint stores it, "
                "not in the object"
            )


def _chunks(subject: Subject) -> None:
    one, all_ = (subject.run(subject.config(chunk=chunk)) for chunk in (1, 6))
    found = difference(_values(one), _values(all_), CLOSE)
    if found is not None:
        broken(f"parameters{found} depend on whether clients train together or one at a time")


def _executors(subject: Subject) -> None:
    results = {}
    for name in ("loop", "vmap"):
        with tested(f"executor={name}"):
            config = subject.config(executor=name, rounds=2)
        results[name] = refused_or(subject, config)
    found = difference(_values(results["loop"]), _values(results["vmap"]), CLOSE)
    if found is not None:
        broken(f"parameters{found} differ between executor loop and vmap")


class tested:  # reads like a function
    """Context of settings that may be refused: then the contract is not tested."""

    def __init__(self, what: str) -> None:
        self.what = what

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        if isinstance(error, ConfigError):
            raise NotTestedError(str(error)) from error


def refused_or(subject: Subject, config: Config) -> RunResult:
    """The result of a run; the contract is not tested if a combination is refused by the engine.

    Raises:
        NotTestedError: a model cannot be trained by an executor.
    """
    try:
        return subject.run(config)
    except ConfigError as error:
        if "executor" in str(error):
            raise NotTestedError(str(error)) from error
        raise


def _values(result: RunResult) -> Mapping[str, Any]:
    return dict(result.params)


def apart(one: RunResult, two: RunResult) -> str:
    """Where two runs that must be equal differ, in words; "" if they do not."""
    for first, second in zip(one.rows, two.rows, strict=False):
        for name in first:
            if name not in TIME and difference(first[name], second.get(name)) is not None:
                return (
                    f"{name} of round {first['round']} is {first[name]!r} in one run and "
                    f"{second.get(name)!r} in another"
                )
    if len(one.rows) != len(two.rows):
        return f"one run has {len(one.rows)} rows and another {len(two.rows)}"
    found = difference(_values(one), _values(two))
    return "" if found is None else f"final parameters{found} differ between equal runs"


def variant(name: str, **changes: Any) -> Contract:
    """A contract that a run with other settings works, unless the settings are refused."""

    def test(subject: Subject) -> None:
        with tested(name):
            config = subject.config(**changes)
        subject.run(config)

    return Contract(name, test, needs=(TRAINS,))


CREATED = Contract("has valid settings", _created)
PICKLED = Contract("can be sent to worker processes", _pickled, needs=(CREATED.name,))
BASIC = (
    Contract(TRAINS, _trains, needs=(CREATED.name,)),
    Contract(TWICE, _twice, needs=(TRAINS,)),
    Contract("resumes as if it had not been interrupted", _resumes, needs=(TWICE,)),
)
"""Contracts of everything that takes part in runs."""
CHUNKS = Contract("does not depend on which clients train together", _chunks, needs=(TWICE,))
EXECUTORS = Contract("executors agree", _executors, needs=(TWICE,))
