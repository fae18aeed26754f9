"""A run of one model: in rounds, in sessions, or with asynchronous cells."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from torch import Tensor

from wirelessfl.metrics import Measures
from wirelessfl.rounds.redesigns import Redesigns
from wirelessfl.runs.client_log_file import ClientLogFile
from wirelessfl.runs.directory import CLIENT_LOG, Row
from wirelessfl.runs.fingerprints import data_fingerprint, model_fingerprint, network_fingerprint
from wirelessfl.runs.rows import check_apart, evaluation_fields, finite, reached
from wirelessfl.schedules.events import Reached, Report
from wirelessfl.schedules.loop import begin
from wirelessfl.setup.setups import RoundsSetup
from wirelessfl.training.evaluate import EvaluationSamples, deployed, measured


class RoundsEngine:
    """The engine of runs of one model in rounds, see ``Execution``."""

    setup: RoundsSetup

    def __init__(self, setup: RoundsSetup) -> None:
        self.setup = setup
        self.log: ClientLogFile | None = None

    def start(self) -> None:
        """Start the first round, or after a checkpoint restart the interrupted round."""
        begin(self.setup.clock, self.setup.limits.max_seconds)
        self.setup.regime.start()

    def row(self, report: Report) -> tuple[Row, Reached | None]:
        """Evaluate the cloud's model; ``Reached`` if it ends the run."""
        training = self.setup.training
        check_apart(training.metrics, self.measures())
        first, last = self.setup.regime.fields(report.status)
        row = {
            **first,
            "round": report.round,
            **self.designed(report.round),
            "sim_seconds": self.setup.clock.now,
            **training.totals.row(),
            "joules_max": training.ledger.most_joules,
            **{name: finite(value) for name, value in training.metrics.items()},
            **self.evaluated(),
            **last,
        }
        return row, Reached(0) if reached(self.setup.goals[0], row) else None

    @property
    def redesigns(self) -> Redesigns | None:
        """The redesigns of the run; None if its rounds are as configured."""
        return self.setup.regime.redesigns

    def designed(self, round_: int) -> Row:
        """What a redesign has decided about round ``round_``, from 1; empty without redesigns.

        Rows are written before each redesign, so their rounds since the row before are of one
        design.
        """
        if self.redesigns is None:
            return {}
        settings = self.redesigns.of_round(round_ - 1)
        planner = self.redesigns.planner_of(settings)
        return {
            "local_steps": settings.local_steps,
            "edge_rounds": settings.edge_rounds,
            "clients_per_round": planner.participation.per_round or planner.network.clients,
        }

    def evaluated(self) -> Row:
        """Accuracy, loss and metrics of the cloud's model."""
        params = self.setup.training.server.cloud["params"]
        tested = deployed(self.setup.model.objective, params, self.setup.tested)
        held, measures = self.validation_samples(), self.measures()
        return evaluation_fields(
            params,
            measured(*tested, self.test_samples(), measures),
            None if held is None else measured(*tested, held, measures),
        )

    def measures(self) -> Measures:
        """Further metrics of the model."""
        return self.setup.model.measures

    def test_samples(self) -> EvaluationSamples:
        """Test samples on which the model is evaluated."""
        return EvaluationSamples(self.setup.model.test_inputs, self.setup.model.test_labels)

    def validation_samples(self) -> EvaluationSamples | None:
        """Validation samples on which the model is evaluated; None without validation."""
        return self.setup.model.validation

    def tensors(self) -> dict[str, Tensor]:
        """Model, server and client state, and tensors of the regime."""
        return self.setup.regime.tensors()

    def snapshot(self) -> dict[str, Any]:
        """The completed rounds, their costs and the last metrics."""
        spec = self.setup.model.objective.spec
        logged = {} if self.log is None else {"client_log": self.log.snapshot()}
        return {
            **logged,
            **self.setup.regime.snapshot(),
            "schedule": self.setup.schedule.snapshot(),
            "totals": self.setup.training.totals.row(),
            "metrics": self.setup.training.metrics,
            "sim_seconds": self.setup.clock.now,
            "shapes": spec.shapes,
            "ties": spec.ties,
            "ended": self.ended(),
        }

    def restore(self, tensors: dict[str, Tensor], state: dict[str, Any]) -> None:
        """Continue after the last completed round, or with the work in progress of cells."""
        self.setup.training.restore(tensors, state["totals"])
        self.setup.training.metrics = dict(state.get("metrics", {}))  # older ones have none
        if self.log is not None:
            self.log.restore(state["client_log"])
        self.setup.schedule.restore(state["schedule"])
        self.setup.clock.now = state["sim_seconds"]
        self.setup.regime.restore(tensors, state)
        if self.setup.regime.starts_again:
            self.start()

    def attach(self, folder: Path, rows: Sequence[Row]) -> None:
        """Set the run's folder, for client states on disk and the client log, and its rows."""
        if self.redesigns is not None:
            self.redesigns.rows = rows
        self.setup.training.server.states.attach(folder)
        if self.setup.config.run.client_log and self.setup.shards.rank == 0:
            training = self.setup.training
            self.log = ClientLogFile(
                folder / CLIENT_LOG, training.server.uplink.radio, lambda: training.settings.steps
            )
            self.setup.training.log = self.log.add

    def saved(self) -> None:
        """Mark the client states on disk as covered by a checkpoint."""
        self.setup.training.server.states.saved()

    def fingerprint(self) -> dict[str, str]:
        """Hashes of model, data and network."""
        model = self.setup.model
        return {
            "the model's layers and frozen parameters are": model_fingerprint(model.objective),
            "the data are": data_fingerprint(model.data, model.client_samples),
            "the network's values are": network_fingerprint(self.setup.network, self.setup.stream),
        }

    def ended(self) -> str | None:
        """Why the run ends before its last round; None if it does not."""
        return self.setup.regime.ended

    def params(self) -> dict[str, Tensor]:
        """Parameters of the cloud's model, by name."""
        return self.setup.model.objective.spec.named(
            self.setup.training.server.cloud["params"].cpu()
        )
