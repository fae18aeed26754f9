"""Check the arguments of public functions against their annotations before any computation.

Only types are checked: numbers, arrays of numbers, strings and instances of the classes in the
annotations. Each function checks shapes and ranges itself.
"""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable, Iterable, Sequence
from functools import wraps
from numbers import Complex, Number, Real
from typing import Any, Literal, TypeVar, get_origin

import numpy as np

from channels.validation import (
    MOST_AXES,
    as_numpy,
    instead_of,
    is_tensor,
    public_path,
    shown,
    too_large,
)

Function = TypeVar("Function", bound=Callable[..., Any])
NUMBERS = ("int", "float", "complex")
ARRAYS = {"ArrayLike", *NUMBERS}
"""Annotations for which an array or a list is checked by its contents, not only by its type."""
OWNERS = ("self", "cls")
SCALARS = (Number, str, np.generic, type(None))
SIMILAR, SIMILAR_SHORT = 0.75, 0.6
"""Least similarity (difflib's ratio) of a name that is suggested; typing errors have more."""
SHORTENED = 3
"""Fewest letters with which a longer name may begin to be suggested."""
SHORT = 4
"""Letters of a word in which one wrong letter costs much similarity."""


def checked(
    error: type[Exception] = TypeError, *, complex_valued: tuple[str, ...] = ()
) -> Callable[[Function], Function]:
    """Return a decorator that rejects arguments of the wrong type with a one-line error.

    The function receives torch tensors that are annotated ``ArrayLike`` as NumPy arrays.

    The decorated function's module must have ``from __future__ import annotations``.

    Args:
        error: exception to raise. With TypeError, a number or an array of numbers that does not
            fit the annotation raises ValueError.
        complex_valued: arguments annotated ``ArrayLike`` that may be complex; others are real.
    """

    def decorate(function: Function) -> Function:
        parameters = inspect.signature(function).parameters.values()
        kinds = {p.name: str(p.annotation).split(" | ") for p in parameters}
        order = tuple(kinds)
        closed = all(p.kind is not p.VAR_KEYWORD for p in parameters)
        named = [p.name for p in parameters if p.kind is p.KEYWORD_ONLY]
        unnamed = [p.name for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD]
        if any(p.kind is p.VAR_POSITIONAL for p in parameters):
            named = []
        real = {name for name, kind in kinds.items() if {"ArrayLike", "int", "float"} & {*kind}}
        real -= {*complex_valued}
        numeric = {name for name, kind in kinds.items() if "ArrayLike" in kind}
        arrays = {n for n, kind in kinds.items() if ARRAYS & {*kind} and "Tensor" not in kind}
        # Types that were accepted before; for most calls this lookup is the whole check.
        passed: dict[str, set[type]] = {name: set() for name in kinds}

        @wraps(function)
        def inner(*args: Any, **kwargs: Any) -> Any:
            if named and len(args) > len(unnamed):
                raise _surplus(function, args, unnamed, named)
            tensors: set[str] = set()
            # The call itself rejects missing or surplus arguments.
            for name, value in (*zip(order, args, strict=False), *kwargs.items()):
                accepted = passed.get(name)
                if accepted is None and closed:
                    raise unknown_keyword(_title(function, args, order), name, order)
                if accepted is None or (type(value) in accepted and not too_large(value)):
                    continue
                if name in numeric and _is_plain(value):
                    continue
                need = _needed(kinds[name], value, function.__globals__)
                if not need and name in real and is_complex(value):
                    need = "real numbers"
                if need and _is_group(value):
                    raise error(
                        f"{name} is a tuple of {len(value)} arrays: give one array. Unpack the "
                        f"tuple, as in {_title(function, args, order)}(*arrays)."
                    )
                if need:
                    several = error is TypeError and (instead_of(value) or is_numeric(value))
                    raise (ValueError if several else error)(
                        f"{name} is {shown(value)}: give {need}."
                    )
                if name in arrays and is_tensor(value):
                    tensors.add(name)
                if isinstance(value, SCALARS) or not ARRAYS.intersection(kinds[name]):
                    accepted.add(type(value))
            if tensors:
                positional = [
                    as_numpy(v) if n in tensors else v for n, v in zip(order, args, strict=False)
                ]
                args = (*positional, *args[len(order) :])
                kwargs.update({name: as_numpy(kwargs[name]) for name in tensors & kwargs.keys()})
            return function(*args, **kwargs)

        return inner  # type: ignore[return-value]

    return decorate


def _surplus(
    function: Callable[..., Any], args: Sequence[Any], unnamed: Sequence[str], named: Sequence[str]
) -> TypeError:
    """The error for arguments that must be named."""
    owner = [name for name in unnamed if name in OWNERS]
    first = ", ".join(unnamed[len(owner) :])
    title = _title(function, args, unnamed)
    example = f"{named[0]}={shown(args[len(unnamed)])}"
    before = f"only {first} may be given" if first else "no argument may be given"
    return TypeError(f"{title}: {before} without a name. Name the others, such as {example}.")


