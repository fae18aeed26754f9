"""Packages that are not installed with wirelessfl, and are imported when they are used."""

from __future__ import annotations

from importlib import import_module
from typing import Any


def pandas() -> Any:
    """The package pandas.

    Raises:
        ImportError: it is not installed.
    """
    return _package("pandas", "pip install pandas")


def parquet() -> Any:
    """The module ``pyarrow.parquet``.

    Raises:
        ImportError: it is not installed.
    """
    return _package("pyarrow.parquet", "pip install '.[parquet]', or choose .csv")


def _package(name: str, remedy: str) -> Any:
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        package = name.partition(".")[0]
        if error.name != package:
            raise
        raise ImportError(f"{package} is not installed: {remedy}.") from None
