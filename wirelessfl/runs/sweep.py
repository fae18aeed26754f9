"""Sweeps: many runs, each executed once and stored under the hash of its settings.

Runs are executed in sequence, in several local processes, or on a Ray cluster.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from channels.notes import Notes
from wirelessfl.base.errors import ConfigError, TrainingError
from wirelessfl.base.files import check_writable
from wirelessfl.base.import_paths import expanded
from wirelessfl.base.ranks import launched
from wirelessfl.base.signals import end, handled_by
from wirelessfl.base.wording import shown, suggesting
from wirelessfl.config import Config
from wirelessfl.config.choices import CHOSEN
from wirelessfl.config.sections import SECTIONS, WITHOUT_RESULTS
from wirelessfl.runs.build.samples import data_kept
from wirelessfl.runs.folder.identity import non_defaults, settings_hash
from wirelessfl.runs.folder.log import Row
from wirelessfl.runs.folder.run_folder import RunFolder
from wirelessfl.runs.kept import is_finished, kept_folder, training_key, why_failed
from wirelessfl.runs.pools import Processes, on_ray
from wirelessfl.runs.result import RunResult
from wirelessfl.runs.run import resume
from wirelessfl.training.executor import even_parts
from wirelessfl.training.together import Meeting
from wirelessfl.training.workers.processes import leave_if_child

ROOT = Path("runs/sweep")
TOGETHER = 16  # runs that train together, whose models and data are in memory
LISTED = 3  # runs named per reason of a failure

OnRow = Callable[[int, Row], None]
"""Called with the index of a run and each row that it writes."""
OnEnd = Callable[[int], None]
"""Called with the index of each run that has finished."""
OnFound = Callable[[Sequence[int], Sequence[int]], None]
"""Called with the indices of finished runs, which are read, and of those that are executed."""


class Failure(NamedTuple):
    """A run that failed.

    Args:
        config: settings of the run.
        reason: the reason, in one line.
    """

    config: Config
    reason: str


class SweepError(TrainingError):
    """Runs of a sweep failed; the other runs are finished and stored.

    The message gives each reason once, with the first few runs that failed for it.

    Args:
        failures: the failed runs with their reasons.
        outcomes: by run of the sweep, its result or its failure; by default the failures.
    """

    def __init__(
        self, failures: Sequence[Failure], outcomes: Sequence[RunResult | Failure] = ()
    ) -> None:
        self.failures, self.outcomes = tuple(failures), tuple(outcomes or failures)
        varied = _varied([outcome.config for outcome in self.outcomes])
        by_reason: dict[str, list[str]] = {}
        for config, reason in failures:
            settings = _given(config)
            values = "".join(f", {key} {settings[key]}" for key in varied if key in settings)
            by_reason.setdefault(reason, []).append(
                f"{config.named('algorithm')} ({settings_hash(config)}{values})"
            )
        reasons = "; ".join(f"{_first(runs)}: {reason}" for reason, runs in by_reason.items())
        failed = f"{len(failures)} of the runs failed; the others are stored"
        if all(isinstance(outcome, Failure) for outcome in self.outcomes):
            failed = f"all {len(failures)} runs failed" if len(failures) > 1 else "the run failed"
        super().__init__(f"{failed}. {reasons}")


def _given(config: Config) -> dict[str, Any]:
    """The given settings of the tables, by key; that of a choice's name is its table."""
    return {
        table if key == "name" else key: value
        for table in (*CHOSEN, *SECTIONS)
        for key, value in config.given_settings(table).items()
    }


def _varied(configs: Sequence[Config]) -> list[str]:
    """Keys of settings that are given with different values, without the algorithm and paths."""
    values: dict[str, list[Any]] = {}
    for config in configs:
        for key, value in _given(config).items():
            values.setdefault(key, []).append(value)
    same = {"algorithm", *WITHOUT_RESULTS}
    return [
        key
        for key, values_of_key in values.items()
        if key not in same and values_of_key.count(values_of_key[0]) < len(values_of_key)
    ]


