"""Pilot runs: a few short trainings from which learning curves are fitted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

from channels.notes import Notes
from channels.streams import Stream
from wirelessfl.base.errors import ConfigError
from wirelessfl.base.files import check_writable
from wirelessfl.base.import_paths import expanded, short
from wirelessfl.base.torch_state import own_modes
from wirelessfl.config import Config
from wirelessfl.designs.observed import SCORE, Pilot
from wirelessfl.designs.pilot_plan import COUNT, STEPS, PilotPlan, PilotRequest, planned, whole
from wirelessfl.designs.points import Point
from wirelessfl.runs.build.configured import check_given, configured
from wirelessfl.runs.build.given import Given, GivenObjects
from wirelessfl.runs.build.planners import planner_without_data
from wirelessfl.runs.folder.identity import (
    code_hashes,
    data_hash,
    digest,
    network_hash,
    non_defaults,
)
from wirelessfl.runs.folder.log import Row
from wirelessfl.runs.folder.run_folder import RunFolder
from wirelessfl.runs.result import RunResult
from wirelessfl.runs.run import resume, run
from wirelessfl.runs.sweep import OnEnd, OnFound, OnRow, sweep

if TYPE_CHECKING:
    from wirelessfl.designs.curve import RoundsCurve


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


def by_objects(
    configs: Sequence[Config], root: Path, objects: GivenObjects, watch: Watch
) -> Sequence[RunResult]:
    """Pilots with given objects, one after the other in this process."""
    marked = [configured(config, objects) for config in configs]  # all, before the first one trains
    check_writable(root)
    fingerprint = object_hash(objects, marked[0])
    folders = [root / _folder_name(config, fingerprint) for config in marked]
    states = [_finished(folder) for folder in folders]
    finished = [place for place, state in enumerate(states) if state]
    watch.found(finished, [place for place, state in enumerate(states) if not state])
    arguments = {name: value for name, value in vars(objects).items() if value is not None}
    results, notes = [], Notes(watch.on_note)
    for place, (config, folder) in enumerate(zip(configs, folders, strict=True)):
        on_row = None if states[place] else _telling(watch, place)
        options = {"on_row": on_row, "on_note": lambda note: None, **arguments}
        if RunFolder.holds_run(folder):
            results.append(resume(folder, trust=config.code, **options))
        else:
            results.append(run(config.with_run({"out": folder}), **options))
        if not states[place]:
            notes(*results[-1].notes)
        if watch.on_end is not None:
            watch.on_end(place)
    return results


def object_hash(objects: GivenObjects, config: Config) -> str:
    """Hash of given objects: of their code, data, initial weights, and the network's values."""
    parts: list[object] = [sorted(code_hashes(objects).items())]
    if objects.model is not None:
        for name, tensor in sorted(objects.model.state_dict().items()):
            parts += [name, tensor.detach().cpu().contiguous().numpy()]
    if objects.data is not None:
        parts.append(data_hash(objects.data))
    if objects.network is not None:
        parts.append(network_hash(objects.network, Stream(config.run.seed)))
    parts += [tuple(map(int, lists)) for lists in objects.split or ()]
    return digest(*parts)


def _folder_name(config: Config, fingerprint: str) -> str:
    title = short(config.named("algorithm")).replace(":", ".")
    settings = repr(sorted(non_defaults(config).items()))
    return f"{title}-{digest(settings, fingerprint)}"


def _finished(folder: Path) -> bool:
    try:
        checkpoint = RunFolder(folder).load()
    except ConfigError:
        return False
    return checkpoint is not None and bool(checkpoint[1]["finished"])


def _telling(watch: Watch, place: int) -> Callable[[Row], None] | None:
    on_row = watch.on_row
    if on_row is None:
        return None
    return lambda row: on_row(place, row)


def check_model(plan: PilotPlan, objects: GivenObjects) -> None:
    """Refuse a model that cannot be divided into the pilots' submodels, before any is trained.

    Args:
        plan: the pilots.
        objects: objects that are given to them.

    Raises:
        ConfigError: the model cannot be built or divided; the message names the layers.
    """
    config = plan.configs[0]
    objects = replace(objects, network=None) if plan.plain else objects
    assigner = config.used_assigner
    if assigner.of_cells or assigner.of_clients:
        planner = planner_without_data(configured(config, objects), objects)
        planner.plan(0, losses=lambda clients, samples: np.zeros(len(clients)))


