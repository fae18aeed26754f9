"""The result of a run and its summary."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import Tensor

from wirelessfl.config import Config
from wirelessfl.divergence import has_diverged
from wirelessfl.rounds.equal_shares import EQUAL_SHARES
from wirelessfl.runs.directory import Row
from wirelessfl.runs.rows import VALIDATION, deciding_accuracy
from wirelessfl.runs.transitions import Transition, transitions
from wirelessfl.wording import shown, suggestion

TO_TARGET = {
    "rounds_to_target": "round",
    "mib_to_target": "uplink_mib",
    "seconds_to_target": "sim_seconds",
}
"""Fields of a summary about the target; values are read from these fields of a row."""


@dataclass(frozen=True)
class RunResult:
    """The result of a run.

    Args:
        config: settings with all automatic values resolved; ``given`` names the objects passed to
            ``wirelessfl.run``, which replace settings.
        rows: one dict per evaluation: ``round``; ``sim_seconds``; cumulative ``uplink_mib``,
            ``downlink_mib`` and ``joules``, mean over clients; ``joules_max``, of the client that
            has used the most; cumulative ``backhaul_mib``, mean over edge servers; ``lost`` and
            ``silent``, cumulative numbers of updates that did not arrive and that were not sent;
            with a cut-off, ``late``, that of updates that missed it; if
            the uplink decides about bands, order, powers or clocks, cumulative ``round_seconds`` of
            the rounds or of all cells' rounds, and ``equal_seconds`` and ``equal_joules``, those of
            the same rounds with equal shares at full power and speed; ``accuracy`` in [0, 1];
            ``loss``, mean test cross-entropy, None if it or a parameter is not finite; with
            validation data ``validation_accuracy`` and ``validation_loss``, the same on the
            held-out training samples; ``numerics``, the version of the results
            (``wirelessfl.runs.about``); ``wall_seconds`` since the start.
            Rows of tasks also have ``task``, ``version``, ``staleness_mean`` and ``staleness_max``
            since the task's previous row, the number of active ``requests``, ``buffer``,
            ``allocation``, ``updates`` and ``lost``. In rows of asynchronous cells ``round`` counts
            merges; they also have ``version``, ``staleness_mean``, ``staleness_max`` and
            ``updates``, the number of finished cell rounds. Rows of sessions have further fields,
            see docs/sessions.md.
        params: final parameters by name, for ``module.load_state_dict(..., strict=False)``; a tied
            parameter appears under each of its names. If tasks have tables, names start with the
            task's name and a dot.
        directory: folder of the run; its ``about.json`` records version, commit, date and device.
        exhausted: why no client could take part in a further round; None if one could.
    """

    config: Config
    rows: list[Row]
    params: dict[str, Tensor]
    directory: Path
    exhausted: str | None = None

    @property
    def ended(self) -> str | None:
        """After which round and why the run ended before its last round; None if it did not."""
        done, total = self.rows[-1]["round"], self.config.total_rounds
        if self.exhausted is None or done == total:
            return None
        return f"ended after round {done} of {total}: {self.exhausted}"

    @property
    def tasks(self) -> list[str]:
        """Names of the tasks, as in the rows' ``task``; empty for a run of one model."""
        return list(dict.fromkeys(row["task"] for row in self.rows if "task" in row))

    def rows_of(self, task: str) -> list[Row]:
        """The rows of one task.

        Raises:
            ValueError: the run has no such task.
        """
        if task not in self.tasks:
            remedy = f"Choose {', '.join(self.tasks)}." if self.tasks else "Use rows."
            raise ValueError(
                f"task is {shown(task)}, which the run does not have."
                f"{suggestion(task, self.tasks)} {remedy}"
            )
        return [row for row in self.rows if row.get("task") == task]

    def transitions(self, first: int = 10, tolerance: float = 0.01) -> list[Transition]:
        """Accuracy after each change of clients, see ``wirelessfl.runs.transitions``.

        Raises:
            ValueError: the run has no sessions, or the first rounds of one were not evaluated.
        """
        return transitions(self.rows, first, tolerance)

    def summaries(self) -> list[dict[str, Any]]:
        """One summary per task, or only the ``summary`` of a run of one model."""
        configs, one = self.config.tasks, not self.config.task
        return [
            {
                "label": configs[task].algorithm["name"] if one else task,
                "task": task,
                **self._summary(self.rows_of(task), configs[task]),
            }
            for task in self.tasks
        ] or [self.summary()]

    def summary(self) -> dict[str, Any]:
        """One line of the summary table: last row, best accuracy, and cost of reaching the target.

        With a validation set, ``best_accuracy`` is the test accuracy of the row with the best
        validation accuracy, and the validation accuracy must reach the target. Accuracies and
        losses of a diverged model are None, and its rows are neither the best nor reach the target.

        With several tasks, accuracy and loss are means over the tasks, and the cost counts until
        all tasks have reached their targets.
        """
        if len(self.tasks) < 2:
            config = self.config.tasks[self.tasks[0]] if self.tasks else self.config
            return self._summary(self.rows, config)
        each = self.summaries()
        last, common = self.rows[-1], {summary.get("target") for summary in each}
        summary = {
            "algorithm": self.config.algorithm["name"],
            "schedule": self.config.schedule["name"],
            "dataset": "+".join(dict.fromkeys(summary["dataset"] for summary in each)),
            "uplink": self.config.uplink["name"],
            "round": max(summary["round"] for summary in each),
            **{key: _mean([summary[key] for summary in each]) for key in ("accuracy", "loss")},
            **{
                key: _mean([summary[key] for summary in each])
                for key in VALIDATION
                if all(key in summary for summary in each)
            },
            "best_accuracy": _mean([summary["best_accuracy"] for summary in each]),
            **{key: last[key] for key in ("uplink_mib", "sim_seconds", "joules", "wall_seconds")},
        }
        if None not in common:
            summary["target"] = common.pop() if len(common) == 1 else "of each task"
            for name in TO_TARGET:
                values = [summary[name] for summary in each]
                summary[name] = None if None in values else max(values)
        return {**summary, "directory": str(self.directory)}

    def _summary(self, rows: list[Row], config: Config) -> dict[str, Any]:
        last, target = rows[-1], config.evaluation.target
        summary: dict[str, Any] = {
            "algorithm": config.algorithm["name"],
            "schedule": config.schedule["name"],
            "dataset": config.data.dataset,
            "uplink": config.uplink["name"],
            "round": last["round"],
            **{key: _told(last, key) for key in ("accuracy", "loss", *VALIDATION) if key in last},
            "best_accuracy": _told(max(rows, key=deciding_accuracy), "accuracy"),
            **{key: last[key] for key in ("uplink_mib", "sim_seconds", "joules", "wall_seconds")},
            **{key: last[key] for key in EQUAL_SHARES if key in last},
        }
        if self.ended is not None:
            summary["ended"] = self.ended
        if config.sessions.sessions is not None:
            summary["transition_accuracy"] = self._after_transitions()
        if target is not None:
            hit = next((row for row in rows if deciding_accuracy(row) >= target), None)
            summary["target"] = target
            for name, key in TO_TARGET.items():
                summary[name] = None if hit is None else hit[key]
        return {**summary, "directory": str(self.directory)}

    def _after_transitions(self) -> float | None:
        """Mean accuracy in the first 10 rounds of all sessions but the first; None if unknown."""
        try:
            found = self.transitions()
        except ValueError:
            return None
        return _mean([one.mean_accuracy for one in found]) if found else None


def _told(row: Row, key: str) -> float | None:
    """A field of an evaluation in a summary; None if the model has diverged."""
    return None if has_diverged(row) else row[key]


def _mean(values: list[float | None]) -> float | None:
    """Mean of ``values``; None if any of them is None."""
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if len(known) == len(values) else None