def _first(runs: Sequence[str]) -> str:
    more = len(runs) - LISTED
    return ", ".join(runs[:LISTED]) + (f" and {more} more" if more > 0 else "")


@suggesting(
    ' Runs of a sweep have settings alone: name code by its path, such as model="my_file.py:cnn".'
)
def sweep(
    configs: Sequence[Config],
    root: str | Path | None = None,
    *,
    jobs: int = 1,
    ray: str | None = None,
    train_all: bool = False,
    together: bool = False,
    on_row: OnRow | None = None,
    on_end: OnEnd | None = None,
    on_found: OnFound | None = None,
    on_note: Callable[[str], None] | None = None,
) -> list[RunResult]:
    """Execute the runs of ``configs``, or read or resume those that ``root`` already contains.

    Runs with equal settings are executed once. If a run fails, the others still run to their end.
    Runs of code or files that have changed since are not read; they remain in their folders.

    Runs that train the same model over different error-free radios are trained once. The others get
    the rows that training would have given them, but for ``wall_seconds``, which are those of the
    trained run; ``priced_from`` in their ``about.json`` names its folder.

    >>> import wirelessfl
    >>> configs = wirelessfl.combinations("fedavg,fedprox", {"clients": 4, "rounds": 1})
    >>> results = wirelessfl.sweep(configs, root="my-sweep")
    >>> [result.summary()["round"] for result in results]
    [1, 1]

    Args:
        configs: settings of each run, for example from ``wirelessfl.combinations``.
        root: folder of all runs; None for the common ``out`` of ``configs`` or, if they have none,
            for ``runs/sweep``.
        jobs: number of local processes; with more than one, each run uses one CPU thread, and the
            processes take the GPUs in turn, if there are several.
        ray: address of a Ray cluster, or ``local`` to start one on this machine; ``jobs`` is then
            ignored. Runs that are not trained are priced on this machine.
        train_all: whether to train each run, even if another one trains the same model.
        together: whether runs that differ only in their seed train together in this process: up to
            16 at a time, whose local training is merged where this changes no bit of their
            results. Runs that name code, have tasks, or whose models need another executor than
            ``stacked`` train one after the other.
        on_row: called with the index of a run and each row as it is written.
        on_end: called with the index of each run once it has finished.
        on_found: called once, before any run starts, with the indices of the finished runs that
            ``root`` contains, and of the other runs.
        on_note: called with the notes on the runs that are executed, each kind once; None to warn
            with the class ``wirelessfl.Note``.

    Returns:
        Results in the order of ``configs``.

    Raises:
        ConfigError: ``configs`` is not a list of ``Config``, ``jobs`` < 1, ``root`` cannot be
            written or is the folder of a run, Ray or its cluster is not available, ``torchrun`` has
            started several processes, a script starts the sweep when it is imported by the
            processes of the sweep, or the runs cannot train together.
        SweepError: runs failed.
    """
    leave_if_child()
    _check_configs(configs)
    if jobs < 1:
        raise ConfigError(f"jobs is {jobs}: give a number of processes >= 1.")
    if launched()[1] > 1:
        raise ConfigError(
            "torchrun shares the clients of one run between processes, but a sweep has many runs. "
            "Start the sweep without torchrun, and use jobs or ray."
        )
    if together:
        _check_together(configs, jobs, ray)
    root = root_of(configs, root)
    check_writable(root)
    if RunFolder.holds_run(root):
        raise ConfigError(
            f"out is {root}, which contains a run, and a sweep needs a folder of its own. Choose "
            "another folder."
        )
    tell = on_row or (lambda place, row: None)
    folders = [kept_folder(config, root) for config in configs]
    notes = Notes(on_note)

    def ended(place: int) -> None:
        notes(*RunFolder(folders[place]).notes())
        if on_end is not None:
            on_end(place)

    first = {folder: place for place, folder in reversed([*enumerate(folders)])}
    finished = [place for place in sorted(first.values()) if is_finished(configs[place], root)]
    places = sorted({*first.values()} - {*finished})
    if on_found is not None:
        on_found(finished, places)
    for place in finished:
        if on_end is not None:
            on_end(place)

    def execute(some: list[int], sources: Mapping[int, Path]) -> list[Failure]:
        """Train runs, or price those with a source."""
        if ray is not None and not sources:
            on_cluster = on_ray(configs, some, folders, ray, tell, ended)
            return [Failure(*reason) for reason in on_cluster]
        if processes is not None:
            return [Failure(*reason) for reason in processes.execute(some, sources)]
        if together and not sources:
            return _together(configs, some, folders, tell, ended, notes)
        return _in_turn(configs, some, folders, tell, ended, sources)

    failures: list[Failure] = []
    with handled_by(end), data_kept, ExitStack() as stack:
        processes = None
        if jobs > 1 and places:
            processes = stack.enter_context(Processes(configs, folders, jobs, tell, ended))
        if train_all and places:
            failures = execute(places, {})
        elif places:
            failures = _by_training(configs, places, folders, finished, execute)
    failed = {settings_hash(failure.config): failure for failure in failures}
    stored: dict[Path, RunResult | Failure] = {}
    for folder, config in zip(folders, configs, strict=True):
        if folder not in stored:
            stored[folder] = failed.get(settings_hash(config)) or _stored(config, folder)
    outcomes = [stored[folder] for folder in folders]
    failures = [outcome for outcome in stored.values() if isinstance(outcome, Failure)]
    if failures:
        raise SweepError(failures, outcomes)
    return [outcome for outcome in outcomes if isinstance(outcome, RunResult)]


