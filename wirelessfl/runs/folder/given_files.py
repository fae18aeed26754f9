"""Given objects in a run's folder: what it keeps of them, and those of a resumed run."""

from __future__ import annotations

import os
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from channels import Network
from channels.npz import read_npz
from channels.stored import load_network, network_arrays, why_not_stored
from wirelessfl.base.errors import ConfigError
from wirelessfl.base.files import open_stored, reading
from wirelessfl.config import Config
from wirelessfl.data.partition import ClientPartition
from wirelessfl.runs.build.given import GivenObjects
from wirelessfl.runs.folder.run_folder import NETWORK, PARTITION, RunFolder
from wirelessfl.training.workers.shards import Shards

if TYPE_CHECKING:
    from wirelessfl.runs.build.setups import Setup

Arrays = dict[str, NDArray[Any]]


def stored_arrays(setup: Setup, objects: GivenObjects) -> dict[str, Arrays]:
    """The arrays to store in the run's folder, by the stem of their file.

    They are the given network, if it can be stored, and the partition of the data of each task.

    Args:
        setup: parts of the run.
        objects: the given objects.
    """
    arrays: dict[str, Arrays] = {}
    if objects.network is not None and not why_not_stored(objects.network):
        arrays[NETWORK] = network_arrays(objects.network)
    names = list(setup.config.tasks) if setup.config.task else [None]
    for number, (name, model) in enumerate(zip(names, setup.trained, strict=True)):
        partition = ClientPartition.of(
            model.client_samples,
            model.data.train_labels.numpy(),
            model.data.classes,
            whole=objects.split is not None,
        )
        stem = PARTITION if name is None else f"{PARTITION}-{number}"
        arrays[stem] = partition.arrays() | ({} if name is None else {"task": np.array(name)})
    return arrays


def not_stored(objects: GivenObjects) -> list[str]:
    """A line for a given network that the run's folder cannot keep."""
    reason = "" if objects.network is None else why_not_stored(objects.network)
    if not reason:
        return []
    return [f"network=... is not stored in the run's folder: {reason}. Give it again to resume."]


def stored_network(folder: Path) -> Network | None:
    """The network in a run's folder; None if there is none."""
    file = folder / f"{NETWORK}.npz"
    if not os.path.lexists(file):
        return None
    with reading(file, "Give network=... again."), open_stored(file) as content:
        return load_network(content)


def read_partition(folder: str | Path) -> ClientPartition | dict[str, ClientPartition]:
    """Which client has which training samples in a stored run.

    Args:
        folder: the run's folder.

    Returns:
        The partition; for a run with tables of tasks, that of each task by name.
    """
    whole = Path(folder, f"{PARTITION}.npz")
    if os.path.lexists(whole):
        return _partition(whole)[1]
    files = {file.stem.rpartition("-")[2]: file for file in whole.parent.glob(f"{PARTITION}-*.npz")}
    numbers = sorted(filter(str.isdecimal, files), key=int)
    if not numbers:
        raise ConfigError(f"{folder} has no {whole.name}: give the folder of a run.")
    return dict(_partition(files[number]) for number in numbers)


def stored_split(folder: Path) -> ClientPartition:
    """The given split in a run's folder."""
    partition = read_partition(folder)
    if isinstance(partition, dict) or not partition.known:
        raise ConfigError(f"{folder}: the split is not stored. Give split=... again.")
    return partition


def _partition(file: Path) -> tuple[str, ClientPartition]:
    """Name of the task, empty if there are no tasks, and its partition."""
    with reading(file, "Restore it."), open_stored(file) as content:
        arrays = read_npz(content)
        return str(arrays.get("task", "")), ClientPartition.of_arrays(arrays)


def with_stored(
    directory: RunFolder, config: Config, objects: GivenObjects, shards: Shards
) -> GivenObjects:
    """The objects of an interrupted run: those given now, and those that its folder keeps."""
    network, split = objects.network, objects.split
    if network is None and config.given.network is not None:
        network = shards.by_first(partial(stored_network, directory.path))
    if split is None and config.given.split is not None:
        split = shards.by_first(partial(stored_split, directory.path))
    return replace(objects, network=network, split=split)
