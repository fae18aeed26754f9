"""Validation of backend settings, and errors for settings passed to the wrong function."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeGuard, TypeVar

import numpy as np

from channels.arguments import is_complex, is_number
from channels.validation import shown

Function = TypeVar("Function", bound=Callable[..., Any])


def check_starts(name: str, value: object) -> None:
    """Raise unless ``value``, random starts or samples, is an integer from 1 to 10^6, or None."""
    if value is not None and not (_whole(value) and 1 <= value <= 1_000_000):
        raise ValueError(
            f"{name} is {shown(value)}: give a whole number from 1 to 1,000,000, or None."
        )


def check_seed(seed: object) -> None:
    """Raise unless ``seed`` is an integer from 0 to 2^63 - 1."""
    if not (_whole(seed) and 0 <= seed < 1 << 63):
        raise ValueError(f"seed is {shown(seed)}: give a whole number from 0 to 2^63 - 1.")


def check_time_limit(seconds: Any) -> None:
    """Raise unless ``seconds`` is a number above 0; infinity is allowed."""
    if not (is_number(seconds) and not is_complex(seconds) and seconds > 0):
        raise ValueError(f"time_limit_seconds is {shown(seconds)}: give a number above 0.")


def settings_elsewhere(**remedies: str) -> Callable[[Function], Function]:
    """Return a decorator that rejects settings that belong to a backend object.

    The error message says how to pass the setting.

    Args:
        remedies: maps each such setting to how it is passed.
    """

    def decorate(function: Function) -> Function:
        @wraps(function)
        def inner(*args: Any, **kwargs: Any) -> Any:
            for name in kwargs:
                if name in remedies:
                    raise TypeError(
                        f"{function.__name__}() has no argument {name}, which is a setting of the "
                        f"backend: give {remedies[name]}."
                    )
            return function(*args, **kwargs)

        return inner  # type: ignore[return-value]

    return decorate


def _whole(value: object) -> TypeGuard[int]:
    return isinstance(value, int | np.integer) and not isinstance(value, bool)