def root_of(configs: Sequence[Config], root: str | Path | None) -> Path:
    """The folder of all runs of a sweep, see ``sweep``.

    Raises:
        ConfigError: none is given, and the configurations have several.
    """
    if root is not None:
        return expanded(root)
    first, *others = dict.fromkeys(config.run.out for config in configs) or [None]
    if others:
        raise ConfigError(
            f"out is {first} and {others[0]}: a sweep has one folder for all runs. Give it as root."
        )
    return first or ROOT


def _check_configs(configs: Any) -> None:
    if isinstance(configs, Config):
        raise ConfigError("configs is a Config: give a list of them, [config].")
    for place, config in enumerate(configs):
        if not isinstance(config, Config):
            raise ConfigError(
                f"configs[{place}] is {shown(config)}: give a list of Config objects, for example "
                "from wirelessfl.combinations."
            )


def _by_training(
    configs: Sequence[Config],
    places: Sequence[int],
    folders: Sequence[Path],
    finished: Sequence[int],
    execute: Callable[[list[int], Mapping[int, Path]], list[Failure]],
) -> list[Failure]:
    """Train one run of those that train the same model, then price the others.

    If it fails, the next one is trained. Interrupted runs are always resumed.
    """
    keys = {place: training_key(configs[place]) for place in (*finished, *places)}
    sources = {keys[place]: folders[place] for place in reversed(finished)}
    waiting, failures = list(places), list[Failure]()
    while waiting:
        led, trained, later = set[str | None](), list[int](), list[int]()
        for place in sorted(waiting, key=lambda place: not RunFolder.holds_run(folders[place])):
            key, begun = keys[place], RunFolder.holds_run(folders[place])
            if key is None or begun or (key not in sources and key not in led):
                trained.append(place)
                led.add(key)
            else:
                later.append(place)
        trained.sort()
        now = execute(trained, {}) if trained else []
        failed = {settings_hash(failure.config) for failure in now}
        for place in trained:
            if keys[place] is not None and settings_hash(configs[place]) not in failed:
                sources.setdefault(keys[place], folders[place])
        priced = {place: sources[keys[place]] for place in sorted(later) if keys[place] in sources}
        if priced:
            now += execute(list(priced), priced)
        failures += now
        waiting = [place for place in later if place not in priced]
    return failures


def _stored(config: Config, folder: Path) -> RunResult | Failure:
    """The finished run in a folder, or the reason why it cannot be read."""
    try:
        return resume(folder, trust=config.code)
    except ConfigError as error:
        return Failure(config, str(error))


