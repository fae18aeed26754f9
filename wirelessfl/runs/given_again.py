"""The objects of a resumed run: those given again, and those that its folder keeps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from channels import Network
from wirelessfl.config import Config
from wirelessfl.errors import ConfigError
from wirelessfl.runs.directory import RunDirectory
from wirelessfl.runs.given_files import stored_network, stored_split
from wirelessfl.setup.given_objects import GivenObjects, naming_network
from wirelessfl.training.shards import Shards


def check_same_names(
    path: str | Path, began: Sequence[str], names: Sequence[str], asked: Sequence[str]
) -> None:
    """Check that a run has the same objects as before.

    Args:
        path: folder of the run.
        began: names of the objects that the run began with.
        names: names of those that it has now, with those that its folder keeps.
        asked: names of those that were given now.

    Raises:
        ConfigError: an object is missing, or the run began without it.
    """
    missing = [f"{name}=..." for name in began if name not in names]
    extra = [f"{name}=..." for name in names if name not in began]
    if not (missing or extra):
        return
    first = ", ".join(f"{name}=..." for name in began) or "no objects"
    now = ", ".join(f"{name}=..." for name in asked) or "no objects"
    remedy = [f"give {', '.join(missing)} again"] if missing else []
    remedy += [f"leave out {', '.join(extra)}"] if extra else []
    raise ConfigError(
        f"the run in {path} was started by wirelessfl.run with {first}, but resume got {now}: "
        f"{', and '.join(remedy)}."
    )


def with_stored(
    directory: RunDirectory,
    config: Config,
    given: GivenObjects,
    network: Network | str | None,
    shards: Shards,
) -> GivenObjects:
    """The objects of an interrupted run: those given now, and those that its folder keeps.

    Raises:
        ConfigError: the given network is named, but the run has another one; or a file is damaged.
    """
    _, network = naming_network(config, network)
    split = given.split
    if network is None and config.given.network is not None:
        network = shards.by_first(partial(stored_network, directory.path))
    if split is None and config.given.split is not None:
        split = shards.by_first(partial(stored_split, directory.path))
    return replace(given, network=network, split=split)
