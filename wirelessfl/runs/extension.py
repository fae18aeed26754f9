"""Extends a run: it continues to more rounds, a higher target, or more simulated seconds.

The result is that of a run started with the later end, bit for bit. An extension that
may differ is refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from torch import Tensor

from wirelessfl.base.errors import ConfigError
from wirelessfl.base.wording import shown
from wirelessfl.config import Config
from wirelessfl.engine.schedules import Rounds
from wirelessfl.models.metrics import smaller_is_better
from wirelessfl.runs.folder.about import NUMERICS
from wirelessfl.runs.folder.log import Row, extent
from wirelessfl.runs.folder.run_folder import RunFolder
from wirelessfl.runs.observers.best_model import best_file, best_row
from wirelessfl.runs.targets import Monitor

SECTIONS = {"rounds": "training", "max_seconds": "training", "target": "evaluation"}
"""Tables of the settings that an extension changes."""
HASHED = re.compile(r".+-[0-9a-f]{16}")
"""Names of folders that are hashes of settings, see ``kept_folder``."""
Checkpoint = tuple[dict[str, Tensor], dict[str, Any]]


@dataclass(frozen=True)
class Later:
    """A later end of a run; None leaves a setting as it is.

    Args:
        rounds: number of rounds.
        target: accuracy, or value of the monitored field, at which the run ends.
        max_seconds: simulated seconds at which the run ends.
    """

    rounds: int | None = None
    target: float | None = None
    max_seconds: float | None = None

    @property
    def given(self) -> dict[str, Any]:
        """The settings that change."""
        return {name: value for name, value in vars(self).items() if value is not None}

    def beyond(self, config: Config) -> Later:
        """The settings that change the end of a run, which has the others already.

        So a command that was killed can be repeated.
        """
        ends = _ends(config)
        return Later(**{name: v for name, v in self.given.items() if v != ends[name]})

    def of(self, config: Config) -> Config:
        """The configuration with this end."""
        if not self.given:
            return config
        flags = {**self.given, "predicted": config.run.predicted}  # of the same design
        if self.target is not None:
            flags["stop_at_target"] = True
        return Config.merged(config.given_tables(), flags)


def extended(
    directory: RunFolder, config: Config, checkpoint: Checkpoint | None, later: Later
) -> tuple[Config, Callable[[], None]]:
    """The settings of a run with a later end, and what stores them; training must follow.

    Args:
        directory: folder of the run.
        config: its settings.
        checkpoint: its last checkpoint; None if it has none.
        later: its new end.
    """
    _check_folder(directory.path, later)
    _check_kind(config)
    _check_later(config, later)
    changed, new = later.of(config), later.given
    old = {name: getattr(getattr(config, SECTIONS[name]), name) for name in new}
    if checkpoint is not None:
        tensors, state = checkpoint
        checkpoint = tensors, _continued(directory, config, changed, state, later)
    entry = {"date": datetime.now(UTC).isoformat(timespec="seconds"), "old": old, "new": new}
    return changed, partial(_store, directory, checkpoint, changed, entry)


def _store(
    directory: RunFolder, checkpoint: Checkpoint | None, changed: Config, entry: dict[str, Any]
) -> None:
    with directory.at_work():
        directory.extend(checkpoint, changed, entry)


def _continued(
    directory: RunFolder, config: Config, changed: Config, state: dict[str, Any], later: Later
) -> dict[str, Any]:
    """The state of a checkpoint from which the run with the later end continues."""
    rows = directory.check_rows(state)
    if state["numerics"] != NUMERICS:
        raise ConfigError(
            f"the run in {directory.path} was made with numerics {state['numerics']}, but this "
            f"version of wirelessfl has {NUMERICS}: its results would differ. Start a new run: "
            f"{directory.command}"
        )
    done = state["schedule"]["rounds_done"]
    _check_step_sizes(directory, config, changed, done)
    if state["finished"]:
        _check_not_ended(directory, config, state)
        state = {**state, "finished": False, "reached": []}
        by_time = _check_ended(config, state, rows, later)
        if by_time:
            state["sim_seconds"] = float(state["handler"]["merged_at"])
        if done == 0:
            rows = []  # the row of the initial model is written again
        elif by_time or done % (config.evaluation.eval_every or 1):
            _check_best(directory, rows[-1])
            rows = rows[:-1]  # the longer run does not evaluate here
        state["rows_bytes"], state["rows_checksum"] = extent(directory.log, len(rows))
    _check_not_reached(changed, rows)
    return state


def _check_folder(path: Path, later: Later) -> None:
    """Refuse folders that are named by the hash of their settings."""
    if HASHED.fullmatch(path.resolve().name):
        flags = " ".join(f"--{n.replace('_', '-')} {v}" for n, v in later.given.items())
        raise ConfigError(
            f"{path} is a run of a sweep, named by the hash of its settings, which must not "
            f"change. Extend a copy: cp -r {path} NEW; "
            f"wirelessfl resume NEW {flags}"
        )


def _ends(config: Config) -> dict[str, float | None]:
    """The ends of a run, None where it has none."""
    training, evaluation = config.training, config.evaluation
    return {
        "rounds": training.rounds,
        "target": evaluation.target if evaluation.stop_at_target else None,
        "max_seconds": training.max_seconds,
    }


def _check_later(config: Config, later: Later) -> None:
    training, evaluation, ends = config.training, config.evaluation, _ends(config)
    for name, value in later.given.items():
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise ConfigError(f"{name} is {shown(value)}: give a number.")
        if name == "max_seconds" and ends[name] is None:
            raise ConfigError(
                f"max_seconds is {value:g}: the run has no max_seconds, but ends after its "
                f"{training.rounds} rounds. Give more rounds instead."
            )
        before = ends[name]
        lower = name == "target" and smaller_is_better(evaluation.monitor or "accuracy")
        if before is not None and (value >= before if lower else value <= before):
            remedy = "a smaller" if lower else "a larger"
            raise ConfigError(f"{name} is {value:g}: the run has {before:g}; give {remedy} value.")


def _check_kind(config: Config) -> None:
    """Refuse runs whose end discards work, or whose rounds are not those of the whole run."""
    if config.regime.in_sessions:
        raise ConfigError(
            f"sessions={config.sessions.sessions}: a run in sessions cannot be extended, since "
            "rounds are those of each session. Start a new run."
        )
    if not config.regime.common_rounds or type(config.schedule) is not Rounds:
        raise ConfigError(
            f"schedule={config.named('schedule')}: such a run cannot be extended, since its end "
            'discards work in progress. Start a new run. Runs of schedule "rounds" can be extended.'
        )


def _check_step_sizes(directory: RunFolder, config: Config, changed: Config, done: int) -> None:
    """Refuse step sizes that depend on the number of rounds, in rounds that are done."""
    before, now = config.training.rounds, changed.training.rounds
    rule = config.lr_schedule
    if now == before or rule is None or rule.constant:
        return
    old, new = rule.shares(before), rule.shares(now)
    if any(old(number) != new(number) for number in range(done)):
        raise ConfigError(
            f"lr_schedule={rule.title}: step sizes depend on the number of rounds, so the first "
            f"{done} of {now} rounds would have had others. Start a new run: {directory.command} "
            f"--rounds {now}"
        )


def _check_not_ended(directory: RunFolder, config: Config, state: Mapping[str, Any]) -> None:
    """Refuse runs that ended early: a run with the later end would have ended there, too."""
    if state.get("ended") is None:
        return
    patience, remedy = config.evaluation.patience, "without what ended it"
    if patience is not None and "has not improved" in state["ended"]:
        remedy = f"with more patience: {directory.command} --patience {2 * patience}"
    raise ConfigError(
        f"the run cannot be extended: it ended because {state['ended']}, and a run with the later "
        f"end would have ended there, too. Start a new run {remedy}"
        + ("." if remedy.endswith("it") else "")
    )


def _check_ended(config: Config, state: Mapping[str, Any], rows: list[Row], later: Later) -> bool:
    """Check that the later end lets a finished run continue; return whether time has ended it."""
    done, rounds = state["schedule"]["rounds_done"], config.training.rounds
    target = config.evaluation.target if config.evaluation.stop_at_target else None
    limit = config.training.max_seconds
    if done >= rounds:
        if later.rounds is None:
            raise ConfigError(f"the run has done all of its {rounds} rounds: give more rounds.")
        return False
    monitor = Monitor.of(config.evaluation.monitor, rows[-1])
    if target is not None and monitor.reached(rows[-1], target):
        if later.target is None:
            raise ConfigError(f"the run ended at its target {target:g}: give a better target.")
        return False
    if limit is None or rows[-1]["sim_seconds"] < limit:
        raise ConfigError(
            f"the run ended after round {done} of {rounds}, which its settings do not "
            "explain. Start a new run."
        )
    if later.max_seconds is None:
        raise ConfigError(f"the run ended at max_seconds={limit:g}: give a larger max_seconds.")
    return True


def _check_best(directory: RunFolder, last: Row) -> None:
    """Refuse if the best parameters are those of the last row, which the longer run lacks."""
    best = best_row(best_file(directory.path))
    if best is not None and best == last:
        raise ConfigError(
            f"the run in {directory.path} has kept its best parameters in round {last['round']}, "
            "which a longer run does not evaluate, and no longer has those before. Start a new "
            f"run: {directory.command}"
        )


def _check_not_reached(config: Config, rows: list[Row]) -> None:
    target = config.evaluation.target
    if target is None or not config.evaluation.stop_at_target or not rows:
        return
    for row in rows:
        monitor = Monitor.of(config.evaluation.monitor, row)
        if monitor.reached(row, target):
            raise ConfigError(
                f"target is {target:g}: the run has reached {row[monitor.field]:g} in round "
                f"{row['round']}, where it would have ended. Give a better target."
            )
