"""Calls of a user's methods, recorded during a run, to be repeated on copies of their arguments."""

from __future__ import annotations

import copy
import inspect
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, fields, is_dataclass
from functools import wraps
from types import FunctionType
from typing import Any

import numpy as np
import torch
from torch import Tensor

from channels import Network, Stream
from wirelessfl.base.guard import of_project
from wirelessfl.base.torch_state import seeded_generators
from wirelessfl.config import Config
from wirelessfl.runs.observers import Observer

CALLS = 3
"""Number of recorded calls of each method."""
CLOSE = 1e-5
"""Largest difference of repeated results by rounding: copies can have other strides."""
PLAIN = (str, bytes, bool, int, float, complex, set, frozenset, np.generic, type(None))


@dataclass
class Call:
    """One call: copies of its arguments, before it, and of its result."""

    title: str
    function: Callable[..., Any]
    arguments: tuple[tuple[Any, ...], dict[str, Any]]
    result: Any = None
    changed: str | None = None
    """Where an argument was changed; None if none was."""

    def bound(self, positional: Any, named: Any) -> dict[str, Any]:
        """Arguments by name; by place, where the function has no signature."""
        try:
            return inspect.signature(self.function).bind(*positional, **named).arguments
        except ValueError:  # a built-in function
            return {**{str(place): value for place, value in enumerate(positional)}, **named}

    def repeated(self) -> str | None:
        """Call the function again; where its result differs, None if it does not."""
        positional, named = self.arguments
        return difference(self.result, self.function(*positional, **named), CLOSE)


@dataclass
class Recorder:
    """Records the first calls of the methods of users' classes, and of users' functions.

    Args:
        stream: seeds the global generators for each call, if calls may draw from them.
        calls: the calls so far.
    """

    stream: Stream | None = None
    calls: list[Call] = field(default_factory=list)
    _counts: Counter[str] = field(default_factory=Counter)
    _originals: list[tuple[type, str, Any]] = field(default_factory=list)

    @contextmanager
    def recording(self, thing: Any) -> Iterator[Any]:
        """Record calls of a class, function or object in the block; use the one that it yields."""
        function = callable(thing) and not isinstance(thing, type | Network | Observer)
        if not function:
            self._watch(thing if isinstance(thing, type) else type(thing))
        try:
            title = getattr(thing, "__name__", type(thing).__name__)
            yield self._recorded(thing, title) if function else thing
        finally:
            while self._originals:
                setattr(*self._originals.pop())

    def _watch(self, cls: type) -> None:
        """Wrap the methods and properties of a user's class that an interface defines."""
        interfaces = [base for base in cls.__mro__ if of_project(base)]
        names = {name for base in interfaces for name in vars(base) if not name.startswith("_")}
        for owner in cls.__mro__:
            for name, member in [*vars(owner).items()]:
                function = getattr(member, "fget", member)
                if of_project(owner) or not isinstance(function, FunctionType):
                    continue
                if hasattr(function, "recorded") or not (
                    name in names or hasattr(function, "guarded")
                ):
                    continue
                free = {
                    argument
                    for base in interfaces
                    for argument in getattr(vars(base).get(name), "overwritten", ())
                }
                call = self._recorded(function, f"{cls.__name__}.{name}", {"self", *free})
                self._originals.append((owner, name, member))
                setattr(owner, name, member.getter(call) if function is not member else call)

    def _recorded(
        self, function: Callable[..., Any], title: str, free: Container[str] = ()
    ) -> Callable[..., Any]:

        @wraps(function)
        def call(*positional: Any, **named: Any) -> Any:
            before = self._counts[title] < CALLS and _copied_or_none((positional, named))
            with seeded_generators(self.stream) if self.stream else nullcontext():
                result = function(*positional, **named)
            if before:
                self._counts[title] += 1
                record = Call(title, function, before)
                after = record.bound(positional, named)
                for name, value in record.bound(*before).items():
                    where = None if name in free else difference(value, after[name])
                    if where is not None and record.changed is None:
                        record.changed = name + where
                copies = _copied_or_none([result])
                if copies or record.changed:
                    record.result = copies and copies[0]
                    self.calls.append(record)
            for cls in {type(part) for part in (result if isinstance(result, tuple) else [result])}:
                if any(hasattr(member, "guarded") for member in vars(cls).values()) or (
                    not of_project(cls) and any(map(of_project, cls.__mro__))
                ):
                    self._watch(cls)
            return result

        call.recorded = True  # type: ignore[attr-defined]
        return call


