"""Extends a run: it continues to more rounds, a higher target, or more simulated seconds.

The result is that of a run started with the later end, bit for bit. An extension that
may differ is refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any
from zlib import crc32

from torch import Tensor

from wirelessfl.base.errors import ConfigError
from wirelessfl.base.files import reading
from wirelessfl.config import Config
from wirelessfl.engine.schedules import Rounds
from wirelessfl.models.metrics import smaller_is_better
from wirelessfl.runs.folder.log import Row
from wirelessfl.runs.folder.run_folder import RunFolder
from wirelessfl.runs.observers.best_model import best_file, best_row
from wirelessfl.runs.targets import Monitor

HASHED = re.compile(r".+-[0-9a-f]{16}")
"""Names of folders that are hashes of settings, see ``kept_folder``."""
LATER = {"rounds": "more rounds", "target": "a better target", "max_seconds": "more max_seconds"}
"""A later end, by the setting at which a run has ended."""
Checkpoint = tuple[dict[str, Tensor], dict[str, Any]]


def later_end(config: Config, **ends: float | None) -> dict[str, float]:
    """Those of ``rounds``, ``target`` and ``max_seconds`` that change the end of a run.

    Without those that the run has already, so a command that was killed can be repeated.

    Args:
        config: settings of the run.
        ends: its new ends; None leaves a setting as it is.
    """
    before = _ends(config)
    return {name: v for name, v in ends.items() if v is not None and v != before[name]}


def extended(
    directory: RunFolder,
    config: Config,
    checkpoint: Checkpoint | None,
    later: Mapping[str, float],
) -> tuple[Config, Callable[[], None]]:
    """The settings of a run with a later end, and what stores them; training must follow.

    Args:
        directory: folder of the run.
        config: its settings.
        checkpoint: its last checkpoint; None if it has none.
        later: its new end, from ``later_end``.
    """
    for reason in _not_extended(directory.path, config, later):
        raise ConfigError(reason)
    stop = {"stop_at_target": True} if "target" in later else {}
    # The design that predicts the run is the same.
    flags: dict[str, Any] = {**later, **stop, "predicted": config.run.predicted}
    changed = config.changed(**flags)
    later = {name: v for name, v in _ends(changed).items() if v is not None and name in later}
    for reason in _not_later(config, later):
        raise ConfigError(reason)
    if checkpoint is not None:
        with reading(directory.checkpoint_file, directory.remedy):
            tensors, state = checkpoint
            directory.check_numerics(state)
            rows = directory.rows(state)
            ended = _ended_by(config, state, rows[-1]) if state["finished"] else None
            for reason in _differences(directory, config, changed, state, rows, ended):
                raise ConfigError(reason)
            if ended is not None:
                state = {**state, "finished": False, "reached": []}
                if ended == "max_seconds":
                    state["sim_seconds"] = float(state["handler"]["merged_at"])
                lines = directory.log.read().splitlines(keepends=True)
                kept = b"".join(lines[: _common(config, state, rows, ended)])
                state["rows_bytes"], state["rows_checksum"] = len(kept), crc32(kept)
            checkpoint = tensors, state
    old = {name: _ends(config)[name] for name in later}
    date = datetime.now(UTC).isoformat(timespec="seconds")
    entry = {"date": date, "old": old, "new": later}
    return changed, partial(directory.extend, checkpoint, changed, entry)


def _ends(config: Config) -> dict[str, float | None]:
    """The ends of a run, None where it has none."""
    training, evaluation = config.training, config.evaluation
    return {
        "rounds": training.rounds,
        "target": evaluation.target if evaluation.stop_at_target else None,
        "max_seconds": training.max_seconds,
    }


def _ended_by(config: Config, state: Mapping[str, Any], last: Row) -> str:
    """The setting at which a run has ended."""
    limit = config.training.max_seconds
    if state["schedule"]["rounds_done"] >= config.training.rounds:
        return "rounds"
    return "target" if limit is None or last["sim_seconds"] < limit else "max_seconds"


def _common(
    config: Config, state: Mapping[str, Any], rows: Sequence[Row], ended: str | None
) -> int:
    """Number of rows that a longer run has, too."""
    done = state["schedule"]["rounds_done"]
    if ended is None:
        return len(rows)
    if done == 0:
        return 0  # the row of the initial model is written again
    evaluated = ended != "max_seconds" and done % (config.evaluation.eval_every or 1) == 0
    return len(rows) if evaluated else len(rows) - 1


def _not_extended(path: Path, config: Config, later: Mapping[str, float]) -> Iterator[str]:
    """Why a run cannot be extended, whatever its end."""
    if HASHED.fullmatch(path.resolve().name):
        flags = " ".join(f"--{n.replace('_', '-')} {v}" for n, v in later.items())
        yield (
            f"{path} is a run of a sweep, named by the hash of its settings, which must not "
            f"change. Extend a copy: cp -r {path} NEW; wirelessfl resume NEW {flags}"
        )
    if config.regime.in_sessions:
        yield (
            f"sessions={config.sessions.sessions}: a run in sessions cannot be extended, since "
            "rounds are those of each session. Start a new run."
        )
    if not config.regime.common_rounds or type(config.schedule) is not Rounds:
        yield (
            f"schedule={config.named('schedule')}: such a run cannot be extended, since its end "
            'discards work in progress. Start a new run. Runs of schedule "rounds" can be extended.'
        )


def _not_later(config: Config, later: Mapping[str, float]) -> Iterator[str]:
    """Why an end is not later than that of a run."""
    for name, value in later.items():
        before = _ends(config)[name]
        if name == "max_seconds" and before is None:
            yield (
                f"max_seconds is {value:g}: the run has no max_seconds, but ends after its "
                f"{config.training.rounds} rounds. Give more rounds instead."
            )
        lower = name == "target" and smaller_is_better(config.evaluation.monitor or "accuracy")
        if before is not None and (value >= before if lower else value <= before):
            remedy = "a smaller" if lower else "a larger"
            yield f"{name} is {value:g}: the run has {before:g}; give {remedy} value."


def _differences(
    directory: RunFolder,
    config: Config,
    changed: Config,
    state: Mapping[str, Any],
    rows: Sequence[Row],
    ended: str | None,
) -> Iterator[str]:
    """Why what a run has done differs from that of a run with the later end.

    Args:
        directory: folder of the run.
        config: its settings.
        changed: those with the later end.
        state: state of its last checkpoint.
        rows: its rows.
        ended: the setting at which it has ended.
    """
    new_run, rule = f"Start a new run: {directory.command}", config.lr_schedule
    rounds, done = changed.training.rounds, state["schedule"]["rounds_done"]
    if rounds != config.training.rounds and rule is not None and not rule.constant:
        old, new = rule.shares(config.training.rounds), rule.shares(rounds)
        if any(old(number) != new(number) for number in range(done)):
            yield (
                f"lr_schedule={rule.title}: step sizes depend on the number of rounds, so the "
                f"first {done} of {rounds} rounds would have had others. {new_run} "
                f"--rounds {rounds}"
            )
    if state["finished"] and state.get("ended") is not None:
        patience = config.evaluation.patience
        remedy = "Start a new run without what ended it."
        if patience is not None and "has not improved" in state["ended"]:
            remedy = f"{new_run} --patience {2 * patience}"
        yield (
            f"the run cannot be extended: it ended because {state['ended']}, and a run with the "
            f"later end would have ended there, too. {remedy}"
        )
    ends, after = _ends(config), _ends(changed)
    if ended is not None and ends[ended] == after[ended]:
        yield f"the run ended at {ended}={ends[ended]}: give {LATER[ended]}."
    count = _common(config, state, rows, ended)
    if done and count < len(rows) and best_row(best_file(directory.path)) == rows[-1]:
        yield (
            f"the run in {directory.path} has kept its best parameters in round "
            f"{rows[-1]['round']}, which a longer run does not evaluate, and no longer has those "
            f"before. {new_run}"
        )
    target = after["target"]
    for row in rows[:count]:
        monitor = Monitor.of(config.evaluation.monitor, row)
        if target is not None and monitor.reached(row, target):
            yield (
                f"target is {target:g}: the run has reached {row[monitor.field]:g} in round "
                f"{row['round']}, where it would have ended. Give a better target."
            )