def unknown_keyword(title: str, name: str, names: Iterable[str]) -> TypeError:
    """The error for a keyword that a function does not have, with the nearest of its own."""
    near = nearest(name, [other for other in names if other not in OWNERS and other[0] != "_"])
    remedy = "" if near is None else f" Do you mean {near!r}?"
    return TypeError(f"{title} got an unexpected keyword argument {name!r}.{remedy}")


def _title(function: Callable[..., Any], args: Sequence[Any], names: Sequence[str]) -> str:
    """The public name of a function, or of a method or constructor with its class."""
    if names[:1] and names[0] in OWNERS and args:
        title = public_path(args[0] if names[0] == "cls" else type(args[0]))
        return title + (f".{function.__name__}" if function.__name__ != "__init__" else "")
    return function.__qualname__


def nearest(word: object, names: Iterable[str]) -> str | None:
    """The name in ``names`` that is most similar to ``word``; None if none is similar enough.

    The only name that adds words to ``word`` is similar: ``deadline_seconds`` to ``deadline``; so
    is the only one that begins with its three or more letters: ``hexagonal`` to ``hex``. Case and
    leading dashes are ignored, and "_" equals "-".
    """
    plain, asked = {_letters(name): name for name in names}, _letters(str(word))
    cutoff = SIMILAR if len(asked) > SHORT else SIMILAR_SHORT
    matches = difflib.get_close_matches(asked, plain, n=1, cutoff=cutoff)
    for start in (f"{asked}-", asked):
        longer = [name for name in plain if name.startswith(start)]
        if not matches and len(longer) == 1 and len(asked) >= SHORTENED:
            matches = longer
    return plain[matches[0]] if matches else None


def _is_group(value: Any) -> bool:
    """Whether ``value`` is a tuple of arrays, as functions with several results return."""
    return (
        isinstance(value, tuple)
        and bool(value)
        and all(isinstance(entry, np.ndarray) or is_tensor(entry) for entry in value)
    )


def _letters(name: str) -> str:
    return name.lower().lstrip("-").replace("_", "-")


def _is_plain(value: Any) -> bool:
    """Whether ``value`` is an array of real numbers, which needs no further check."""
    plain = type(value) is np.ndarray and value.dtype.kind in "biuf"
    return plain and bool(value.ndim <= MOST_AXES)


def _needed(kinds: list[str], value: Any, names: dict[str, Any]) -> str:
    """Describe the accepted type for an error message; empty if ``value`` has one of ``kinds``."""
    if value is None and "None" in kinds:
        return ""
    needs: list[str] = []
    for kind in kinds:
        if kind == "ArrayLike":
            instead = instead_of(value)
            return instead or ("" if is_numeric(value) else "numbers, or an array of numbers")
        if kind in NUMBERS:
            return instead_of(value) or ("" if is_number(value) else "a number")
        strings = get_origin(names.get(kind)) is Literal  # an alias of a Literal of strings
        if kind == "str" or kind.startswith("Literal['") or strings:
            return "" if isinstance(value, str) else "a string"
        accepted = _class(kind, names)
        if accepted is not None:
            if isinstance(value, accepted):
                return ""
            needs.append(f"a {public_path(accepted)}")
    return " or ".join(needs)


def _class(kind: str, names: dict[str, Any]) -> type | None:
    """The class that an annotation names, or None if it does not name a plain class."""
    value: Any = names.get(kind.partition(".")[0])
    for part in kind.split(".")[1:]:
        value = getattr(value, part, None)
    return value if isinstance(value, type) and value is not Any else None


def is_number(value: Any) -> bool:
    """Whether ``value`` is one number."""
    if isinstance(value, np.ndarray) or is_tensor(value):
        return bool(value.ndim == 0) and not instead_of(value)
    return isinstance(value, Number) and not too_large(value)


def check_number(name: str, value: Any, unit: str) -> None:
    """Check that an argument is one real number."""
    if not is_number(value) or is_complex(value):
        raise TypeError(f"{name} is {shown(value)}: give a number of {unit}.")


def is_complex(values: Any) -> bool:
    """Whether ``values`` is a complex number, or holds one."""
    if isinstance(values, str) or values is None:
        return False
    if is_tensor(values):
        return bool(values.is_complex())
    if not isinstance(values, np.ndarray | list | tuple):
        return isinstance(values, Complex) and not isinstance(values, Real)
    array = np.asarray(values)
    if array.dtype.kind == "O":
        return any(
            isinstance(value, Complex) and not isinstance(value, Real) for value in array.flat
        )
    return array.dtype.kind == "c"


def is_numeric(values: Any) -> bool:
    """Whether ``values`` is a number, a nested list of numbers or an array of numbers."""
    if isinstance(values, np.ndarray) and values.dtype.kind in "biufc":
        return True
    if is_tensor(values):
        return True
    try:
        array = np.asarray(values)
    except (ValueError, TypeError, RuntimeError):  # lists of unequal lengths, or of such tensors
        return False
    if array.dtype.kind == "O":  # e.g. integers beyond 64 bits, fractions.Fraction
        return all(isinstance(value, Number) for value in array.flat)
    return array.dtype.kind in "biufc"
