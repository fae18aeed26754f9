"""Data sets as choices, each with the settings that its loader accepts, and their descriptions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, make_dataclass, replace
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import torch
from pydantic import Field

from channels.concurrency import once
from wirelessfl.base.errors import ConfigError
from wirelessfl.base.needs import Needs
from wirelessfl.base.registry import Choice, Kind
from wirelessfl.data import (
    BUILT_IN,
    WITHOUT_IMAGES,
    Facts,
    Loader,
    dataset_names,
    find_dataset,
    known_facts,
    load_dataset,
    text_options,
)
from wirelessfl.data.dataset import Dataset
from wirelessfl.data.files import dataset_title
from wirelessfl.data.pretrained import HUB_MODEL
from wirelessfl.data.tokens import WordTokenizer

PIXELS = Annotated[
    Literal["signed", "unit", "standard"],
    Field(
        description="pixels in [-1, 1]: unchanged (signed), scaled to [0, 1] (unit), or to mean 0 "
        "and variance 1 (standard)"
    ),
]
TEXT_SETTINGS: Mapping[str, Any] = {
    "tokenizer": Annotated[
        str | None,
        Field(
            description="tokenizer: words or words:V (the V most frequent words), a name on the "
            "hub or a folder (default: the model's)"
        ),
    ],
    "max_length": Annotated[
        int | None,
        Field(ge=1, le=10**6, description="tokens per text, truncated or padded (default: 128)"),
    ],
}
"""Settings of texts, by the name of the loader's argument."""


@dataclass(frozen=True)
class DatasetChoice(Choice):
    """A data set, by name, import path or folder, with the settings that it accepts."""

    name = ""
    loader: ClassVar[Loader | None] = None
    """The function that reads the data set; None if it is given as an object."""

    @property
    def _options(self) -> dict[str, Any]:
        """Tokenizer and length, of a data set that accepts them."""
        return {key: getattr(self, key) for key in TEXT_SETTINGS if hasattr(self, key)}

    def filled(self, tokenizer: str | None) -> DatasetChoice:
        """A copy with tokenizer and length, if the data set accepts them.

        The stored settings then describe the data of the run, even if defaults change later.

        Args:
            tokenizer: the model's tokenizer; None if any fits.
        """
        options = self._options
        if not options:
            return self
        usual = text_options(self.name)
        if "tokenizer" in options:
            usual["tokenizer"] = tokenizer or usual["tokenizer"] or HUB_MODEL
        chosen = {key: value for key, value in options.items() if value is not None}
        choice = replace(self, **{key: usual[key] for key in options} | chosen)
        if choice._options.get("tokenizer") is not None:
            WordTokenizer.of(choice._options["tokenizer"])  # raises before the data are read
        return choice

    def load(self, data_dir: Path | None) -> Dataset:
        """Read the data set, with scaled pixels.

        Args:
            data_dir: as for ``load_dataset``, whose errors are raised.
        """
        data = load_dataset(self.name, data_dir, **self._options)
        return scaled(data, getattr(self, "pixels", "signed"))

    def facts(self) -> Facts | None:
        """Shape and classes, without reading the data set; None if they are not known."""
        return known_facts(self.name, **self._options)


def _chosen(name: str, settings: Mapping[str, Any]) -> DatasetChoice:
    """Unpickle a data set with its settings, whose generated class cannot be imported by name."""
    return dataset_choice(name)(**settings)


@once
def dataset_choice(name: str) -> type[DatasetChoice]:
    """The class of a data set's settings."""
    loader = find_dataset(name)
    settings = [(key, TEXT_SETTINGS[key], None) for key in text_options(name)]
    pixels = [] if name in WITHOUT_IMAGES else [("pixels", PIXELS, "signed")]
    return _made(name, [*pixels, *settings], loader, _chosen)


def _given(name: str, _: Mapping[str, Any]) -> DatasetChoice:
    """Unpickle a given data set, which has no settings."""
    return given_dataset(name)()


