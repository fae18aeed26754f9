"""Settings of the computation of a run, and of its run directory."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from wirelessfl.config.sections.section import Section
from wirelessfl.needs import COHORTS, Needs

MIXED_WIDTHS = Needs(
    lambda run, _: run.mixed_widths,
    'conflicts with algorithm "{run.title}", which gives clients submodels of equal '
    'widths: choose an algorithm such as "ra-fed"',
)


def _keeps_state(run: Any, _: Any) -> bool:
    rule = run.settings.algorithm.rule
    return bool(rule.client_state or rule.remembers)


CLIENT_STATE = Needs(
    _keeps_state, 'conflicts with algorithm "{run.title}", which keeps no client state'
)


def _count_or(word: str, unit: str, largest: int | None = None) -> BeforeValidator:
    """Validator for a count from 1 to ``largest`` or the string ``word``.

    ``unit`` names the counted objects in the error message.
    """
    limit = "1 or more" if largest is None else f"1 to {largest}"

    def check(given: Any) -> Any:
        if given is None or given == word:
            return given
        try:
            number = int(given)
        except (OverflowError, TypeError, ValueError):
            number = 0
        fraction = isinstance(given, float) and number != given
        if fraction or not 1 <= number <= (largest or number):
            raise ValueError(f"{given!r} is not a number of {unit}: give {limit}, or {word}")
        return number

    return BeforeValidator(check)


class RunSection(Section):
    """Seed, device, executor, processes and storage of a run."""

    seed: int = Field(1, ge=0, description="seed of all randomness")
    device: str = Field("auto", description="auto, cpu, cuda or cuda:N")
    executor: Literal["auto", "stacked", "vmap", "loop"] = Field(
        "auto",
        description="how clients train: stacked or vmap (in batches), loop (one by one)",
    )
    chunk: Annotated[int | Literal["tune"] | None, _count_or("tune", "clients")] = Field(
        None,
        description="clients per batch, or tune to find it by timing (default: by model size)",
    )
    padding: Annotated[float | None, MIXED_WIDTHS] = Field(
        None,
        ge=0,
        le=1,
        description="largest padded fraction of a mixed-width batch; 0: equal widths only "
        "(default: 0.1)",
    )
    replay: Literal["on", "off"] | None = Field(
        None,
        description="record local steps once and replay them (default: auto)",
    )
    workers: Annotated[int | Literal["auto"] | None, _count_or("auto", "processes", 1024)] = Field(
        None,
        description="number of CPU processes (default: auto, several for long runs)",
    )
    threads: int | None = Field(
        None, ge=1, le=1024, description="CPU threads per process (default: 1)"
    )
    checkpoint_seconds: float = Field(
        5.0, ge=0, description="minimum wall-clock seconds between checkpoints"
    )
    client_states: Annotated[Literal["auto", "memory", "disk"], CLIENT_STATE] = Field(
        "auto",
        description="storage of client state: memory, disk (run directory), or auto (by size)",
    )
    keep_best: bool = Field(False, description="keep the parameters of the best evaluation")
    track: Literal["tensorboard", "trackio"] | None = Field(
        None, description="tracker of rows: tensorboard, trackio (default: none)"
    )
    client_log: Annotated[bool, COHORTS] = Field(
        False,
        description="store what each round costs each client, in clients.csv",
    )
    predicted: tuple[float, ...] | None = Field(
        None,
        min_length=4,
        max_length=4,
        description="what a design predicts: global rounds, seconds, joules per client, accuracy; "
        "shown beside what the run takes",
    )
    out: Path | None = Field(None, description="run directory (default: a new one in runs/)")
