"""Short hashes of settings, model, data, network and named code, which a resume compares."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import MISSING, fields
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from pydantic import BaseModel

from channels import Network
from channels.streams import Stream
from wirelessfl.algorithms import LOCAL
from wirelessfl.base.errors import ConfigError
from wirelessfl.base.import_paths import module_and_name
from wirelessfl.base.sources import NO_SOURCE, source_hashes
from wirelessfl.config import Config
from wirelessfl.config.choices import DEFAULTS
from wirelessfl.config.named import import_paths, named_files
from wirelessfl.config.sections import SECTIONS, WITHOUT_RESULTS
from wirelessfl.config.tables import read_toml
from wirelessfl.config.tasks import inherited
from wirelessfl.data import Dataset
from wirelessfl.data.client_samples import ClientSamples
from wirelessfl.runs.build.configured import check_given
from wirelessfl.runs.folder.about import hashes_at_start
from wirelessfl.runs.folder.directory import RunDirectory

if TYPE_CHECKING:
    from wirelessfl.training.objective import Objective

DRAWN = 1000
"""Maximum number of clients whose channels are part of the network's hash."""
NAMED = "named"
"""Entry of ``about.json``: hashes of the code and files that settings name."""
WHOLE_BYTES = 64 << 20
"""Size up to which the whole content of a file is hashed; of larger files, parts are."""
PARTS, PART_BYTES = 64, 1 << 16


def check_fingerprint(
    directory: RunDirectory, state: dict[str, Any], fingerprint: dict[str, str]
) -> None:
    """Check that settings and objects are those of the run that wrote the checkpoint.

    Raises:
        ConfigError: an entry of ``fingerprint`` differs; the message names it.
    """
    for name, value in fingerprint.items():
        if state["fingerprint"].get(name) != value:
            raise ConfigError(
                f"{directory.path}: {name} not those of the original run. Restore them, or start a "
                "new run."
            )


def settings_fingerprint(directory: RunDirectory) -> dict[str, str]:
    """Hash of the stored ``config.toml``, independent of the folder's location."""
    tables = read_toml(directory.path / "config.toml", trust=True, stored=True)  # only hashed
    return fingerprint_of(tables)


def fingerprint_of(tables: dict[str, Any]) -> dict[str, str]:
    """Hash of the tables of a ``config.toml``, independent of the folder's location."""
    run = {name: value for name, value in tables.get("run", {}).items() if name != "out"}
    tables = tables | ({"run": run} if "run" in tables else {})
    return {"the settings in config.toml are": digest(tables)}


def named_hashes(config: Config) -> dict[str, dict[str, str]]:
    """Hashes of the code and files that settings name.

    Returns:
        For each named object, e.g. "model m:make", the hashes of the files of its module and of the
        user's modules that it imports; for each file or folder, e.g. "dataset /data/images", those
        of the file, or of the files of the folder and its subfolders. Settings whose files are
        missing are left out.
    """
    tables = config.used_tables()
    code = {
        f"{setting} {path}": source_hashes(module_and_name(path)[0])
        for setting, path in import_paths(tables)
    }
    return code | {f"{setting} {path}": _file_hashes(path) for setting, path in named_files(tables)}


def _file_hashes(path: Path) -> dict[str, str]:
    """Hashes of a file, or of the files of a folder, except hidden ones.

    Files of sub-subfolders, such as the images of a class, have one hash together.
    """
    if path.is_file():
        return {path.name: _content(path)}
    files = sorted(file for form in ("*", "*/*") for file in path.glob(form) if file.is_file())
    names = {file.relative_to(path).as_posix(): file for file in files}
    contents = {name: _content(file) for name, file in names.items() if "/." not in f"/{name}"}
    for folder in sorted(path.glob("*/*/")):
        name = folder.relative_to(path).as_posix()
        inside = sorted(file for file in folder.rglob("*") if file.is_file())
        if inside and "/." not in f"/{name}":
            hashes = [(file.relative_to(folder).as_posix(), _content(file)) for file in inside]
            contents[f"{name}/"] = digest(hashes)
    return contents


def _content(file: Path) -> str:
    stat = file.stat()
    return _hash_of(file, stat.st_size, stat.st_mtime_ns)


