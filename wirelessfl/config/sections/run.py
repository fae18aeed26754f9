"""Settings of where a run is computed and kept."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from wirelessfl.config.sections.base import Section


def _count_or(word: str, unit: str, largest: int | None = None) -> BeforeValidator:
    """Reads a count of ``unit`` or ``word``, so that one message names both kinds of value."""
    limit = "1 or more" if largest is None else f"1 to {largest}"

    def check(given: Any) -> Any:
        if given is None or given == word:
            return given
        try:
            number = int(given)
        except (TypeError, ValueError):
            number = 0
        fraction = isinstance(given, float) and number != given
        if fraction or not 1 <= number <= (largest or number):
            raise ValueError(f"{given!r} is not a number of {unit}: give {limit}, or {word}")
        return number

    return BeforeValidator(check)


class RunSection(Section):
    """Where it is computed, and where the results go."""

    seed: int = Field(1, ge=0, description="seed of all randomness")
    device: str = Field("auto", description="auto, cpu, cuda or cuda:N")
    executor: Literal["auto", "stacked", "vmap", "loop"] = Field(
        "auto",
        description="chains of layers together (stacked), any model together (vmap), or one client "
        "after the other for debugging (loop)",
    )
    chunk: Annotated[int | Literal["tune"] | None, _count_or("tune", "clients")] = Field(
        None,
        description="clients that train at once, or tune: the fastest, by a short timing (default: "
        "by the size of the model; a timing may change the last bits of the results)",
    )
    padding: float | None = Field(
        None,
        ge=0,
        le=1,
        description="with different submodels per client, largest padded fraction of a mixed-width "
        "batch; 0: equal widths only (default: by measurement, see docs/performance.md)",
    )
    replay: Literal["on", "off"] | None = Field(
        None,
        description="record local steps once and replay them without the model's own Python code "
        "(default: on for GPUs and for long runs of executor vmap; off with --lr-schedule poly)",
    )
    workers: Annotated[int | Literal["auto"] | None, _count_or("auto", "processes", 1024)] = Field(
        None,
        description="CPU processes that train, or auto (default: auto on the command line, where "
        "long runs get one per core; 1 from Python); results do not depend on it",
    )
    threads: int | None = Field(
        None, ge=1, le=1024, description="CPU threads of each process (default: 1)"
    )
    checkpoint_seconds: float = Field(
        5.0, ge=0, description="minimum wall-clock seconds between checkpoints; 0 saves every round"
    )
    client_states: Literal["auto", "memory", "disk"] = Field(
        "auto",
        description="where what clients keep between rounds is held: host memory, or the run's "
        "folder (auto: by size)",
    )
    out: Path | None = Field(None, description="folder of the run (default: a new one in runs/)")
