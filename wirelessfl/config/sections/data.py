"""Settings of the data set."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import Field, field_validator

from wirelessfl.config.sections.base import Section
from wirelessfl.data.files import dataset_title, is_folder_path
from wirelessfl.import_paths import absolute


class DataSection(Section):
    """The data set."""

    dataset: str = Field("digits", description="data set in `wirelessfl list`, or image folder")
    data_dir: Path | None = Field(
        None,
        description="folder of the data sets (default: $WIRELESSFL_DATA, or a cache)",
    )
    validation_fraction: float = Field(
        0.0,
        ge=0,
        lt=1,
        description="fraction of training data held out for validation",
    )
    pixels: Literal["signed", "unit", "standard"] = Field(
        "signed",
        description="pixels in [-1, 1]: unchanged (signed), scaled to [0, 1] (unit), or to mean 0 "
        "and variance 1 (standard)",
    )
    tokenizer: str | None = Field(
        None,
        description="tokenizer: words or words:V (the V most frequent words), a name on the hub "
        "or a folder (default: the model's)",
    )
    max_length: int | None = Field(
        None, ge=1, le=10**6, description="tokens per text, truncated or padded (default: 128)"
    )

    @field_validator("dataset")
    @classmethod
    def _absolute(cls, dataset: str) -> str:
        # A run may be resumed from another working directory.
        folder = is_folder_path(dataset)
        return str(Path(dataset).absolute()) if folder else str(absolute(dataset))

    @property
    def title(self) -> str:
        """The data set's name in titles; of a path only the last part."""
        # A relative path here is the name of a given data set, such as "group/name".
        path = Path(self.dataset).is_absolute()
        return dataset_title(self.dataset) if path else self.dataset