def _in_turn(
    configs: Sequence[Config],
    places: list[int],
    folders: Sequence[Path],
    tell: OnRow,
    ended: OnEnd,
    sources: Mapping[int, Path],
) -> list[Failure]:
    failures, mistakes = [], []

    def on_row(place: int, row: Row) -> None:
        try:
            tell(place, row)
        except Exception as error:  # an error of the caller, not of the run
            mistakes.append(error)
            raise

    for place in places:
        reason = why_failed(
            configs[place], folders[place], partial(on_row, place), sources.get(place)
        )
        if mistakes:
            raise mistakes[0]
        if reason:
            failures.append(Failure(configs[place], reason))
        else:
            ended(place)
    return failures


def _without_seed(config: Config) -> str | None:
    """What runs that train together have in common; None if a run cannot."""
    if config.code or config.task:  # code may have state; tasks have data sets of their own
        return None
    return repr(sorted(non_defaults(config.with_run({"seed": 0})).items()))


def _check_together(configs: Sequence[Config], jobs: int, ray: str | None) -> None:
    for name, conflict in (("jobs", jobs if jobs > 1 else None), ("ray", ray)):
        if conflict is not None:
            raise ConfigError(
                f"together conflicts with {name}={conflict}: runs that train together are in one "
                "process. Leave one of the two out."
            )
    for config in configs:
        for name, value, suits, remedy in (
            ("workers", config.run.workers, (None, 1), "1"),
            ("executor", config.run.executor, ("auto", "stacked"), '"stacked"'),
            ("precision", config.training.precision, ("float32", "bf16"), '"bf16"'),
        ):
            if value not in suits:
                raise ConfigError(
                    f"together conflicts with {name}={shown(value)}: choose {name} {remedy}, or "
                    "leave together out."
                )
    keys = [key for config in configs if (key := _without_seed(config)) is not None]
    if len({*keys}) == len(keys):
        raise ConfigError(
            "together needs runs that differ only in their seed, name no code and have no tasks, "
            "but there are no two of them. Give several seeds, or leave together out."
        )


def _together(
    configs: Sequence[Config],
    places: list[int],
    folders: Sequence[Path],
    tell: OnRow,
    ended: OnEnd,
    notes: Notes,
) -> list[Failure]:
    """Execute runs that differ only in their seed together, and the others in turn."""
    groups: dict[str | int, list[int]] = {}
    for place in places:
        groups.setdefault(_without_seed(configs[place]) or place, []).append(place)
    failures = []
    for group in groups.values():
        if len(group) < 2:
            failures += _in_turn(configs, group, folders, tell, ended, {})
            continue
        meeting = Meeting()
        # In the order of their folders: two sweeps that wait for each other's runs would never end.
        group.sort(key=lambda place: folders[place])
        for part in even_parts(len(group), TOGETHER):
            failures += _met(meeting, configs, group[part], folders, tell, ended)
        name = configs[group[0]].named("algorithm")
        if not meeting.cohorts:
            notes(
                f"together: runs of {name} trained one after the other: no two jobs of equal "
                'shapes met, or the model needs another executor than "stacked".'
            )
        elif meeting.differing:
            notes(
                f"together: some jobs of {name} trained alone, because they would be rounded "
                "otherwise as one cohort."
            )
    return failures


def _met(
    meeting: Meeting,
    configs: Sequence[Config],
    places: Sequence[int],
    folders: Sequence[Path],
    tell: OnRow,
    ended: OnEnd,
) -> list[Failure]:
    failures, finished = list[Failure](), list[int]()

    def on_row(place: int, row: Row) -> None:
        tell(place, row)
        meeting.end_if_asked()

    def execute(place: int) -> None:
        failures.extend(_in_turn(configs, [place], folders, on_row, finished.append, {}))

    for place in places:
        with suppress(ConfigError):  # of a damaged folder, which the run reports
            if RunFolder.holds_run(folders[place]):
                RunFolder(folders[place]).wait()  # here signals end it
    meeting.hold([partial(execute, place) for place in places])
    for place in sorted(finished):  # in the thread of the caller, which gets warnings
        ended(place)
    return failures
