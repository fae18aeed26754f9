"""Trains pilots, or reads those that their folder contains."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from channels.notes import Notes
from channels.streams import Stream
from wirelessfl.base.errors import ConfigError
from wirelessfl.base.files import check_writable
from wirelessfl.base.import_paths import short
from wirelessfl.config import Config
from wirelessfl.runs.build.given_objects import GivenObjects, configured
from wirelessfl.runs.folder.directory import Row, RunDirectory
from wirelessfl.runs.folder.fingerprints import digest, network_fingerprint, non_defaults
from wirelessfl.runs.folder.given_files import given_hashes
from wirelessfl.runs.result import RunResult
from wirelessfl.runs.run import resume, run
from wirelessfl.runs.sweep import OnEnd, OnFound, OnRow, sweep


@dataclass
class Watch:
    """What is called while pilots train, and which of them are read.

    Args:
        on_row: called with the index of a pilot and each row as it is written.
        on_end: called with the index of each pilot that has finished.
        on_found: called once with the indices of the pilots that exist, and of the others.
        on_note: called with the notes on the pilots that are trained; None to warn.
    """

    on_row: OnRow | None = None
    on_end: OnEnd | None = None
    on_found: OnFound | None = None
    on_note: Callable[[str], None] | None = None
    kept: set[int] = field(default_factory=set)

    def found(self, finished: Sequence[int], others: Sequence[int]) -> None:
        """Note the finished pilots."""
        self.kept.update(finished)
        if self.on_found is not None:
            self.on_found(finished, others)


def by_settings(
    configs: Sequence[Config], root: Path, jobs: int, watch: Watch
) -> Sequence[RunResult]:
    """Pilots whose settings describe them: a sweep.

    Raises:
        ConfigError: see ``wirelessfl.sweep``.
        SweepError: pilots failed.
    """
    return sweep(
        configs,
        root,
        jobs=jobs,
        on_row=watch.on_row,
        on_end=watch.on_end,
        on_found=watch.found,
        on_note=watch.on_note,
    )


def by_objects(
    configs: Sequence[Config], root: Path, given: GivenObjects, watch: Watch
) -> Sequence[RunResult]:
    """Pilots with given objects, one after the other in this process.

    Raises:
        ConfigError: settings and objects conflict, or the folder cannot be used.
        DataError: the data cannot be used.
        TrainingError: the training of a client failed.
    """
    marked = [configured(config, given) for config in configs]  # all, before the first one trains
    check_writable(root)
    objects = object_hash(given, marked[0])
    folders = [root / f"{_title(config)}-{digest(_key(config), objects)}" for config in marked]
    states = [_finished(folder) for folder in folders]
    finished = [place for place, state in enumerate(states) if state]
    watch.found(finished, [place for place, state in enumerate(states) if not state])
    arguments = {name: value for name, value in vars(given).items() if value is not None}
    results, notes = [], Notes(watch.on_note)
    for place, (config, folder) in enumerate(zip(configs, folders, strict=True)):
        on_row = None if states[place] else _telling(watch, place)
        told = {"on_row": on_row, "on_note": lambda note: None, **arguments}
        if RunDirectory.holds_run(folder):
            results.append(resume(folder, trust=config.code, **told))
        else:
            results.append(run(config.with_run({"out": folder}), **told))
        if not states[place]:
            notes(*results[-1].notes)
        if watch.on_end is not None:
            watch.on_end(place)
    return results


def object_hash(given: GivenObjects, config: Config) -> str:
    """Hash of given objects: of their code, data, initial weights, and the network's values."""
    parts: list[object] = [sorted(given_hashes(given).items())]
    if given.model is not None:
        for name, tensor in sorted(given.model.state_dict().items()):
            parts += [name, tensor.detach().cpu().contiguous().numpy()]
    if given.network is not None:
        parts.append(network_fingerprint(given.network, Stream(config.run.seed)))
    parts += [tuple(map(int, lists)) for lists in given.split or ()]
    return digest(*parts)


def _key(config: Config) -> str:
    settings: Mapping[str, object] = non_defaults(config)
    return repr(sorted(settings.items()))


def _title(config: Config) -> str:
    return short(config.named("algorithm")).replace(":", ".")


def _finished(folder: Path) -> bool:
    try:
        checkpoint = RunDirectory(folder).load()
    except ConfigError:
        return False
    return checkpoint is not None and bool(checkpoint[1]["finished"])


def _telling(watch: Watch, place: int) -> Callable[[Row], None] | None:
    on_row = watch.on_row
    if on_row is None:
        return None
    return lambda row: on_row(place, row)