@lru_cache(maxsize=4096)
def _hash_of(file: Path, size: int, changed: int) -> str:
    """Hash of a file's size and content, or of evenly spaced parts of a large file."""
    checksum = hashlib.blake2b(str(size).encode(), digest_size=8)
    with file.open("rb") as content:
        if size <= WHOLE_BYTES:
            checksum.update(content.read())
        else:
            for part in range(PARTS):
                content.seek(part * (size - PART_BYTES) // (PARTS - 1))
                checksum.update(content.read(PART_BYTES))
    return checksum.hexdigest()


def named_change(directory: RunDirectory, config: Config) -> str:
    """The first setting whose code or files differ from those of the run, and the file.

    Only settings that have hashes now and had them when the run began are compared.

    Args:
        directory: folder of the run.
        config: its settings.

    Returns:
        For example "model m:make: m.py"; empty if nothing differs.

    Raises:
        ConfigError: ``about.json`` is damaged.
    """
    current = named_hashes(config)
    began = directory.about() if current else {}
    for setting, hashes in current.items():
        before = hashes_at_start(began, setting) or hashes
        for file in sorted({*before, *hashes}):
            if before.get(file) != hashes.get(file):
                return f"{setting}: {file}"
    return ""


def unnoticed(config: Config) -> list[str]:
    """A line for each named object without a source file, whose changes are not detected."""
    return [
        f"{setting} has no source file: changes to its code are not detected."
        for setting, hashes in named_hashes(config).items()
        if NO_SOURCE in hashes.values()
    ]


def model_fingerprint(objective: Objective) -> str:
    """Hash of a model's layers, frozen parameters and buffers."""
    module = objective.module
    frozen = [p for p in module.parameters() if not p.requires_grad]
    keys = objective.dropout_keys  # buffers that change in every step
    buffers = [value for name, value in module.named_buffers() if name not in keys]
    return digest(str(module), objective.spec.shapes, *map(_array, [*frozen, *buffers]))


def data_hash(data: Dataset) -> str:
    """Hash of a data set: of its labels, and of evenly spaced samples."""
    return digest(
        _array(_some(data.train_inputs)),
        _array(_some(data.test_inputs)),
        data.train_labels.numpy(),
        data.test_labels.numpy(),
    )


def data_fingerprint(data: Dataset, client_samples: ClientSamples) -> str:
    """Hash of a data set and its split; does not compute samples that are generated on demand."""
    return digest(
        _array(_some(data.train_inputs)),
        _array(_some(data.test_inputs)),
        data.train_labels.numpy(),
        data.test_labels.numpy(),
        *client_samples.identity,
    )


def network_fingerprint(network: Network, stream: Stream) -> str:
    """Hash of a network's values and of a channel draw for some clients."""
    plain = [getattr(network, f.name) for f in fields(network) if f.name != "fading"]
    some = network.numbers[:DRAWN]
    return digest(*plain, network.draw(stream.child("fingerprint"), clients=some).h)


def _some(samples: torch.Tensor) -> torch.Tensor:
    return samples[:: max(1, len(samples) // 1000)]


def _array(tensor: torch.Tensor) -> np.ndarray:
    return tensor.detach().cpu().contiguous().numpy()


def digest(*things: Any) -> str:
    """Hash of arrays by their bytes, and of other values by their ``repr``."""
    digest = hashlib.blake2b(digest_size=8)
    for thing in things:
        array = isinstance(thing, np.ndarray)
        digest.update(thing.tobytes() if array else repr(thing).encode())
    return digest.hexdigest()


SETTINGS = "settings"
"""Entry of ``about.json``: the hash of the settings with which the run was started."""


def settings_hash(config: Config) -> str:
    """Hash of the settings that differ from their defaults, and of code and files that they name.

    A run keeps its hash when later versions add settings and kinds of choices, of which it has the
    defaults, and when a setting moves to another section. Settings that do not change results, such
    as folders, do not count. A changed default changes the hashes of runs that state the old or the
    new value. A run that leaves the setting out keeps its hash although its value changes, so code
    that finds a run by its hash must compare the settings too.

    Raises:
        ConfigError: the settings need an object that must be passed to ``wirelessfl.run``.
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
        if isinstance(settings, BaseModel):
            defaults = {name: info.default for name, info in type(settings).model_fields.items()}
            values = dict(settings)
        elif (choice := config.choice(section)) is not None:
            defaults = {f.name: f.default for part in choice.setting_owners for f in fields(part)}
            defaults |= {"local": LOCAL, "name": DEFAULTS.get(section)}
            values = settings
        else:
            continue
        for name, value in values.items():
            if name not in WITHOUT_RESULTS and defaults.get(name, MISSING) != value:
                changed[f"{section}.{name}"] = value
    return changed


def _task_non_defaults(config: Config, table: Mapping[str, Any]) -> dict[str, Any]:
    """A task's table without values that equal the run's."""
    run = inherited(config, table, config.tasks[table["name"]])
    return {
        key: value for key, value in sorted(table.items()) if key not in run or value != run[key]
    }
