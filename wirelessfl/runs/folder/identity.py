"""Identity of a run: hashes of its settings, of code and files that they name, and of objects.

``resume`` compares them with those of the start; sweeps name folders by that of the settings.
"""

from __future__ import annotations

import dis
import hashlib
import inspect
import json
import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, fields
from functools import partial
from pathlib import Path
from types import FunctionType
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from channels import Network
from channels.concurrency import parsing
from channels.streams import Stream
from wirelessfl.algorithms import LOCAL
from wirelessfl.base.errors import ConfigError
from wirelessfl.base.guard import of_project
from wirelessfl.base.import_paths import path_of
from wirelessfl.base.sources import NO_SOURCE, is_installed, source_hashes
from wirelessfl.config import Config
from wirelessfl.config.choices import DEFAULTS
from wirelessfl.config.sections import SECTIONS, WITHOUT_RESULTS
from wirelessfl.config.tasks import inherited
from wirelessfl.data import Dataset
from wirelessfl.runs.build.configured import check_given
from wirelessfl.runs.build.given import GivenObjects
from wirelessfl.runs.folder.named_files import NAMED, named_hashes

if TYPE_CHECKING:
    from wirelessfl.training.objective import Objective

SETTINGS, GIVEN = "settings", "given"
"""Entries of ``about.json``: hashes of the settings at the start, and of given objects."""
DRAWN = 1000
"""Maximum number of clients whose channels are part of the network's hash."""
PLAIN = (type(None), bool, int, float, complex, str, bytes)
AROUND = (*PLAIN, tuple, np.ndarray, torch.Tensor, torch.nn.Module, partial, FunctionType, type)
"""Types of values outside of a function that count; others may change while it runs."""
SHAPES, DATA = "the shapes of model=...", "data=..."


def digest(*things: Any) -> str:
    """Hash of arrays by their bytes, and of other values by their ``repr``."""
    digest = hashlib.blake2b(digest_size=8)
    for thing in things:
        array = isinstance(thing, np.ndarray)
        digest.update(thing.tobytes() if array else repr(thing).encode())
    return digest.hexdigest()


def fingerprint_of(tables: dict[str, Any]) -> dict[str, str]:
    """Hash of the tables of a ``config.toml``, independent of the folder's location."""
    run = {name: value for name, value in tables.get("run", {}).items() if name != "out"}
    tables = tables | ({"run": run} if "run" in tables else {})
    return {"the settings in config.toml are": digest(tables)}


def check_fingerprint(path: Path, state: Mapping[str, Any], fingerprint: Mapping[str, str]) -> None:
    """Check that settings and objects are those of the run that wrote the checkpoint."""
    for name, value in fingerprint.items():
        if state["fingerprint"].get(name) != value:
            raise ConfigError(
                f"{path}: {name} not those of the original run. Restore them, or start a new run."
            )


