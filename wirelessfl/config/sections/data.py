"""Settings of the samples."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import Field, field_validator

from wirelessfl.config.sections.section import Section
from wirelessfl.import_paths import absolute
from wirelessfl.needs import Needs

SPLIT = Needs(
    lambda run, _: run.settings.given.split is None,
    "conflicts with split=..., which assigns samples to clients: choose one of them",
)

AUGMENT = Needs(
    lambda run, _: run.settings.given.augment is None,
    "conflicts with augment=..., which is given to wirelessfl.run: choose one of them",
)


class DataSection(Section):
    """Where the data are, validation samples, and random changes of training samples."""

    data_dir: Path | None = Field(
        None,
        description="folder of the data sets (default: $WIRELESSFL_DATA, or a cache)",
    )
    validation_fraction: Annotated[float, SPLIT] = Field(
        0.0,
        ge=0,
        lt=1,
        description="fraction of training data held out for validation",
    )
    augment: Annotated[str | None, AUGMENT] = Field(
        None,
        description="function f(x, generator) that changes the samples of each training batch at "
        "random, module:function (default: none)",
    )

    @field_validator("augment")
    @classmethod
    def _absolute(cls, augment: str | None) -> str | None:
        # A run may be resumed from another working directory.
        return absolute(augment)  # type: ignore[no-any-return]
