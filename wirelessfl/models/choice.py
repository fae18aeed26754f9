"""Models as choices, each with the settings that its callable accepts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, make_dataclass
from inspect import Parameter
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import torch
from pydantic import BeforeValidator, Field

from channels.concurrency import once
from channels.streams import Stream
from wirelessfl.base.needs import Needs
from wirelessfl.base.registry import Choice, Kind, by_name
from wirelessfl.models import MODELS, build_model, parameters_of

SETTINGS: Mapping[str, Any] = {
    "dropout": Annotated[float, Field(ge=0, lt=1, description="dropout probability")],
    "hidden": Annotated[
        tuple[Annotated[int, Field(ge=1)], ...] | None,
        Field(description="widths of the hidden layers, e.g. 300,100 (default: the model's)"),
    ],
    "norm": Annotated[
        Literal["group", "batch"] | None,
        Field(
            description="normalisation: group, or batch (batch statistics also in evaluation) "
            "(default: group)"
        ),
    ],
    "embedding": Annotated[
        int | None,
        Field(ge=1, description="size of the word embeddings (default: the file's, or 64)"),
    ],
    "embedding_file": Annotated[
        Path | None,
        Field(description="word vectors to start from: text of GloVe or word2vec (default: none)"),
    ],
    "pretrained": Annotated[
        str | None,
        Field(description="pretrained base: a name on the hub or a folder (default: gpt2)"),
    ],
    "lora_rank": Annotated[
        int | None,
        Field(ge=1, description="rank of the LoRA adapters (default: 64; gpt2-lora-tiny: 4)"),
    ],
    "lora_alpha": Annotated[
        float | None,
        Field(gt=0, description="LoRA alpha, the adapters' scale times rank (default: the rank)"),
    ],
}
"""Settings of models, by the name of the callable's argument."""
DEFAULTS = {"dropout": 0.0}
"""Defaults of settings; the others default to None, for the model's default."""


def _names(names: Any) -> Any:
    listed = [names] if isinstance(names, str) else names
    if not isinstance(listed, list | tuple) or not all(isinstance(entry, str) for entry in listed):
        return names
    return tuple(name.strip() for entry in listed for name in entry.split(","))


SPLIT_LAYERS = Needs(
    lambda run, _: run.splits_layers,
    'conflicts with algorithm "{run.title}", which does not split layers: choose "hist" '
    'or "ra-fed"',
)


@dataclass(frozen=True)
class ModelChoice(Choice):
    """A model, by name or import path, with the settings that it accepts.

    ``layers`` are the fully connected layers that HIST splits, in order, or the linear layers and
    convolutions that submodels of clients narrow; None for the model's own list, or all.
    """

    name = ""
    factory: ClassVar[Callable[..., Any] | None] = None
    """The callable that makes the module; None if the module is given as an object."""

    layers: Annotated[
        tuple[str, ...] | None,
        BeforeValidator(_names),
        Field(description="layers to split, e.g. fc1,fc2"),
        SPLIT_LAYERS,
    ] = None

    @property
    def default_tokenizer(self) -> str | None:
        """The tokenizer that the model's callable declares for runs that name none, if any."""
        return getattr(self.factory, "default_tokenizer", None)

    def build(
        self,
        input_shape: Sequence[int],
        classes: int,
        *,
        stream: Stream,
        pad_id: int | None,
        vocabulary: int | None,
        words: Sequence[str] | None = None,
    ) -> torch.nn.Module:
        """Build the module; arguments and errors are those of ``build_model``."""
        options = {f.name: vars(self)[f.name] for f in fields(self) if f.name != "layers"}
        options = DEFAULTS | options
        options |= {"pad_id": pad_id, "vocabulary": vocabulary, "words": words}
        return build_model(self.name, input_shape, classes, stream=stream, **options)


@dataclass(frozen=True)
class GivenModel(ModelChoice):
    """A module given to ``wirelessfl.run`` as an object."""

    name = "model=..."

    def unused(self) -> Mapping[str, str]:
        """The name of a model that the given module replaces."""
        return {"name": "conflicts with model=..., which is given to wirelessfl.run"}


def _chosen(name: str, settings: Mapping[str, Any]) -> ModelChoice:
    """Unpickle a model with its settings, whose generated class cannot be imported by name."""
    return model_choice(name)(**settings)


@once
def model_choice(name: str) -> type[ModelChoice]:
    """The class of a model's settings."""
    factory = by_name("model", name, MODELS)
    parameters = parameters_of(factory)
    any_option = any(p.kind is Parameter.VAR_KEYWORD for p in parameters.values())
    taken = [key for key in SETTINGS if any_option or key in parameters]
    return make_dataclass(
        "Model",
        [(key, SETTINGS[key], DEFAULTS.get(key)) for key in taken],
        bases=(ModelChoice,),
        namespace={
            "name": name,
            "factory": staticmethod(factory),
            "__doc__": factory.__doc__,
            "__module__": __name__,
            "__reduce__": lambda self: (_chosen, (name, vars(self))),
        },
        frozen=True,
    )


class ModelKind(Kind[ModelChoice]):
    """Built-in models, and models of the user."""

    def classes(self) -> Mapping[str, type[ModelChoice]]:
        """The built-in models, by name."""
        return {name: model_choice(name) for name in MODELS}

    def find(self, name: str) -> type[ModelChoice]:
        """The model called ``name``, or the user's callable at that import path."""
        by_name("model", name, MODELS)  # before the cache, which needs a hashable name
        return model_choice(name)


MODEL_CHOICES: Kind[ModelChoice] = ModelKind(
    "model",
    __name__,
    ModelChoice,
    default="fcnn",
    text="model, or module:callable",
    heading="model",
)
"""Models that can be trained."""