@once
def given_dataset(name: str) -> type[DatasetChoice]:
    """The class of a data set that is given to ``wirelessfl.run`` as an object, without settings.

    Args:
        name: name of the data set.
    """
    return _made(name, [], None, _given)


def _made(name: str, settings: list[Any], loader: Loader | None, again: Any) -> type[DatasetChoice]:
    """A class of settings, see ``dataset_choice``; ``again`` makes an object from its pickle."""
    # A relative path is the name of a given data set, such as "group/name".
    title = dataset_title(name) if Path(name).is_absolute() else name
    return make_dataclass(
        "Dataset",
        settings,
        bases=(DatasetChoice,),
        namespace={
            "name": name,
            "title": title,
            "loader": None if loader is None else staticmethod(loader),
            "__doc__": f"Data set {title}.",
            "__module__": __name__,
            "__reduce__": lambda self: (again, (name, vars(self))),
        },
        frozen=True,
    )


HUBS = ("hf", "huggingface", "hub", "datasets")
"""Words that begin names of data sets elsewhere."""


class DatasetKind(Kind[DatasetChoice]):
    """Built-in data sets, and functions and folders of the user."""

    def classes(self) -> Mapping[str, type[DatasetChoice]]:
        """The built-in data sets, by name."""
        return {name: dataset_choice(name) for name in dataset_names()}

    def find(self, name: str) -> type[DatasetChoice]:
        """The data set called ``name``, or the user's function or folder at that path."""
        try:
            find_dataset(name)  # before the cache, which needs a hashable name
        except ConfigError as error:
            if str(name).partition(":")[0].lower() in HUBS:
                raise ConfigError(
                    f"dataset is {name!r}: names of a hub are not read. From Python, give its "
                    "DatasetDict as data=..., or name a data set of `wirelessfl list`."
                ) from error
            raise
        return dataset_choice(name)


DATASETS: Kind[DatasetChoice] = DatasetKind(
    "dataset",
    __name__,
    DatasetChoice,
    default="digits",
    table=(
        Needs(
            lambda run, _: run.settings.given.data is None,
            "conflicts with data=..., which is given to wirelessfl.run",
        ),
    ),
    text="data set in `wirelessfl list`, or image folder",
    heading="data",
)
"""All data sets."""


def scaled(data: Dataset, pixels: str) -> Dataset:
    """The data set with images scaled to a range of pixels.

    Args:
        data: the data set, with pixels in [-1, 1].
        pixels: ``signed`` to keep them, ``unit`` for [0, 1], or ``standard`` for mean 0 and
            variance 1 of each channel of the training images.
    """
    if pixels == "signed":
        return data
    train, test = data.train_inputs, data.test_inputs
    conflict = f'pixels="{pixels}" conflicts with data set {data.name!r}, whose inputs are'
    low, high = min(train.min(), test.min()), max(train.max(), test.max())
    if test.dtype != torch.float32 or test.dim() < 4 or low < -1 or high > 1:
        raise ConfigError(f"{conflict} not images in [-1, 1]: leave pixels out.")
    if pixels == "unit":
        if low >= 0:
            raise ConfigError(
                f"{conflict} in [0, 1] already: leave pixels out, and they stay as they are."
            )
        return replace(data, train_inputs=(train + 1) / 2, test_inputs=(test + 1) / 2)
    mean = train.mean((0, 2, 3), keepdim=True)
    spread = train.std((0, 2, 3), keepdim=True).clamp(min=1e-6)
    return replace(data, train_inputs=(train - mean) / spread, test_inputs=(test - mean) / spread)


def described(name: str) -> str:
    """One line about a built-in data set: samples, content, shape, classes and source.

    Args:
        name: one of ``dataset_names()``.
    """
    built_in, facts = BUILT_IN[name], known_facts(name)
    parts = [built_in.content]
    if facts is not None:
        parts.append("x".join(map(str, facts.input_shape)))
        parts.append(f"{facts.classes} classes")
    return f"{', '.join(parts)}; {built_in.source}"
