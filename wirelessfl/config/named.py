"""What settings name: objects by import path, files and folders, and the objects of Python."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from channels import Device, Network, read_devices
from channels.device_files import named_devices
from channels.devices import table_of
from channels.streams import Stream
from wirelessfl.air.radio import Fading
from wirelessfl.base.errors import ConfigError
from wirelessfl.base.guard import calling, described, guard
from wirelessfl.base.import_paths import absolute, expanded, is_import_path
from wirelessfl.base.needs import GIVEN, needs_of
from wirelessfl.base.registry import import_path
from wirelessfl.base.torch_state import seeded_generators
from wirelessfl.config.choices import KINDS, parse_task
from wirelessfl.config.sections import PLACES, NetworkSection, Section, frozen
from wirelessfl.config.sections.network import STEP
from wirelessfl.config.sections.training import listed
from wirelessfl.data.files import is_folder_path

OBJECTS = ("algorithm", "local", "network", "devices", "augment", *KINDS)
"""Settings that name an object, in a table of their own or in the table of a task."""
FOLDERS = ("tokenizer", "pretrained")
"""Settings that name a folder if it exists, else something on the hub."""
Trust = bool | frozenset[str]
"""Whether a file may name code to import; or the import paths that it may name."""


def import_paths(tables: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield each setting that names an object by its import path, with the path."""
    for setting, value in _entries(tables):
        several = setting == "metric"  # names in a list or separated by commas
        for name in listed(value) or () if several else (value,):
            names_object = setting in OBJECTS or several
            if names_object and isinstance(name, str) and is_import_path(name):
                yield setting, name


def named_files(tables: Mapping[str, Any]) -> Iterator[tuple[str, Path]]:
    """Yield each setting that names an existing file or folder, with its path."""
    for setting, value in _entries(tables):
        folder = isinstance(value, str) and (
            (setting in FOLDERS and not is_import_path(value))
            or (setting == "dataset" and is_folder_path(value))
        )
        file = isinstance(value, Path) and setting not in PLACES
        file = file or (setting == "devices" and isinstance(value, str))
        if folder or file:
            path = expanded(value)
            if os.path.isdir(path) if folder else os.path.exists(path):
                yield setting, path


def check_text(tables: Mapping[str, Any]) -> None:
    """Refuse names and paths that a stored configuration cannot hold.

    Raises:
        ConfigError: one contains bytes that are not UTF-8.
    """
    for setting, value in _entries(tables):
        if isinstance(value, str | Path) and any("\ud800" <= one <= "\udfff" for one in str(value)):
            raise ConfigError(
                f"{setting} is {str(value)!r}, which contains bytes that are not UTF-8: rename it."
            )


def check_resolved(tables: Mapping[str, Any]) -> None:
    """Refuse what Hydra and OmegaConf leave where a value is missing, or refers to another one.

    Raises:
        ConfigError: a value is ``???`` or ``${...}``.
    """
    for setting, value in _entries(tables):
        if isinstance(value, str) and value == "???":
            raise ConfigError(f"{setting} is '???', a value that is still missing: give one.")
        if isinstance(value, str) and value.startswith("${") and value.endswith("}"):
            raise ConfigError(
                f"{setting} is {value!r}, a reference that is not resolved: give "
                "OmegaConf.to_container(cfg, resolve=True)."
            )