def settings_hash(config: Config) -> str:
    """Hash of the settings that differ from their defaults, and of code and files that they name.

    A run keeps its hash when later versions add settings and kinds of choices, of which it has the
    defaults, and when a setting moves to another section. Settings that do not change results, such
    as folders, do not count. A changed default changes the hashes of runs that state the old or the
    new value. A run that leaves the setting out keeps its hash although its value changes, so code
    that finds a run by its hash must compare the settings too.
    """
    check_given(config.given)
    hashed = {_flat(place): value for place, value in non_defaults(config).items()}
    named = named_hashes(config)
    if named:
        hashed[NAMED] = named
    text = json.dumps(hashed, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _flat(place: str) -> str:
    """The setting without its section; with its kind if it belongs to a choice but the data set."""
    section, _, name = place.partition(".")
    if section == "dataset":
        return section if name == "name" else name
    return name if section in SECTIONS else place


def non_defaults(config: Config) -> dict[str, Any]:
    """Settings that differ from their defaults, by section and name."""
    changed: dict[str, Any] = {}
    for section, settings in config.all_tables().items():
        if section == "task":
            if settings:
                changed["task"] = [_task_non_defaults(config, table) for table in settings]
            continue
        if section in SECTIONS:
            defaults = vars(SECTIONS[section]())
        elif (choice := config.choice(section)) is not None:
            defaults = {f.name: f.default for part in choice.setting_owners for f in fields(part)}
            defaults |= {"local": LOCAL, "name": DEFAULTS.get(section)}
        else:
            continue
        for name, value in settings.items():
            if name not in WITHOUT_RESULTS and defaults.get(name, MISSING) != value:
                changed[f"{section}.{name}"] = value
    return changed


def _task_non_defaults(config: Config, table: Mapping[str, Any]) -> dict[str, Any]:
    """A task's table without values that equal the run's."""
    run = inherited(config, table, config.tasks[table["name"]])
    return {
        key: value for key, value in sorted(table.items()) if key not in run or value != run[key]
    }


def model_fingerprint(objective: Objective) -> str:
    """Hash of a model's layers, frozen parameters and buffers."""
    module = objective.module
    frozen = [p for p in module.parameters() if not p.requires_grad]
    keys = objective.dropout_keys  # buffers that change in every step
    buffers = [value for name, value in module.named_buffers() if name not in keys]
    return digest(str(module), objective.spec.shapes, *map(_array, [*frozen, *buffers]))


def data_hash(data: Dataset, *split: Any) -> str:
    """Hash of a data set: of its labels and of evenly spaced samples; and of its split, if given.

    Samples that are generated on demand are not computed.
    """
    some = [x[:: max(1, len(x) // 1000)] for x in (data.train_inputs, data.test_inputs)]
    return digest(*map(_array, some), data.train_labels.numpy(), data.test_labels.numpy(), *split)


def _array(tensor: torch.Tensor) -> np.ndarray:
    return tensor.detach().cpu().contiguous().numpy()


def network_fingerprint(network: Network, stream: Stream) -> str:
    """Hash of a network's values and of a channel draw for some clients."""
    plain = [getattr(network, f.name) for f in fields(network) if f.name != "fading"]
    some = network.numbers[:DRAWN]
    return digest(*plain, network.draw(stream.child("fingerprint"), clients=some).h)


def given_hashes(objects: GivenObjects) -> dict[str, str]:
    """Hashes of the given objects but network and split, by what differs if they differ."""
    hashes: dict[str, str] = {}
    model, trainer = objects.model, objects.trainer
    if model is not None:
        shapes = {  # parameters without a shape are refused later, by name
            name: None if torch.nn.parameter.is_lazy(p) else tuple(p.shape)
            for name, p in model.named_parameters()
        }
        hashes["the class of model=..."] = path_of(type(model))
        hashes[SHAPES] = digest(shapes)
        hashes["the code of model=..."] = digest(*_sources(*map(type, model.modules())))
    if objects.data is not None:
        hashes[DATA] = data_hash(objects.data)
    code = {
        "loss=...": objects.loss if callable(objects.loss) else None,
        **{f"metric {name!r}": function for name, function in objects.functions.items()},
        "redesign=...": objects.redesign,
        "augment=...": objects.augment,
        "trainer=...": None if trainer is None else trainer.code,
    }
    values = {name: code_hash(thing) for name, thing in code.items() if thing is not None}
    return hashes | {f"the code or a value of {name}": value for name, value in values.items()}


def changed_object(objects: GivenObjects, about: Mapping[str, Any], *, code_only: bool) -> str:
    """What of the given objects differs from those of the run, in words; empty if nothing does.

    Args:
        objects: the objects.
        about: entries of ``about.json``.
        code_only: whether only code is compared, because a checkpoint knows the values.
    """
    began = about.get(GIVEN, {})
    for name, now in given_hashes(objects).items():
        if began.get(name, now) != now and not (code_only and name in (SHAPES, DATA)):
            return name
    return ""


def code_hash(thing: object) -> str:
    """Hash of a function or a callable object: of its source files and of its arguments.

    It covers the source files of the user's functions and classes, with the user's modules that
    they import; of the main program, whose file may also start the run, only the source of the
    functions and classes themselves. Values are the arguments of a partial; the attributes of an
    object that are arguments of its class; and numbers, strings, tuples, tensors and functions
    outside of a function that it reads and does not set itself.
    """
    return digest(*_parts(thing, set()))


def _parts(thing: Any, seen: set[int]) -> Iterator[Any]:
    """What is hashed of a function, a class, an object or a value."""
    if isinstance(thing, PLAIN):
        yield thing
    elif isinstance(thing, torch.Tensor | np.ndarray):
        array = _array(thing) if isinstance(thing, torch.Tensor) else thing
        yield from (str(array.dtype), array.shape, array)
    elif isinstance(thing, tuple | list):
        for item in thing:
            yield from ("item", *_parts(item, seen))
    elif isinstance(thing, dict):
        for key in sorted(thing, key=repr):
            yield from (repr(key), *_parts(thing[key], seen))
    elif id(thing) not in seen:
        seen.add(id(thing))
        if isinstance(thing, type):
            yield from _sources(thing)
        elif isinstance(thing, partial):
            yield from _parts([thing.func, thing.args, thing.keywords], seen)
        elif inspect.ismethod(thing):
            yield from _parts([thing.__self__, thing.__func__], seen)
        elif isinstance(thing, FunctionType) and _of_user(thing):
            yield from (_source(thing), *_parts(_around(thing), seen))
        elif inspect.isroutine(thing):
            yield getattr(thing, "__module__", ""), getattr(thing, "__qualname__", "")
        else:
            yield from _parts(_arguments(thing), seen)


def _around(function: FunctionType) -> dict[str, Any]:
    """The values outside of a function that it reads, also its defaults."""
    stored = {
        step.argval
        for step in dis.get_instructions(function)
        if step.opname in ("STORE_DEREF", "STORE_GLOBAL")
    }
    defaults = {f"default {n}": v for n, v in enumerate(function.__defaults__ or ())}
    values = defaults | (function.__kwdefaults__ or {})
    try:
        variables = inspect.getclosurevars(function)
        values |= {**variables.globals, **variables.nonlocals}
    except ValueError:  # a name that is not set yet
        pass
    return {n: v for n, v in values.items() if n not in stored and isinstance(v, AROUND)}


def _arguments(thing: Any) -> list[Any]:
    """Of an object and the modules in it, the classes and the attributes that are arguments."""
    parts: list[Any] = []
    for part in thing.modules() if isinstance(thing, torch.nn.Module) else [thing]:
        parts += [path_of(type(part)), *_sources(type(part))]
        try:
            names = inspect.signature(type(part)).parameters
        except (ValueError, TypeError):
            continue
        for name in names:
            value = getattr(part, name, getattr(part, f"_{name}", None))
            if not isinstance(value, torch.nn.Module):
                parts += [name, value]
    return parts


def _of_user(thing: Any) -> bool:
    module = getattr(thing, "__module__", None)
    return module is not None and not of_project(thing) and not is_installed(module)


def _sources(*classes: type) -> list[tuple[str, str]]:
    """Paths and sources of the user's classes among some classes and their bases."""
    bases = {base for cls in classes for base in cls.__mro__ if _of_user(base)}
    return sorted((path_of(base), _source(base)) for base in bases)


def _source(thing: Any) -> str:
    """Hashes of the source files of a class or a function, or else its own source.

    A line may have several lambdas: the names and constants of a lambda are added.
    """
    hashes = source_hashes(thing.__module__)
    text = repr(hashes)
    if thing.__module__ == "__main__" or not hashes or NO_SOURCE in hashes.values():
        try:
            with parsing:
                text = textwrap.dedent(inspect.getsource(thing))
        except (OSError, TypeError):
            text = NO_SOURCE
    code = getattr(thing, "__code__", None)
    if code is not None and (text == NO_SOURCE or code.co_name == "<lambda>"):
        text += repr((code.co_names, [c for c in code.co_consts if isinstance(c, PLAIN)]))
    return text
