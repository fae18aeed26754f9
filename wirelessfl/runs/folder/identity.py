"""Identity of a run: hashes of its settings, of what they name, of given code, and of its parts.

Sweeps name folders by the hash of the settings. ``about.json`` keeps the others, by what they are
of, and ``resume`` compares them.
"""

from __future__ import annotations

import dis
import hashlib
import inspect
import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import MISSING, fields
from functools import partial
from pathlib import PurePath
from types import FunctionType
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from channels import Network
from channels.concurrency import parsing
from channels.delay_profile import independent
from channels.moving import Moving
from channels.streams import Stream
from wirelessfl.algorithms import LOCAL
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
    from wirelessfl.runs.build.setups import Setup
    from wirelessfl.training.objective import Objective

SETTINGS = "settings"
"""Entry of ``about.json``: the hash of the settings at the start."""
DRAWN = 1000
"""Maximum number of clients whose channels are part of the network's hash."""
PLAIN = (type(None), bool, int, float, complex, str, bytes, range, PurePath, torch.dtype)
AROUND = (*PLAIN, tuple, np.ndarray, torch.Tensor, torch.nn.Module, partial, FunctionType, type)
"""Types of values outside of a function that count; others may change while it runs."""


def digest(*things: Any) -> str:
    """Hash of arrays by their bytes, and of other values by their ``repr``."""
    digest = hashlib.blake2b(digest_size=8)
    for thing in things:
        array = isinstance(thing, np.ndarray)
        digest.update(thing.tobytes() if array else repr(thing).encode())
    return digest.hexdigest()


def fingerprint_of(tables: dict[str, Any]) -> str:
    """Hash of the tables of a ``config.toml``, independent of the folder's location."""
    run = {name: value for name, value in tables.get("run", {}).items() if name != "out"}
    return digest(tables | ({"run": run} if "run" in tables else {}))


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


def setup_hashes(setup: Setup) -> dict[str, str]:
    """Hashes of the models, data and network of a run that is built."""
    hashes = {"the network": network_hash(setup.network, setup.stream)}
    for name, model in zip(setup.tasks or ("",), setup.trained, strict=True):
        of, split = f" of task {name!r}" if name else "", model.client_samples.identity
        hashes[f"the model{of} (layers, frozen parameters, buffers)"] = model_hash(model.objective)
        hashes[f"the data{of} (samples, split)"] = data_hash(model.data, *split)
    return hashes


def model_hash(objective: Objective) -> str:
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


def network_hash(network: Network, stream: Stream) -> str:
    """Hash of a network's values and of a channel draw for some clients."""
    left_out = {"fading", "interference_watts", "devices"}
    plain = [getattr(network, f.name) for f in fields(network) if f.name not in left_out]
    if network.devices is not None:
        plain += [network.devices.of, network.devices.table]
    some, stream = network.numbers[:DRAWN], stream.child("fingerprint")
    fading = network.fading
    blocks = range(2 if isinstance(fading, Moving) or independent(fading) is not fading else 1)
    draws = [network.draw(stream, block, some) for block in blocks]
    plain += ["handover"] if network.hands_over else []
    watts = network.interference_watts
    if watts is not None:
        plain += [draw.external_rise for draw in draws] if callable(watts) else [watts]
    spectra = [draw.spectrum for draw in draws if draw.spectrum is not None]
    return digest(*plain, *(draw.h for draw in draws), *spectra)


def _array(tensor: torch.Tensor) -> np.ndarray:
    tensor = tensor.detach().cpu().contiguous()
    if tensor.dtype == torch.bfloat16:  # which NumPy lacks
        tensor = tensor.view(torch.int16)
    return tensor.numpy()


def code_hashes(objects: GivenObjects) -> dict[str, str]:
    """Hashes of the code of given objects and of its arguments."""
    model, trainer = objects.model, objects.trainer
    code = {
        "model=...": None if model is None else [*map(type, model.modules())],
        "loss=...": objects.loss if callable(objects.loss) else None,
        **{f"metric {name!r}": function for name, function in objects.functions.items()},
        "redesign=...": objects.redesign,
        "augment=...": objects.augment,
        "trainer=...": None if trainer is None else trainer.code,
    }
    return {
        f"the code or a value of {name}": code_hash(thing)
        for name, thing in code.items()
        if thing is not None
    }


