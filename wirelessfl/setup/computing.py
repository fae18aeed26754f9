"""Where a run is computed, and how much it computes: device, workers, threads, workload."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import torch

from wirelessfl.config import Config
from wirelessfl.config.sections import RunSection
from wirelessfl.errors import ConfigError
from wirelessfl.processes import cores
from wirelessfl.training.workers import prepare_workers

LONG_SECONDS = 10.0  # of estimated training; shorter runs do without workers and replay
USUAL_STEP_SECONDS = 3e-4  # of a client's local step, before the model is known


@dataclass(frozen=True)
class Computing:
    """Where a model is trained; nothing automatic is left.

    Args:
        device: torch's name.
        executor: its name.
        chunk: clients that train at once.
        replay: whether local steps are recorded once and replayed.
        workers: processes.
        threads: CPU threads of each.
    """

    device: str
    executor: str
    chunk: int
    replay: bool
    workers: int
    threads: int

    def settings(self) -> dict[str, Any]:
        """As settings of ``[run]``."""
        return asdict(self) | {"replay": "on" if self.replay else "off"}


@dataclass(frozen=True)
class Workload:
    """How much a model trains in the whole run.

    Args:
        cohort: clients that train at a time.
        updates: of clients that make a merge.
        steps: local steps behind all merges, one client each.
        steady: whether step sizes stay as they are; others are recorded anew in each round.
    """

    cohort: int
    updates: int
    steps: int
    steady: bool

    @classmethod
    def of(cls, config: Config, cohort: int, updates: int | None = None) -> Workload:
        """That of a configuration.

        Args:
            config: settings of the model.
            cohort: clients that train at a time.
            updates: that make a merge; None: one of each client of a cohort.
        """
        training = config.training
        steps = config.total_rounds * (training.edge_rounds or 1) * training.local_steps
        return cls(cohort, updates or cohort, steps, config.choices.lr_schedule.constant)

    @property
    def client_steps(self) -> int:
        """Local steps of all clients."""
        return self.steps * self.updates


def expect_workers(settings: RunSection, workload: Workload) -> None:
    """Start the imports of worker processes in the background if the run will probably use some.

    Call it before data are loaded: the size of the model is not known then, so that it goes by the
    number of local steps.
    """
    workers = settings.workers or 1
    if workers == "auto" and cores() > 1 and not torch.cuda.is_available():
        workers = 2 if workload.client_steps * USUAL_STEP_SECONDS > LONG_SECONDS else 1
    if workers != "auto" and 1 < workers <= cores():
        prepare_workers()


def check_workers(workers: int, threads: int, clients: int) -> None:
    """Refuse processes that would have nothing to do, or no core.

    Raises:
        ConfigError: there are such.
    """
    if workers == 1:
        return
    if workers > clients:
        raise ConfigError(
            f"workers={workers} exceeds the {clients} clients that train at a time. Choose 1 to "
            f"{clients}."
        )
    if workers * threads > cores():
        if threads > 1:
            raise ConfigError(
                f"workers={workers} conflicts with threads={threads} on {cores()} cores: choose "
                "fewer workers or threads."
            )
        raise ConfigError(
            f"workers={workers} exceeds the number of cores, {cores()}. Choose 1 to {cores()}."
        )


def default_threads(settings: RunSection) -> int:
    """CPU threads of each process: one, unless the settings say.

    The models that are trained on CPUs are small: threads that wait for each other at every
    operation bring little on idle cores, and stall where others use these. Cores are for processes.
    """
    return settings.threads or 1


def fewer_workers(config: Config) -> Config:
    """Settings of a run that began elsewhere, with no more workers than this machine has cores.

    Those of its tasks are lowered too.
    """
    max_workers = max(cores() // default_threads(config.run), 1)
    workers = config.run.workers
    too_many = isinstance(workers, int) and workers > max_workers
    tasks = {
        table["name"]: {"workers": min(table["workers"], max_workers)}
        for table in config.task
        if isinstance(table.get("workers"), int)
    }
    if not (too_many or tasks):
        return config
    return config.with_run({"workers": max_workers} if too_many else {}, tasks)


def find_device(name: str) -> torch.device:
    """The device that a setting names.

    Raises:
        ConfigError: it cannot be used.
    """
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
        torch.ones(1, device=device).item()
    except (RuntimeError, AssertionError) as error:
        first = str(error).splitlines()[0]
        raise ConfigError(
            f"device {name!r} cannot be used: {first.rstrip('.')}. Choose auto or cpu."
        ) from error
    return device
