"""A run of one model in synchronous rounds."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from torch import Tensor

from wirelessfl.metrics import Measures
from wirelessfl.rounds.cells import AsynchronousCells
from wirelessfl.rounds.redesigns import Redesigns
from wirelessfl.rounds.rounds import ModelRounds
from wirelessfl.runs.client_log_file import ClientLogFile
from wirelessfl.runs.directory import CLIENT_LOG, Row
from wirelessfl.runs.fingerprints import data_fingerprint, model_fingerprint, network_fingerprint
from wirelessfl.runs.monitor import Monitor
from wirelessfl.runs.rows import check_apart, evaluation_fields, finite
from wirelessfl.schedules.events import Reached, Report
from wirelessfl.schedules.loop import begin
from wirelessfl.setup.setups import RoundsSetup
from wirelessfl.training.evaluate import Samples, deployed, measured


class RoundsEngine:
    """The engine of runs of one model in rounds, see ``Progress``."""

    setup: RoundsSetup

    def __init__(self, setup: RoundsSetup) -> None:
        self.setup = setup
        self.log: ClientLogFile | None = None

    def start(self) -> None:
        """Start the first round, or after a checkpoint restart the interrupted round."""
        begin(self.setup.clock, self.setup.limits.max_seconds)

    def row(self, report: Report) -> tuple[Row, Reached | None]:
        """Evaluate the cloud's model; ``Reached`` if it ends the run."""
        training = self.setup.training
        check_apart(training.metrics, self.measures())
        row = {
            "round": report.round,
            **self.designed(report.round),
            "sim_seconds": self.setup.clock.now,
            **training.totals.row(),
            "joules_max": training.ledger.most_joules,
            **{name: finite(value) for name, value in training.metrics.items()},
            **self.evaluated(),
        }
        target = self.setup.limits.target
        monitor = Monitor.of(self.setup.config.evaluation.monitor, row)
        reached = target is not None and monitor.reached(row, target)
        return row, Reached(0) if reached else None

    @property
    def redesigns(self) -> Redesigns | None:
        """The redesigns of the run; None if its rounds are as configured."""
        regime = self.setup.regime
        return regime.redesigns if isinstance(regime, ModelRounds) else None

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

    def test_samples(self) -> Samples:
        """Test samples on which the model is evaluated."""
        return Samples(self.setup.model.test_inputs, self.setup.model.test_labels)

    def validation_samples(self) -> Samples | None:
        """Validation samples on which the model is evaluated; None without validation."""
        return self.setup.model.validation

    def tensors(self) -> dict[str, Tensor]:
        """Model, server and client state."""
        return self.setup.training.tensors()

    def snapshot(self) -> dict[str, Any]:
        """The completed rounds, their costs and the last metrics."""
        spec, regime = self.setup.model.objective.spec, self.setup.regime
        logged = {} if self.log is None else {"client_log": self.log.snapshot()}
        merged = {"merged_at": regime.merged_at} if isinstance(regime, ModelRounds) else {}
        redesigns = self.redesigns
        decided = {} if redesigns is None else {"decisions": redesigns.snapshot()}
        return {
            **logged,
            **merged,
            **decided,
            "schedule": self.setup.schedule.snapshot(),
            "totals": self.setup.training.totals.row(),
            "metrics": self.setup.training.metrics,
            "sim_seconds": self.setup.clock.now,
            "shapes": spec.shapes,
            "ties": spec.ties,
            "ended": self.ended(),
        }

    def restore(self, tensors: dict[str, Tensor], state: dict[str, Any]) -> None:
        """Continue after the last completed round."""
        self.setup.training.restore(tensors, state["totals"])
        self.restore_schedule(state)
        if isinstance(self.setup.regime, ModelRounds):
            self.setup.regime.merged_at = state.get("merged_at", self.setup.clock.now)
            if self.redesigns is not None:
                self.redesigns.restore(state["decisions"])
                self.setup.regime.use_decision()
        self.start()

    def restore_schedule(self, state: dict[str, Any]) -> None:
        """Continue the schedule and the clock after the last completed round, with its metrics."""
        self.setup.training.metrics = dict(state.get("metrics", {}))  # older ones have none
        if self.log is not None:
            self.log.restore(state["client_log"])
        self.setup.schedule.restore(state["schedule"])
        self.setup.clock.now = state["sim_seconds"]

    def attach(self, folder: Path, rows: Sequence[Row]) -> None:
        """Set the run's folder, for client states on disk and the client log, and its rows."""
        if self.redesigns is not None:
            self.redesigns.rows = rows
        self.setup.training.server.states.attach(folder)
        if self.setup.config.run.client_log and self.setup.shards.rank == 0:
            uplink, training = self.setup.config.choices.uplink, self.setup.training
            self.log = ClientLogFile(
                folder / CLIENT_LOG, uplink.radio, lambda: training.settings.steps
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
        regime = self.setup.regime
        return None if isinstance(regime, AsynchronousCells) else regime.ended

    def params(self) -> dict[str, Tensor]:
        """Parameters of the cloud's model, by name."""
        return self.setup.model.objective.spec.named(
            self.setup.training.server.cloud["params"].cpu()
        )
