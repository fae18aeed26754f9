"""Guards the code of users: its results are checked, and its exceptions become one line.

An interface states the check of a method's result by ``@returns``. Classes of this project are not
wrapped, so that built-in choices pay nothing.
"""

from __future__ import annotations

import math
import operator
import re
import sysconfig
import traceback
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from types import FunctionType
from typing import Any, TypeVar

import numpy as np

from channels.arrays import IntArray
from wirelessfl.base.errors import ConfigError, DataError, TrainingError, out_of_memory
from wirelessfl.base.import_paths import path_of
from wirelessfl.base.signals import Terminated
from wirelessfl.base.wording import shown

PROJECT = ("wirelessfl", "channels", "solvers")
"""Packages of this project."""
_CODE_OF_OTHERS = tuple(
    {sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")}
    | {str(Path(__file__).parents[2] / name) for name in PROJECT}
    | {"<"}  # generated code
)
"""Beginnings of the file names of code that users have not written."""

ONE_LINE = (ConfigError, DataError, TrainingError)
"""Errors whose message is one line."""
NO_ERROR = (KeyboardInterrupt, GeneratorExit, Terminated)
"""Exceptions that do not come from an error of the code."""
Check = Callable[..., Any]
"""Gets a method's result, its object and its arguments; returns the result to use, or raises
``UnfitError``."""
F = TypeVar("F", bound=Callable[..., Any])


class UnfitError(Exception):
    """A method has returned something that it must not return.

    Args:
        result: the result, in words.
        expected: what to return, in words.
    """

    def __init__(self, result: str, expected: str) -> None:
        super().__init__(result, expected)
        self.result, self.expected = result, expected


def returns(check: Check) -> Callable[[F], F]:
    """Decorate a method of an interface: ``guard`` checks what users' methods of that name return.

    Decorate the function below ``@property`` for a property.
    """

    def decorate(method: F) -> F:
        method.returned = check  # type: ignore[attr-defined]
        return method

    return decorate


def overwrites(*arguments: str) -> Callable[[F], F]:
    """Decorate a method of an interface that may change these arguments, e.g. in place."""

    def decorate(method: F) -> F:
        method.overwritten = arguments  # type: ignore[attr-defined]
        return method

    return decorate


def of_project(thing: object) -> bool:
    """Whether this project defines a class or function."""
    return str(getattr(thing, "__module__", None)).partition(".")[0] in PROJECT


def title_of(thing: object) -> str:
    """The title of an object for messages: its choice's title, or the import path of its class."""
    title = getattr(thing, "title", None)
    return title if isinstance(title, str) else path_of(type(thing))


def described(value: object) -> str:
    """A result in words: dtype and shape of an array or tensor, otherwise its short repr."""
    shape, dtype = getattr(value, "shape", None), getattr(value, "dtype", None)
    return shown(value) if shape is None or dtype is None else f"{dtype} {list(shape)}"


def guard(cls: type, interface: type | None = None) -> None:
    """Wrap the methods and properties of a user's class that an interface defines.

    Args:
        cls: the class; methods that it inherits from this project are not changed.
        interface: what the class implements, besides the classes of this project that it derives
            from.
    """
    if of_project(cls):
        return
    interfaces = [*filter(None, (interface,)), *filter(of_project, cls.__mro__)]
    checked = [c for c in interfaces if any(_check_in(c, name) for name in vars(c))]
    if not checked:
        return
    kind = words_of(interface or checked[-1])
    for name in {name for c in interfaces for name in vars(c) if not name.startswith("_")}:
        owner = next((c for c in cls.__mro__ if name in vars(c)), None)
        if owner is None or of_project(owner):
            continue
        member = vars(owner)[name]
        check = next((check for c in checked if (check := _check_in(c, name))), None)
        if isinstance(member, property) and isinstance(member.fget, FunctionType):
            if not hasattr(member.fget, "guarded"):
                setattr(cls, name, member.getter(_guarded(member.fget, kind, check)))
        elif isinstance(member, FunctionType) and not hasattr(member, "guarded"):
            setattr(cls, name, _guarded(member, kind, check))


def words_of(interface: type) -> str:
    """The name of an interface in messages, e.g. "delay model" for ``DelayModel``."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", interface.__name__).lower()


def _check_in(cls: type, name: str) -> Check | None:
    """The check that a class states for the results of its method or property ``name``."""
    member = vars(cls).get(name)
    return getattr(getattr(member, "fget", member), "returned", None)


def _guarded(function: FunctionType, kind: str, check: Check | None) -> Callable[..., Any]:
    """A function that calls a user's method, names its exceptions, and checks its result."""
    name = function.__name__

    @wraps(function)
    def call(self: object, *args: Any, **kwargs: Any) -> Any:
        with calling(f"{kind} {title_of(self)!r}, {name}"):
            value = function(self, *args, **kwargs)
        if check is None:
            return value
        try:
            return check(value, self, *args, **kwargs)
        except UnfitError as unfit:
            raise wrong_result(kind, self, name, unfit.result, unfit.expected) from None

    call.guarded = True  # type: ignore[attr-defined]
    return call


def wrong_result(kind: str, thing: object, method: str, result: str, expected: str) -> ConfigError:
    """The error of a method that has returned something else than it must.

    Args:
        kind: the kind of its object, e.g. "split".
        thing: the object.
        method: name of the method.
        result: the result, in words.
        expected: what to return, in words.
    """
    return ConfigError(
        f"{kind} {title_of(thing)!r}: {method} returned {result}. Return {expected}."
    )


@contextmanager
def calling(where: str, error_type: type[Exception] = TrainingError) -> Iterator[None]:
    """Turn exceptions of users' code into one line, except those that already are.

    Interrupts, signals that end the process, and a lack of memory are not errors of the code.

    Args:
        where: what is called, for the message.
        error_type: type of the error.

    Raises:
        TrainingError, or the given type: the code has raised an exception, which is the cause.
    """
    try:
        yield
    except (*ONE_LINE, *NO_ERROR):
        raise
    except BaseException as error:  # users' code may raise anything
        if out_of_memory(error):
            raise
        raise failure(where, error, error_type) from error


E = TypeVar("E", bound=Exception)


def failure(where: str, error: BaseException, error_type: type[E] = TrainingError) -> E:  # type: ignore[assignment]
    """Describe an error in one line: where it occurred, the error, and the line of users' code."""
    return error_type(f"{where}: {located(error)}")


def located(error: BaseException) -> str:
    """An error in one line: its type and text, and the line of users' code that raised it."""
    text = f"{type(error).__name__}: {' '.join(str(error).split())}".removesuffix(": ")
    if isinstance(error, SystemExit):
        text = 'its code calls sys.exit, without if __name__ == "__main__"'
    frames = traceback.extract_tb(error.__traceback__)
    if isinstance(error, SyntaxError) or not frames:  # its text names the file and the line
        return text
    users = [frame for frame in frames if not frame.filename.startswith(_CODE_OF_OTHERS)]
    frame = (users or frames)[-1]
    return f"{text} (in {frame.name}, {Path(frame.filename).name}, line {frame.lineno})"


Shape = tuple[int, ...]


def check_count(name: str, value: int, min_value: int = 1) -> None:
    """Check that a value is an integer >= ``min_value``."""
    try:
        fits = operator.index(value) >= min_value
    except TypeError:
        fits = False
    if not fits:
        raise ValueError(f"{name} is {value!r}: give an integer of at least {min_value}.")


def check_number(name: str, value: float, *, positive: bool = False) -> None:
    """Check that a value is finite and >= 0, or > 0 if ``positive``."""
    if not (math.isfinite(value) and value >= 0) or (positive and value == 0):
        sign = "positive" if positive else "zero or positive"
        raise ValueError(f"{name} is {value}: give a finite number that is {sign}.")


def whole(minimum: int, *, or_none: bool = False) -> Check:
    """A check for an integer >= ``minimum``."""

    def check(value: Any, *_: Any) -> Any:
        if or_none and value is None:
            return value
        if _is_bool(value) or not isinstance(value, int | np.integer) or value < minimum:
            raise UnfitError(described(value), f"an integer >= {minimum}{_none(or_none)}")
        return value

    return check


def number(*, above: bool = False, or_none: bool = False) -> Check:
    """A check for a finite number >= 0, or > 0 if ``above``."""

    def check(value: Any, *_: Any) -> Any:
        if or_none and value is None:
            return value
        real = isinstance(value, int | float | np.integer | np.floating) and not _is_bool(value)
        if not real or not (value > 0 if above else value >= 0) or not math.isfinite(value):
            sign = ">" if above else ">="
            raise UnfitError(described(value), f"a finite number {sign} 0{_none(or_none)}")
        return value

    return check


def instance(kind: type, *, or_none: bool = False) -> Check:
    """A check for an object of this class; the methods of a user's class are guarded too."""

    def check(value: Any, *_: Any) -> Any:
        if not isinstance(value, kind) and not (or_none and value is None):
            raise UnfitError(described(value), f"a value of type {kind.__name__}{_none(or_none)}")
        guard(type(value), kind)
        return value

    return check


def implementing(interface: type) -> Check:
    """A check for an object with the methods of an interface, which are guarded too."""
    names = sorted(name for name in vars(interface) if not name.startswith("_"))

    def check(value: Any, *_: Any) -> Any:
        missing = [name for name in names if not hasattr(value, name)]
        if missing or isinstance(value, type):
            raise UnfitError(
                described(value) + (f", without {', '.join(missing)}" if missing else ""),
                f"an object with the methods of a {words_of(interface)}, {', '.join(names)}",
            )
        guard(type(value), interface)
        return value

    return check


def reals(value: Any, shapes: Iterable[Shape], expected: str) -> Any:
    """Check for an array of finite numbers >= 0 with one of these shapes."""
    expected = f"{expected}, finite and >= 0"
    if not isinstance(value, np.ndarray) or value.dtype.kind not in "iuf":
        raise UnfitError(described(value), f"a NumPy array of numbers {expected}")
    if value.shape not in shapes:
        raise UnfitError(described(value), f"numbers {expected}")
    bad = ~(np.isfinite(value) & (value >= 0))
    if bad.any():
        raise UnfitError(f"{value[bad].flat[0]} at {_place(bad)}", f"numbers {expected}")
    return value


def indices(value: Any, below: int, expected: str) -> IntArray:
    """Check for a one-dimensional array of integers in [0, below); a list is converted."""
    expected = f"{expected}: integers in one dimension, from 0 to {below - 1}"
    try:
        array = np.asarray(value)
    except (TypeError, ValueError):
        raise UnfitError(described(value), expected) from None
    if array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
        raise UnfitError(described(value if array.ndim == 0 else array), expected)
    bad = (array < 0) | (array >= below)
    if bad.any():
        raise UnfitError(f"{array[bad][0]} at {_place(bad)}", expected)
    return array.astype(np.int64)


def entries(value: Any, count: int, expected: str) -> list[Any]:
    """Check for a list, or another sized iterable, of this length."""
    if not hasattr(value, "__len__") or not hasattr(value, "__iter__") or isinstance(value, str):
        raise UnfitError(described(value), expected)
    if len(value) != count:
        raise UnfitError(f"{len(value)} entries", expected)
    return list(value)


def _is_bool(value: object) -> bool:
    return isinstance(value, bool | np.bool_)


def _none(or_none: bool) -> str:
    return ", or None" if or_none else ""


def _place(bad: np.ndarray) -> list[int]:
    """The first place at which ``bad`` is true."""
    return [int(index) for index in np.argwhere(bad)[0]]
