"""Packages that load on their first use or may be missing, and the version of this one."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module, metadata
from importlib.util import find_spec
from types import ModuleType
from typing import Any


@contextmanager
def no_garbage() -> Iterator[None]:
    """Imports leave no garbage; looking for it takes a tenth of their time."""
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()


class _Deferred(ModuleType):
    """A module whose code runs when an attribute of it is first read."""

    def __getattr__(self, name: str) -> Any:
        spec = self.__spec__
        assert spec is not None
        assert spec.loader is not None
        self.__class__ = ModuleType  # type: ignore[assignment]
        if spec.submodule_search_locations is not None:
            self.__path__ = spec.submodule_search_locations
        try:
            with no_garbage():
                spec.loader.exec_module(self)
                gc.freeze()  # later searches for garbage leave out its many objects
        except BaseException:
            sys.modules.pop(self.__name__, None)
            raise
        return getattr(self, name)


def defer(package: str) -> None:
    """Make ``import package`` load the package only when it is used; no effect if it is loaded.

    ``from package import name`` and ``import package.module`` are uses. The latter must not be the
    first one if the package imports the module itself, which then runs twice. PyTorch takes seconds
    to load, so modules that help, lists and prices need import it as ``import torch``, and use it
    in functions only.

    Args:
        package: name of an installed package; no effect if there is none.
    """
    spec = None if package in sys.modules else find_spec(package)
    if spec is None or spec.loader is None:
        return
    module = _Deferred(package)
    # Without __path__, the import of a submodule loads the package first.
    module.__spec__, module.__loader__, module.__file__ = spec, spec.loader, spec.origin
    module.__package__ = package
    sys.modules[package] = module


def load(package: str) -> None:
    """Load a deferred package now."""
    module = sys.modules.get(package)
    if isinstance(module, _Deferred):
        module.__path__  # noqa: B018, any attribute does


def is_loaded(package: str) -> bool:
    """Whether a package is imported, and not deferred."""
    return not isinstance(sys.modules.get(package), _Deferred | None)


def pandas() -> Any:
    """The package pandas."""
    return _package("pandas", "pip install pandas")


def parquet() -> Any:
    """The module ``pyarrow.parquet``."""
    return _package("pyarrow.parquet", "pip install '.[parquet]', or choose .csv")


def bokeh(module: str) -> Any:
    """A module of the package bokeh, such as ``plotting``."""
    return _package(f"bokeh.{module}", "pip install '.[report]'")


def numba() -> Any:
    """The package numba."""
    return _package("numba", "pip install '.[fast]'")


def flower() -> Any:
    """The module ``flwr.app``."""
    return _package("flwr.app", "pip install 'wirelessfl[flower]'")


def _package(name: str, remedy: str) -> Any:
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        package = name.partition(".")[0]
        if error.name != package:
            raise
        raise ImportError(f"{package} is not installed: {remedy}.") from None


def version() -> str:
    """Version of the installed distribution; "0+unknown" if it is not installed."""
    try:
        return metadata.version("wirelessfl")
    except metadata.PackageNotFoundError:
        return "0+unknown"
