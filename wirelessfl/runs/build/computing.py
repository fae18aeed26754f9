"""Device, executor, workers and threads of a run, and its workload."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import torch

from channels.arrays import IntArray
from wirelessfl.base.errors import ConfigError
from wirelessfl.config import Config
from wirelessfl.config.sections import RunSection, TrainingSection
from wirelessfl.training.steps import StepCounts
from wirelessfl.training.workers.processes import cores, fork_server, from_standard_input

LONG_SECONDS = 10.0  # training time above which replay and compiled layers pay off
WORKERS_SECONDS = 5.0  # training time above which workers pay off
USUAL_STEP_SECONDS = 3e-4  # rough time of a local step while the model is not known yet
LARGE_STEP_SECONDS = 3e-3  # the same of a large model


@dataclass(frozen=True)
class Computing:
    """How a model is trained on this machine, with every automatic value resolved.

    Args:
        device: device name for torch.
        executor: name of the executor.
        chunk: clients per batched training step.
        replay: whether local steps are recorded once and then replayed.
        workers: number of processes.
        threads: CPU threads per process.
    """

    device: str
    executor: str
    chunk: int
    replay: bool
    workers: int
    threads: int

    def settings(self) -> dict[str, Any]:
        """The same values as settings of ``[run]``."""
        return asdict(self) | {"replay": "on" if self.replay else "off"}


@dataclass(frozen=True)
class Workload:
    """Amount of training in the whole run.

    Args:
        cohort: number of clients that train together.
        updates: number of client updates per merge.
        steps: local steps of one client over all merges.
        steady: whether step sizes are constant, so that recorded steps can be replayed.
    """

    cohort: int
    updates: int
    steps: int
    steady: bool

    @classmethod
    def of(cls, config: Config, cohort: int, updates: int | None = None) -> Workload:
        """The workload of a configuration.

        Args:
            config: settings of the model.
            cohort: number of clients that train together.
            updates: number of client updates per merge; None for one per client of the cohort.
        """
        training = config.training
        steps = config.total_rounds * (training.edge_rounds or 1) * training.local_steps
        return cls(cohort, updates or cohort, steps, config.lr_schedule.constant)

    @property
    def client_steps(self) -> int:
        """Total number of local steps of all clients."""
        return self.steps * self.updates


def step_counts(training: TrainingSection, sizes: IntArray | None) -> StepCounts:
    """Number of local steps of each client.

    Args:
        training: the settings.
        sizes: [clients], number of samples of each client; None if they are not known.

    Raises:
        ConfigError: passes over the samples are configured, but their numbers are not known, or the
            steps are too many.
    """
    passes = training.local_epochs
    if passes is None:
        return StepCounts(training.local_steps)
    if sizes is None:
        raise ConfigError(
            f"local_epochs={passes:g} needs the numbers of samples of the clients, which are not "
            "read here: give local_steps instead."
        )
    return StepCounts.of_passes(passes, sizes, training.batch_size)


def expect_workers(settings: RunSection, workload: Workload) -> None:
    """Start the fork server of worker processes if the run will probably use it.

    Call it before loading data. Only the number of local steps counts, because the size of the
    model is not known yet. A forked server takes milliseconds, and starts if the run might use it.
    """
    if default_threads(settings) > 1:
        fork_server.forked = False  # OpenMP stalls in a forked process whose parent had threads
    workers = settings.workers or 1
    if workers == "auto" and cores() > 1 and not torch.cuda.is_available():
        step = LARGE_STEP_SECONDS if fork_server.forked else USUAL_STEP_SECONDS
        workers = 2 if workload.client_steps * step > WORKERS_SECONDS else 1
    if workers != "auto" and 1 < workers <= cores() and not from_standard_input():
        fork_server.start()


def check_workers(workers: int, threads: int, clients: int) -> None:
    """Refuse more worker processes than clients or cores; the message names the lower limit.

    Raises:
        ConfigError: there are too many.
    """
    if workers == 1:
        return
    if workers > clients and clients * threads <= cores():
        raise ConfigError(
            f"workers={workers} exceeds the {clients} clients that train at once. Choose 1 to "
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
    """CPU threads per process: one by default.

    Models trained on CPUs are small. Threads synchronise at every operation, so they gain little on
    idle cores and stall on busy ones; several processes use the cores better.
    """
    return settings.threads or 1


def fewer_workers(config: Config) -> Config:
    """Limit the workers of a run, and of its tasks, to the cores of this machine.

    The configuration may be from a machine with more cores.
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


def without_gpu(config: Config) -> tuple[Config, str | None]:
    """Let a run that began on a GPU which torch does not find on this machine continue elsewhere.

    Returns:
        The settings, for the first GPU or, if there is none, the CPU, and a note for the user;
        unchanged and None if the device can be used.
    """
    name = config.run.device
    gpus = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if not name.startswith("cuda") or (torch.device(name).index or 0) < gpus:
        return config, None
    note = f"the run began on {name}, which torch does not find here: it continues on the "
    if gpus:
        return config.with_run({"device": "cuda:0"}), f"{note}first GPU"
    # Chunk, recording of steps and workers were chosen for a GPU.
    moved = config.with_run({"device": "cpu", "chunk": None, "replay": None, "workers": None})
    return moved, f"{note}CPU, whose results differ by rounding"


def find_device(name: str) -> torch.device:
    """Return the device that the setting ``name`` selects.

    Raises:
        ConfigError: the device cannot be used.
    """
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
        torch.ones(1, device=device).item()
    except (RuntimeError, AssertionError) as error:
        first = str(error).splitlines()[0].rstrip(".")
        if first.startswith("Expected one of"):  # a list of 20 types
            near = " Do you mean 'cuda'?" if "gpu" in name.lower() else ""
            raise ConfigError(
                f"device {name!r} cannot be used: torch has no such device.{near} "
                "Choose auto, cpu or cuda."
            ) from error
        raise ConfigError(
            f"device {name!r} cannot be used: {first}. Choose auto or cpu."
        ) from error
    return device