def code_hash(thing: object) -> str:
    """Hash of a function or a callable object: of its source files and of its arguments.

    It covers the source files of the user's functions and classes, with the user's modules that
    they import. Arguments are those of a partial; the defaults of a function, and the values of the
    function around it; and the attributes of an object that are arguments of its class. Lists and
    dicts around a function, and what it sets there itself, do not count: they change as it runs.

    The file of the main program may also start the run. Of it only the source of the functions and
    classes themselves counts, and the global values and functions that they read.
    """
    return digest(*_parts(thing, {}))


def _parts(thing: Any, seen: dict[int, Any]) -> Iterator[Any]:
    """What is hashed of a function, a class, an object or a value."""
    if isinstance(thing, PLAIN):
        yield thing
    elif isinstance(thing, torch.Tensor | np.ndarray):
        array = _array(thing) if isinstance(thing, torch.Tensor) else thing
        yield from (str(array.dtype), array.shape, array)
    elif isinstance(thing, tuple | list):
        for item in thing:
            yield from ("item", *_parts(item, seen))
    elif isinstance(thing, dict | set | frozenset):
        items = thing.items() if isinstance(thing, dict) else thing
        yield from _parts(sorted(items, key=repr), seen)
    elif id(thing) not in seen:
        seen[id(thing)] = thing  # kept, so that its id stays its own
        yield from _parts(_within(thing), seen)


def _within(thing: Any) -> list[Any]:
    """What a function, a class or an object consists of."""
    if isinstance(thing, type):
        bases = filter(_of_user, thing.__mro__)
        return [path_of(thing), *((path_of(base), _source(base)) for base in bases)]
    if isinstance(thing, partial):
        return [thing.func, thing.args, thing.keywords]
    if inspect.ismethod(thing):
        return [thing.__self__, thing.__func__]
    if isinstance(thing, FunctionType) and _of_user(thing):
        return [thing.__qualname__, _source(thing), _around(thing)]
    if inspect.isroutine(thing):
        return [getattr(thing, "__module__", ""), getattr(thing, "__qualname__", "")]
    parts: list[Any] = []
    for part in thing.modules() if isinstance(thing, torch.nn.Module) else [thing]:
        parts.append(type(part))
        with suppress(ValueError, TypeError):  # a class without a signature
            for name in inspect.signature(type(part)).parameters:
                value = getattr(part, name, getattr(part, f"_{name}", None))
                if not isinstance(value, torch.nn.Module):
                    parts.append((name, value))
    return parts


def _around(function: FunctionType) -> dict[Any, Any]:
    """Defaults of a function, and the values outside of it that it reads and does not set."""
    stores = ("STORE_DEREF", "STORE_GLOBAL")
    stored = {step.argval for step in dis.get_instructions(function) if step.opname in stores}
    values: dict[Any, Any] = dict(enumerate(function.__defaults__ or ()))
    values |= function.__kwdefaults__ or {}
    with suppress(ValueError):  # a name that is not set yet
        variables = inspect.getclosurevars(function)
        values |= dict(variables.nonlocals)
        values |= {} if _files(function) else dict(variables.globals)
    return {n: v for n, v in values.items() if n not in stored and isinstance(v, AROUND)}


def _of_user(thing: Any) -> bool:
    module = getattr(thing, "__module__", None)
    return module is not None and not is_installed(module)


def _files(thing: Any) -> dict[str, str]:
    """Hashes of the source files of a class or a function; none if its file does not count."""
    hashes = {} if thing.__module__ == "__main__" else source_hashes(thing.__module__)
    return {} if NO_SOURCE in hashes.values() else hashes


def _source(thing: Any) -> str:
    """Hashes of the source files of a class or a function, or else its own source.

    A line may have several lambdas: the names and constants of a lambda are added.
    """
    hashes = _files(thing)
    text = repr(hashes) if hashes else NO_SOURCE
    if not hashes:
        with suppress(OSError, TypeError), parsing:
            text = inspect.getsource(thing)
    code = getattr(thing, "__code__", None)
    if code is not None and (text == NO_SOURCE or code.co_name == "<lambda>"):
        text += repr((code.co_names, [c for c in code.co_consts if isinstance(c, PLAIN)]))
    return text
