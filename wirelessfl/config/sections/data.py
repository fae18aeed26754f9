"""Settings of the samples."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import Field

from wirelessfl.config.sections.section import Section
from wirelessfl.needs import Needs

SPLIT = Needs(
    lambda run, _: run.settings.given.split is None,
    "conflicts with split=..., which assigns samples to clients: choose one of them",
)


class DataSection(Section):
    """Where the data are, and validation samples."""

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
