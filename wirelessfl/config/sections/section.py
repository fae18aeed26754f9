"""The base class of sections, and the settings of a run's computation and folder."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, NoReturn, TypeVar, dataclass_transform

from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field
from pydantic.fields import FieldInfo

from wirelessfl.base.errors import ConfigError
from wirelessfl.base.needs import COHORTS, Needs


def read_only(name: str = "") -> str:
    """The error message for a change of a setting in place."""
    return (
        f"settings are read-only{f', and {name} cannot be set' if name else ''}: make a new "
        f"configuration, config.changed({name if name.isidentifier() else 'rounds'}=value)."
    )


def refuse_change(settings: Any, name: str, value: Any) -> NoReturn:
    """Refuse to set an attribute; a method of frozen settings."""
    raise ConfigError(read_only(name))


@dataclass(frozen=True)
class Section:
    """A table of settings: its fields are keys and flags, with limits and help."""

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(extra="forbid", allow_inf_nan=False)


S = TypeVar("S", bound=Section)


@dataclass_transform(frozen_default=True)
def frozen(cls: type[S]) -> type[S]:
    """A frozen dataclass with pydantic's ``Field(default, ...)``, that says how to change it."""
    for name, annotation in cls.__annotations__.items():
        info = vars(cls).get(name)
        if isinstance(info, FieldInfo):
            cls.__annotations__[name] = Annotated[annotation, info]
            setattr(cls, name, info.default)
    made = dataclass(frozen=True)(cls)
    made.__setattr__ = refuse_change  # type: ignore[method-assign]
    return made


MIXED_WIDTHS = Needs(
    lambda run, _: run.mixed_widths,
    'conflicts with algorithm "{run.title}", which gives clients submodels of equal '
    'widths: choose an algorithm such as "ra-fed"',
)


def _keeps_state(run: Any, _: Any) -> bool:
    return bool(run.settings.client_vectors)


CLIENT_STATE = Needs(
    _keeps_state, 'conflicts with algorithm "{run.title}", which keeps no client state'
)


def _count_or(word: str, unit: str, largest: int | None = None) -> BeforeValidator:
    """Validator for a count from 1 to ``largest`` or the string ``word``.

    ``unit`` names the counted objects in the error message.
    """
    limit = "1 or more" if largest is None else f"1 to {largest}"

    def check(value: Any) -> Any:
        if value is None or value == word:
            return value
        try:
            number = int(value)
        except (OverflowError, TypeError, ValueError):
            number = 0
        fraction = isinstance(value, float) and number != value
        if fraction or not 1 <= number <= (largest or number):
            raise ValueError(f"{value!r} is not a number of {unit}: give {limit}, or {word}")
        return number

    return BeforeValidator(check)


def _with_ends(numbers: tuple[float, ...] | None) -> tuple[float, ...] | None:
    """Four predictions, alone or with both ends of the intervals of three of them."""
    if numbers is not None and len(numbers) not in (4, 10):
        raise ValueError(f"{len(numbers)} numbers are not predictions: give 4, or 10 with ends")
    return numbers


@frozen
class RunSection(Section):
    """Seed, device, executor, processes and storage of a run."""

    seed: int = Field(1, ge=0, description="seed of all randomness")
    device: str = Field("auto", description="auto, cpu, cuda or cuda:N")
    executor: Literal["auto", "fused", "stacked", "vmap", "loop"] = Field(
        "auto",
        description="how clients train: fused, stacked or vmap (in batches), loop (one by one)",
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
    track: Literal["tensorboard", "trackio", "wandb", "mlflow"] | None = Field(
        None, description="tracker: tensorboard, trackio, wandb, mlflow (default: none)"
    )
    client_log: Annotated[bool, COHORTS] = Field(
        False,
        description="store what each round costs each client, in clients.csv",
    )
    predicted: Annotated[tuple[float, ...] | None, AfterValidator(_with_ends)] = Field(
        None,
        description="what a design predicts: rounds, seconds, joules, accuracy, "
        "intervals; shown beside what the run takes",
    )
    out: Path | None = Field(None, description="run directory (default: a new one in runs/)")