def _copied_or_none(value: Any) -> Any:
    """A deep copy; None of what cannot be copied, such as open files and tensors in vmap."""
    try:
        return copied(value)
    except Exception:  # users' __deepcopy__ may raise anything
        return None


def copied(value: Any) -> Any:
    """A deep copy; tensors in lists, tuples and dictionaries may be parts of a graph."""
    return torch.utils._pytree.tree_map(_leaf, value)


def _leaf(value: Any) -> Any:
    if not isinstance(value, Tensor):
        return copy.deepcopy(value)
    # NumPy refuses tensors in vmap, whose values are unknown.
    plain = torch.from_numpy(value.detach().cpu().numpy().copy())
    return plain.requires_grad_(value.requires_grad)


def difference(one: Any, two: Any, tolerance: float = 0.0, seen: Any = ()) -> str | None:
    """Where two structures of arrays, plain values and objects differ; None if they do not.

    Functions, generators and other objects without fields count as equal, and configurations, which
    find some values late.

    Args:
        one, two: arrays, tensors, plain values, objects, or mappings and sequences of them.
        tolerance: largest difference of numbers, absolute and relative to their largest.
        seen: objects on the way to ``one``, which are not entered again.

    Returns:
        The place of the first difference, e.g. "['update']", or "" for the value itself.
    """
    if isinstance(one, Tensor | np.ndarray) and isinstance(two, Tensor | np.ndarray):
        return None if _alike(_array(one), _array(two), tolerance) else ""
    if isinstance(one, PLAIN) or isinstance(two, PLAIN):
        if isinstance(one, float) and isinstance(two, float):
            return None if _alike(np.asarray(one), np.asarray(two), tolerance) else ""
        return None if repr(one) == repr(two) else ""
    if id(one) in seen or isinstance(one, Config):
        return None
    pairs: Iterable[tuple[str, Any, Any]]
    if isinstance(one, Mapping) and isinstance(two, Mapping):
        if one.keys() != two.keys():
            return f" (its names are {sorted(map(str, two))} instead of {sorted(map(str, one))})"
        pairs = ((f"[{key!r}]", one[key], two[key]) for key in one)
    elif isinstance(one, list | tuple) and isinstance(two, list | tuple):
        if len(one) != len(two):
            return f" (it has {len(two)} entries instead of {len(one)})"
        pairs = ((f"[{place}]", *both) for place, both in enumerate(zip(one, two, strict=True)))
    else:
        names = (
            [f.name for f in fields(one)] if is_dataclass(one) else [*getattr(one, "__dict__", ())]
        )
        pairs = ((f".{name}", getattr(one, name), getattr(two, name, None)) for name in names)
    for place, first, second in pairs:
        where = difference(first, second, tolerance, (*seen, id(one)))
        if where is not None:
            return place + where
    return None


def _array(value: Any) -> np.ndarray:
    return np.asarray(value.detach().cpu().numpy() if isinstance(value, Tensor) else value)


def _alike(one: np.ndarray, two: np.ndarray, tolerance: float) -> bool:
    if one.shape != two.shape:
        return False
    if not tolerance or one.dtype.kind not in "fc":
        return bool(np.array_equal(one, two, equal_nan=one.dtype.kind in "fc"))
    scale = float(np.abs(one[np.isfinite(one)]).max(initial=1.0))
    return bool(np.allclose(one, two, rtol=0.0, atol=tolerance * scale, equal_nan=True))
