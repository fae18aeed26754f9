"""Settings of where a run is computed and kept."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from wirelessfl.config.sections.base import Section


def _count_or(word: str, unit: str, largest: int | None = None) -> BeforeValidator:
    """Reads a number of ``unit`` or ``word``, so that one message names both kinds of value."""
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
    """Where the run is computed, and where its results go."""

    seed: int = Field(1, ge=0, description="seed of all randomness")
    device: str = Field("auto", description="auto, cpu, cuda or cuda:N")
    executor: Literal["auto", "stacked", "vmap", "loop"] = Field(
        "auto",
        description="train clients together (stacked: chains of layers; vmap: any model) or one "
        "by one (loop)",
    )
    chunk: Annotated[int | Literal["tune"] | None, _count_or("tune", "clients")] = Field(
        None,
        description="clients that train at once, or tune for the fastest; timing may change the "
        "last bits (default: by model size)",
    )
    padding: float | None = Field(
        None,
        ge=0,
        le=1,
        description="largest padded fraction of a mixed-width batch; 0: equal widths only "
        "(default: 0.1)",
    )
    replay: Literal["on", "off"] | None = Field(
        None,
        description="replay recorded local steps (default: on for GPUs and long runs)",
    )
    workers: Annotated[int | Literal["auto"] | None, _count_or("auto", "processes", 1024)] = Field(
        None,
        description="CPU processes, or auto: one per core for long runs (default: auto; 1 from "
        "Python)",
    )
    threads: int | None = Field(
        None, ge=1, le=1024, description="CPU threads per process (default: 1)"
    )
    checkpoint_seconds: float = Field(
        5.0, ge=0, description="minimum wall-clock seconds between checkpoints"
    )
    client_states: Literal["auto", "memory", "disk"] = Field(
        "auto",
        description="storage of client state: memory, disk (the run directory), or auto by size",
    )
    out: Path | None = Field(None, description="run directory (default: a new one in runs/)")