LOWER = (0.85, 0.9, 0.95)
"""Further targets of the curve, relative to the target."""
FEWEST_EXACT = 3
"""Pilots that must tell the rounds to a further target."""


@dataclass(frozen=True, eq=False, repr=False)
class Pilots:
    """Pilot runs, from ``wirelessfl.pilot``.

    >>> import wirelessfl
    >>> config = wirelessfl.Config.from_flags("hfedavg", cells=2, clients=4, hidden=(8,))
    >>> pilots = wirelessfl.pilot(config, local_steps=[1, 4], edge_rounds=[1, 2], steps=20)
    >>> pilots
    4 pilots, 4 trained now, 0 read
    >>> [(point.local_steps, point.edge_rounds) for point in pilots.points]
    [(1, 1), (4, 2), (1, 2), (4, 1)]

    Args:
        results: the runs, in the order of ``points``.
        points: their settings.
        kept: number of pilots that their folder contained, and that were not trained now.
    """

    results: list[RunResult]
    points: list[Point]
    kept: int

    @property
    def trained(self) -> int:
        """Number of pilots that were trained now, or resumed."""
        return len(self.results) - self.kept

    @property
    def wall_seconds(self) -> float:
        """Wall-clock seconds of the training of all pilots, also of those that were read."""
        return float(sum(result.rows[-1]["wall_seconds"] for result in self.results))

    @property
    def target(self) -> float | None:
        """The validation accuracy at which pilots end; None if they train all rounds."""
        return self.results[0].config.evaluation.target

    def __len__(self) -> int:
        return len(self.results)

    def __repr__(self) -> str:
        """Numbers of pilots, in one line."""
        return f"{len(self)} pilots, {self.trained} trained now, {self.kept} read"

    def curve(self, targets: Sequence[float] | None = None, **options: Any) -> RoundsCurve:
        """The learning curve of these pilots, see ``wirelessfl.fit_rounds``.

        The noise of a pilot over the air is 1/SNR; the curve's coefficient contains the factor that
        channels and beamformers add.

        Args:
            targets: validation accuracies; None for the target of the pilots and some below it, or
                without a target those that ``fit_rounds`` chooses.
            options: of ``fit_rounds``.

        Raises:
            ConfigError: see ``fit_rounds``.
        """
        from wirelessfl.designs.fit import fit_rounds

        seen = [
            Pilot.of(result, noise=point.noise)
            for result, point in zip(self.results, self.points, strict=True)
        ]
        if targets is None and self.target is not None:
            lower = [share * self.target for share in LOWER]
            exact = [
                t for t in lower if sum(p.reached(t).kind == "exact" for p in seen) >= FEWEST_EXACT
            ]
            targets = [*exact, self.target]
        return fit_rounds(seen, targets, **options)

    def rows(self) -> list[dict[str, Any]]:
        """Settings and outcome of each pilot.

        Returns:
            ``local_steps``, ``edge_rounds``, ``clients``, ``largest`` (m, submodel relative to
            equal ones), ``snr_db``, ``rounds``, ``validation_accuracy`` (the best),
            ``rounds_to_target`` and ``wall_seconds``.
        """
        rows = []
        for point, result in zip(self.points, self.results, strict=True):
            last, config = result.rows[-1], result.config
            senders = config.training.clients_per_round or config.network.clients
            scores = [row[SCORE] for row in result.rows if row[SCORE] is not None]
            rows.append(
                {
                    "local_steps": point.local_steps,
                    "edge_rounds": point.edge_rounds,
                    "clients": point.clients or senders,
                    "largest": point.largest,
                    "snr_db": point.snr_db,
                    "rounds": last["round"],
                    "validation_accuracy": max(scores, default=None),
                    "rounds_to_target": result.summary().get("rounds_to_target"),
                    "wall_seconds": last["wall_seconds"],
                    "directory": str(result.directory),
                }
            )
        return rows


