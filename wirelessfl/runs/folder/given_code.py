"""Hashes of the code of given functions, objects and models, and of the values that it uses."""

from __future__ import annotations

import dis
import inspect
import textwrap
from collections.abc import Iterator
from functools import partial
from types import CodeType, FunctionType
from typing import Any

import numpy as np
import torch

from channels.concurrency import parsing
from wirelessfl.base.guard import of_project
from wirelessfl.base.import_paths import path_of
from wirelessfl.base.sources import NO_SOURCE, is_installed
from wirelessfl.runs.folder.fingerprints import digest

PLAIN = (type(None), bool, int, float, complex, str, bytes)


def function_hash(function: object) -> str:
    """Hash of a function or a callable object: of its code and of the values that it uses.

    It covers the user's functions and classes that the function refers to; numbers, strings, tuples
    and tensors of its module and of functions around it; the arguments of a partial; and the
    attributes of an object that are named as arguments of its class. Values that the function
    itself sets, and lists and dictionaries outside of it, may change as it runs, and do not count.
    """
    return digest(*_thing(function, set()))


def model_source(model: torch.nn.Module) -> str:
    """Hash of the source of the user's classes of a model's modules, and of their bases."""
    classes = {cls for module in model.modules() for cls in type(module).__mro__}
    classes_of_user = sorted((path_of(cls), cls) for cls in classes if _of_user(cls))
    return digest(*((name, _source(cls)) for name, cls in classes_of_user))


def _thing(thing: Any, seen: set[int]) -> Iterator[Any]:
    """What is hashed of a function, a class, an object or a value."""
    if isinstance(thing, PLAIN):
        yield thing
    elif isinstance(thing, torch.Tensor | np.ndarray):
        array = thing.detach().cpu().numpy() if isinstance(thing, torch.Tensor) else thing
        yield from (str(array.dtype), array.shape, array)
    elif isinstance(thing, tuple | list):
        for item in thing:
            yield from ("item", *_thing(item, seen))
    elif isinstance(thing, dict):
        for key in sorted(thing, key=repr):
            yield from (repr(key), *_thing(thing[key], seen))
    elif id(thing) not in seen:
        seen.add(id(thing))
        yield from _code(thing, seen)


def _code(thing: Any, seen: set[int]) -> Iterator[Any]:
    if isinstance(thing, partial):
        for part in (thing.func, thing.args, thing.keywords):
            yield from ("part", *_thing(part, seen))
        return
    if inspect.ismethod(thing):
        yield from _thing(thing.__self__, seen)
        thing = thing.__func__
    if isinstance(thing, FunctionType) and _of_user(thing):
        yield from (_source(thing), *_used(thing, seen))
    elif isinstance(thing, type):
        for cls in filter(_of_user, thing.__mro__):
            yield from (path_of(cls), _source(cls))
            for part in vars(cls).values():
                if isinstance(part, FunctionType):
                    yield from _used(part, seen)
    elif inspect.isroutine(thing):
        yield path_of_function(thing)
    else:
        yield from (path_of(type(thing)), *_thing(type(thing), seen), *_attributes(thing, seen))


def _used(function: FunctionType, seen: set[int]) -> Iterator[Any]:
    """The values that a function reads outside of it."""
    try:
        cells = inspect.getclosurevars(function).nonlocals
    except ValueError:  # a name that is not set yet
        cells = {}
    codes = [*codes_of(function.__code__)]
    steps = [step for code in codes for step in dis.get_instructions(code)]
    set_there = {step.argval for step in steps if step.opname.startswith("STORE_")}
    names = {step.argval for step in steps if step.opname in ("LOAD_GLOBAL", "LOAD_NAME")}
    values: dict[str, Any] = {n: v for n, v in function.__globals__.items() if n in names}
    values.update(cells)
    values.update((f"default {n}", v) for n, v in enumerate(function.__defaults__ or ()))
    values.update(function.__kwdefaults__ or {})
    for name in sorted(values):
        if name not in set_there and _kept(values[name]):
            yield from (name, *_thing(values[name], seen))


def codes_of(code: CodeType) -> Iterator[CodeType]:
    """A function's code, and that of the functions inside it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from codes_of(constant)


def _kept(value: Any) -> bool:
    """Whether a value cannot change unnoticed, or is code of the user."""
    if isinstance(value, tuple):
        return all(map(_kept, value))
    if isinstance(value, FunctionType | type):
        return _of_user(value)
    return isinstance(value, (*PLAIN, torch.Tensor, np.ndarray, partial, torch.nn.Module))


def _attributes(thing: Any, seen: set[int]) -> Iterator[Any]:
    """The attributes of an object, and of the modules in it, that its class takes as arguments."""
    for module in thing.modules() if isinstance(thing, torch.nn.Module) else [thing]:
        try:
            names = inspect.signature(type(module)).parameters
        except (ValueError, TypeError):
            continue
        yield path_of(type(module))
        if module is not thing:
            yield from _thing(type(module), seen)
        for name in names:
            value = getattr(module, name, getattr(module, f"_{name}", None))
            if not isinstance(value, torch.nn.Module):
                yield from (name, *_thing(value, seen))


def path_of_function(function: Any) -> str:
    """Module and name of a function or a class."""
    return f"{getattr(function, '__module__', '')}:{getattr(function, '__qualname__', '')}"


def _of_user(thing: Any) -> bool:
    module = getattr(thing, "__module__", None)
    return module is not None and not of_project(thing) and not is_installed(module)


def _source(thing: Any) -> str:
    """Source of a class or a function, independent of its indentation.

    That of a lambda has the whole line, on which there may be others: its constants and names are
    added. So they are without a source, if it is a function.
    """
    try:
        with parsing:
            text = textwrap.dedent(inspect.getsource(thing))
    except (OSError, TypeError):
        text = NO_SOURCE
    code = getattr(thing, "__code__", None)
    if code is not None and (text == NO_SOURCE or code.co_name == "<lambda>"):
        plain = [c for c in code.co_consts if isinstance(c, PLAIN)]
        text += repr((code.co_names, plain))
    return text
