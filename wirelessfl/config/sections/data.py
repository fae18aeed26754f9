"""Settings of the data set."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, field_validator

from wirelessfl.config.sections.section import Section
from wirelessfl.data import WITHOUT_IMAGES, dataset_names, text_options
from wirelessfl.data.files import dataset_title, is_folder_path
from wirelessfl.import_paths import absolute
from wirelessfl.needs import Needs


@cache  # thousands of configurations are read in a sweep
def _having(key: str) -> str:
    """The built-in data sets that accept a text setting."""
    return " or ".join(name for name in dataset_names() if key in text_options(name))


def _text_option(key: str) -> tuple[Needs, ...]:
    """The needs of a text setting: samples that the package reads and tokenises."""

    def reason(_: Any, own: Any) -> str:
        data = f'dataset "{own.dataset}"'
        return f"conflicts with {data}, which does not use it: choose {_having(key)}"

    return (
        Needs(
            lambda run, _: run.settings.given.data is None,
            "conflicts with data=..., which is tokenised already",
        ),
        Needs(lambda _, own: key in text_options(own.dataset), reason),
    )


PIXELS = (
    Needs(
        lambda run, own: run.settings.given.data is None or own.pixels == "signed",
        "conflicts with data=..., whose values are used as they are: scale the arrays, e.g. inputs "
        "/ 255",
    ),
    Needs(
        lambda run, own: run.settings.given.data is not None or own.dataset not in WITHOUT_IMAGES,
        'conflicts with dataset "{own.dataset}", which has no images',
    ),
)
READ = Needs(
    lambda run, _: run.settings.given.data is None,
    "conflicts with data=..., which is given to wirelessfl.run",
)
SPLIT = Needs(
    lambda run, _: run.settings.given.split is None,
    "conflicts with split=..., which assigns samples to clients: choose one of them",
)


class DataSection(Section):
    """The data set."""

    dataset: Annotated[str, READ] = Field(
        "digits", description="data set in `wirelessfl list`, or image folder"
    )
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
    pixels: Annotated[Literal["signed", "unit", "standard"], PIXELS] = Field(
        "signed",
        description="pixels in [-1, 1]: unchanged (signed), scaled to [0, 1] (unit), or to mean 0 "
        "and variance 1 (standard)",
    )
    tokenizer: Annotated[str | None, _text_option("tokenizer")] = Field(
        None,
        description="tokenizer: words or words:V (the V most frequent words), a name on the hub "
        "or a folder (default: the model's)",
    )
    max_length: Annotated[int | None, _text_option("max_length")] = Field(
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
