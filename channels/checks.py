"""Checks that several parts share."""

from __future__ import annotations

import operator
import sys
from typing import Any


def whole_number(name: str, value: Any) -> int:
    """``value`` as an int, if it is one of Python or NumPy.

    Raises:
        TypeError: it is something else, also a float such as 2.0.
    """
    try:
        return int(operator.index(value))
    except TypeError:
        raise TypeError(f"{name} is {value!r}: give an integer.") from None


def is_tensor(values: Any) -> bool:
    """Whether these are torch's; torch is not imported to find out."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(values, torch.Tensor)