def _entries(tables: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield all settings with their values; the name in a table is the value of its kind."""
    for section, table in tables.items():
        if section == "task" and isinstance(table, list | tuple | str):
            for task in [table] if isinstance(table, str) else table:
                table_of_task = parse_task(task) if isinstance(task, str) else task
                if isinstance(table_of_task, Mapping):
                    yield from (
                        (key, value) for key, value in table_of_task.items() if key != "name"
                    )
        elif isinstance(table, Mapping):
            if section != "given":
                yield from ((section if key == "name" else key, v) for key, v in table.items())
        else:
            yield section, table


def absolute_name(kind: str, name: Any) -> Any:
    """The name of a choice, with an absolute path if it is the path of a file or a folder.

    A run may be resumed from another working directory.
    """
    folder = kind == "dataset" and isinstance(name, str) and is_folder_path(name)
    return str(expanded(name).absolute()) if folder else absolute(name)


def with_absolute_paths(table: Mapping[str, Any], kind: str = "") -> dict[str, Any]:
    """The table of a choice or of a task, whose names of code and folders are absolute paths.

    Args:
        table: the table.
        kind: the kind of choice; "" for a task.
    """
    of_kind = {"name": kind, **{key: key for key in OBJECTS}}
    return {
        key: absolute_name(of_kind[key], value) if key in of_kind else value
        for key, value in table.items()
    }


def check_trust(tables: Mapping[str, Any], file: Path, trust: Trust) -> None:
    """Raise if a file names code that it may not name; nothing is imported.

    Args:
        tables: the tables of the file.
        file: the file, for the message.
        trust: see ``Trust``.

    Raises:
        ConfigError: the file names an object by an import path.
    """
    for setting, path in import_paths(tables):
        if trust is not True and not (isinstance(trust, frozenset) and path in trust):
            raise ConfigError(
                f"{file}: {setting} is {path!r}, and importing it runs code. If you trust this "
                "code, add --trust, or in Python trust=True."
            )


LINK_KINDS = ("layout", "path_loss", "fading", "mobility")
"""Kinds of choices that a given network replaces."""


@frozen
class GivenNetwork(Section):
    """The size of a given network."""

    cells: Annotated[int, Field(ge=1)]
    clients: Annotated[int, Field(ge=1)]


@frozen
class GivenSection(Section):
    """The ``[given]`` table of ``config.toml``: objects given to ``wirelessfl.run``.

    They replace settings, which are then not stored in the file.

    Args:
        model: the class name of the given module.
        data: the name of the given data set.
        network: the size of the given network.
        loss: the name of the given loss function.
        metrics: the names of the given metrics.
        split: the number of clients of the given split.
        redesign: the title of the given redesign.
        augment: the name of the given function that changes training samples.
        trainer: the title of the given trainer of the clients.
    """

    model: str | None = None
    data: str | None = None
    network: GivenNetwork | None = None
    loss: str | None = None
    metrics: tuple[str, ...] | None = None
    split: int | None = Field(None, ge=1)
    redesign: str | None = None
    augment: str | None = None
    trainer: str | None = None

    @property
    def names(self) -> list[str]:
        """Names of the given objects, in the order of the fields."""
        return [name for name, value in vars(self).items() if value is not None]


@cache
def replaced_by_network(radio: bool = True) -> tuple[str, ...]:
    """Network settings that a given network replaces, also one that the settings name.

    Args:
        radio: whether CPU speeds and links determine latencies. If not, ``step_seconds`` is the
            latency model's beta, which a network does not replace.
    """
    replaced = {GIVEN, STEP[0]} if radio else {GIVEN}
    return tuple(key for key, needs in needs_of(NetworkSection).items() if replaced & {*needs})


def own_network(path: str, seed: int, *, again: bool = False) -> Network:
    """The network at an import path.

    Args:
        path: import path of a function ``f(stream)`` or ``f()`` that returns a ``Network``, or of a
            ``Network``.
        seed: the run's seed, which determines the stream.
        again: whether to call the function although its network is known.

    Raises:
        ConfigError: it cannot be imported, is no such function, or returns something else.
    """
    if not is_import_path(path):
        raise ConfigError(
            f"network is {path!r}: give the import path of a function, module:function or "
            "file.py:function, that returns a channels.Network."
        )
    imported = import_path("network", path)
    if isinstance(imported, Network):
        return imported
    if not callable(imported):
        raise ConfigError(
            f"network {path!r} is {described(imported)}: give a function of a stream that returns "
            "a channels.Network."
        )
    return (_called.__wrapped__ if again else _called)(imported, path, seed)


def own_devices(name: str) -> Sequence[Device]:
    """The table of devices that a setting names.

    Args:
        name: a built-in name, the path of a CSV file, or the import path of a list of
            ``channels.Device``, or of a function that returns one.

    Raises:
        ConfigError: there is no such name or file, or it gives something else.
        ValueError: a file is wrong, see ``channels.read_devices``.
    """
    if not is_import_path(name):
        return read_devices(name) if os.path.isfile(name) else named_devices(name)
    imported = import_path("devices", name)
    if callable(imported):
        with calling(f"devices {name!r}", ConfigError):
            imported = imported()
    try:
        return table_of(imported)
    except TypeError:
        raise ConfigError(
            f"devices {name!r} is {described(imported)}: give a list of channels.Device, or a "
            "function that returns one."
        ) from None


@lru_cache(maxsize=8)  # settings are resolved several times before a run
def _called(function: Callable[..., Any], path: str, seed: int) -> Network:
    stream = Stream(seed, ("network",))
    arguments = (stream,) if _takes_stream(function, path) else ()
    with seeded_generators(stream), calling(f"network {path!r}", ConfigError):
        network = function(*arguments)
    if not isinstance(network, Network):
        raise ConfigError(
            f"network {path!r} returned {described(network)}: return a channels.Network."
        )
    guard(type(network.fading), Fading)
    return network


def _takes_stream(function: Callable[..., Any], path: str) -> bool:
    """Whether a function takes a stream."""
    try:
        parameters = inspect.signature(function).parameters
    except (TypeError, ValueError):
        return False
    required = [
        name
        for name, p in parameters.items()
        if p.default is p.empty and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)
    ]
    named = [name for name in required if parameters[name].kind is inspect.Parameter.KEYWORD_ONLY]
    if len(required) > 1 or named:
        raise ConfigError(
            f"network {path!r} takes the arguments {', '.join(required)}: define it as f(stream), "
            "with a channels.Stream as its randomness, or as f()."
        )
    return bool(required)