@own_modes
def pilot(
    config: Config,
    *,
    local_steps: Sequence[int] | None = None,
    edge_rounds: Sequence[int] | None = None,
    clients: Sequence[int] = (),
    masks: bool | Sequence[Sequence[float]] = False,
    snr_db: Sequence[float] = (),
    count: int = COUNT,
    steps: int = STEPS,
    most_rounds: Callable[[int, int], float] | None = None,
    root: str | Path = "runs/pilots",
    jobs: int = 1,
    on_row: OnRow | None = None,
    on_end: OnEnd | None = None,
    on_found: OnFound | None = None,
    on_note: Callable[[str], None] | None = None,
    **given: Unpack[Given],
) -> Pilots:
    """Train a few short runs that differ in H and E, or read them if they exist.

    Pilots end at the target of the settings, if any. They hold out a tenth of the training data for
    validation, unless the settings hold out another part. Their uplink has no errors, and they do
    not depend on the radio, so pilots of one network are those of every other one with the same
    clients in the same cells.

    H and E are chosen for the fit of a0/(H E) + a1 + a2 H + a3 E (D-optimal for relative errors,
    one pilot after the other). More pilots, participants, masks and SNR add pilots to those without
    them.

    >>> import wirelessfl
    >>> config = wirelessfl.Config.from_flags("hfedavg", cells=2, clients=4, hidden=(8,))
    >>> few = {"local_steps": [1, 4], "edge_rounds": [1, 2], "steps": 20}
    >>> wirelessfl.pilot(config, count=3, root="my-pilots", **few)
    3 pilots, 3 trained now, 0 read
    >>> wirelessfl.pilot(config, root="my-pilots", **few)
    4 pilots, 1 trained now, 3 read

    Args:
        config: settings of the runs to design, in rounds. Their numbers of rounds, local steps and
            edge rounds, uplink, mask sizes and evaluations are replaced.
        local_steps: values of H; None for 2 to 40.
        edge_rounds: values of E; None for 1 to 10. Stars have none.
        clients: numbers of participants of a round, if the design chooses among several; the
            largest is that of the pilots that differ in H and E.
        masks: whether two pilots of HIST have unequal submodels: with the shares of the settings if
            these are fixed, otherwise with shares that fall from 1.5/N to 0.5/N. Or shares, one
            list per pilot setting.
        snr_db: SNR of further pilots over the air, which depend on the network.
        count: number of pilots that differ in H and E only, >= 3. If there are fewer settings, all
            are trained.
        steps: local steps of a client up to the last round of a pilot that does not reach the
            target before; pilots have at least 5 rounds.
        most_rounds: limit on the rounds of a pilot, given its H and E: those that a budget allows.
        root: folder of the pilots, which are kept and used again.
        jobs: number of pilots that train at a time; 1 if objects are given.
        on_row: called with the index of a pilot and each row as it is written.
        on_end: called with the index of each pilot that has finished.
        on_found: called once with the indices of the pilots that exist, and of the others.
        on_note: called with the notes on the pilots that are trained, each kind once; None to warn
            with the class ``wirelessfl.Note``.
        given: objects for all pilots, see ``wirelessfl.Given``; no ``redesign``.

    Raises:
        ConfigError: an argument is wrong; or training depends on the radio, e.g. by failures,
            ``max_seconds``, or a selection of clients by channel.
        DataError: data are missing or unsuitable.
        SweepError: pilots failed; the others are stored.
    """
    jobs = whole("jobs", jobs, 1)
    objects = GivenObjects.of(pilot, given)
    if objects.redesign is not None:
        raise ConfigError("redesign=... conflicts with pilots, whose H and E stay: leave it out.")
    if isinstance(config, Config):
        check_given(config.given, objects)
    network: Any = given.get("network")  # an import path is refused
    request = PilotRequest(
        local_steps, edge_rounds, clients, masks, snr_db, count, steps, most_rounds
    )
    plan = planned(config, request, network)
    if plan.plain:
        objects = replace(objects, network=None)
    check_model(plan, objects)
    watch = Watch(on_row, on_end, on_found, on_note)
    if objects.marks.names or objects.loss is not None:
        if jobs > 1:
            names = ", ".join(f"{name}=..." for name in objects.marks.names or ("loss",))
            raise ConfigError(
                f"jobs={jobs} conflicts with {names}, which other processes do not have: choose "
                "jobs=1, or name the objects in the settings as module:name."
            )
        results = by_objects(plan.configs, expanded(root), objects, watch)
    else:
        results = sweep(
            plan.configs,
            expanded(root),
            jobs=jobs,
            on_row=on_row,
            on_end=on_end,
            on_found=watch.found,
            on_note=on_note,
        )
    return Pilots(list(results), plan.points, len(watch.kept))
