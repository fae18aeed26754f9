"""Python objects that replace settings of a run, and their checks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypedDict

import torch

from channels import Network
from wirelessfl.base.errors import ConfigError
from wirelessfl.base.import_paths import is_import_path
from wirelessfl.base.wording import check_keywords, shown
from wirelessfl.config.named import GivenNetwork, GivenSection
from wirelessfl.data import Data, Dataset, as_dataset
from wirelessfl.data.partition import client_lists
from wirelessfl.engine.rounds.redesign import Redesign
from wirelessfl.models.metrics import Metric, check_name
from wirelessfl.training.batches import Augmentation, AugmentFunction
from wirelessfl.training.workers.shards import Shards

if TYPE_CHECKING:  # prices need no PyTorch
    from wirelessfl.training.trainer import Trainer

GivenMetrics = Mapping[str, Callable[..., Any]] | Sequence[str | Callable[..., Any] | Metric]
"""Metrics as given: functions by name, or a list of names, of functions and of metrics."""


class GivenTraining(TypedDict, total=False):
    """``wirelessfl.Given`` without the network."""

    model: torch.nn.Module | None
    data: Data | None
    loss: Callable[..., torch.Tensor] | str | None
    metrics: GivenMetrics | None
    split: Sequence[Any] | None
    redesign: Redesign | None
    augment: AugmentFunction | None
    trainer: Trainer | None


class Given(GivenTraining, total=False):
    """What Python gives a run instead of settings: keywords of ``run``, ``resume``, ``price``, ...

    >>> import torch, wirelessfl
    >>> config = wirelessfl.Config.from_flags("fedavg", clients=4, rounds=1, out="my-model")
    >>> model = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 10))
    >>> len(wirelessfl.run(config, model=model).rows)
    2

    ============ ===================================================================================
    ``model``    replaces the configured model: a module of torch; training starts from its weights
    ``data``     replaces the configured data set: a ``Dataset``, arrays (train_inputs,
                 train_labels, test_inputs, test_labels), two data sets of torch, splits of a
                 Hugging Face data set, or the path of an image folder, see
                 ``wirelessfl.data.as_dataset``
    ``network``  replaces the configured network: a ``channels.Network``, or the import path of a
                 function, ``module:function``, as for the setting ``network``. The settings that
                 it replaces must not be given, not even with their default values: ``[fading]``,
                 and all of ``[network]`` except ``coherence``, ``availability``,
                 ``busy_clients``, ``drop_out``, ``downlink_mbps``, ``backhaul_mbps`` and, with
                 shifted-exponential delays, ``step_seconds``
    ``loss``     replaces the configured loss: its name, or a function f(outputs, labels) that
                 returns the loss of each sample, or a scalar, see docs/guides/own-loss-metric.md
    ``metrics``  further metrics of the rows: functions f(outputs, labels) by name, or a list of
                 names of metrics, of functions and of objects of a class of metrics, see
                 ``wirelessfl.metrics``
    ``split``    replaces the configured split: indices of the training samples of each client.
                 There is one client per list unless a network is given
    ``redesign`` decides while the run trains how its next rounds train and send, see
                 ``wirelessfl.Redesign``
    ``augment``  changes the samples of each training batch at random: a function f(x, generator)
                 that gets the samples [batch, ...] of one client and a seeded
                 ``torch.Generator``, and returns samples of the same shape and dtype. Evaluations
                 use the unchanged samples. Its import path is the setting ``augment``
    ``trainer``  trains the clients instead of our local steps: what
                 ``wirelessfl.bridges.flower`` returns for a Flower app
    ============ ===================================================================================
    """

    network: Network | str | None


@dataclass(frozen=True, eq=False)
class GivenObjects:
    """``Given``, checked: data as a data set, the split as ascending indices, network as object."""

    model: torch.nn.Module | None = None
    data: Dataset | None = None
    network: Network | None = None
    loss: Callable[..., torch.Tensor] | str | None = None
    metrics: GivenMetrics | None = None
    split: Sequence[Any] | None = None
    redesign: Redesign | None = None
    augment: AugmentFunction | None = None
    trainer: Trainer | None = None

    @classmethod
    def of(cls, function: Callable[..., Any], given: GivenTraining) -> GivenObjects:
        """The objects that are given to an entry point, but for a network that is named.

        Raises:
            ConfigError: an object has a wrong type or form.
            DataError: the samples do not form a data set.
            TypeError: a keyword is unknown.
        """
        check_keywords(function, given, Given.__annotations__)
        check_objects(
            model=given.get("model"),
            redesign=given.get("redesign"),
            trainer=given.get("trainer"),
        )
        network, data, split = given.get("network"), given.get("data"), given.get("split")
        metrics, augment = given.get("metrics"), given.get("augment")
        named = isinstance(network, str) and is_import_path(network)
        if not named:
            check_objects(network=network)
        if metrics is not None and not isinstance(metrics, Mapping | Sequence):
            raise ConfigError(
                f"metrics is {shown(metrics)}: give a list of functions and names, or a dict of "
                "functions by name."
            )
        if augment is not None:
            Augmentation.of(augment)  # raises if it is not a function
        return cls(
            model=given.get("model"),
            data=None if data is None else as_dataset(data),
            network=network if isinstance(network, Network) else None,
            loss=given.get("loss"),
            metrics=metrics,
            split=None if split is None else client_lists(split),
            redesign=given.get("redesign"),
            augment=augment,
            trainer=given.get("trainer"),
        )

    @property
    def marks(self) -> GivenSection:
        """The ``[given]`` table that marks these objects."""
        network = self.network
        return GivenSection(
            model=None if self.model is None else type(self.model).__name__,
            data=None if self.data is None else self.data.name,
            network=None
            if network is None
            else GivenNetwork(cells=network.cells, clients=network.clients),
            loss=getattr(self.loss, "__name__", "loss") if callable(self.loss) else None,
            metrics=tuple(self.functions) or None,
            split=None if self.split is None else len(self.split),
            redesign=None if self.redesign is None else self.redesign.title,
            augment=None if self.augment is None else Augmentation.of(self.augment).called,
            trainer=None if self.trainer is None else self.trainer.title,
        )

    @property
    def functions(self) -> dict[str, Callable[..., Any] | Metric]:
        """The given metrics that are not names, by name of the field of rows."""
        if isinstance(self.metrics, Mapping):
            return dict(self.metrics)
        listed = [entry for entry in self.metrics or () if not isinstance(entry, str)]
        return {
            e.field if isinstance(e, Metric) else getattr(e, "__name__", "metric"): e
            for e in listed
        }

    @property
    def untrained_notes(self) -> list[str]:
        """A note on the objects without effect where nothing is trained."""
        names = ("metrics", "augment", "trainer")
        text = "nothing is trained or tested, so it has no effect on the costs."
        return [f"{n} is given, but {text}" for n in names if getattr(self, n) is not None]

    @property
    def metric_names(self) -> tuple[str, ...]:
        """The given metrics that are names."""
        if self.metrics is None or isinstance(self.metrics, Mapping):
            return ()
        return tuple(entry for entry in self.metrics if isinstance(entry, str))


NOTHING = GivenObjects()


def _trainer() -> type:
    from wirelessfl.training.trainer import Trainer

    return Trainer


OBJECTS: dict[str, tuple[Callable[[], type], str]] = {
    "model": (
        lambda: torch.nn.Module,  # on demand: prices without a module need no PyTorch
        'give an nn.Module instance, such as MyModel(); names such as "fcnn" are settings',
    ),
    "network": (
        lambda: Network,
        "give a channels.Network, or the path of a function, module:function; numbers of cells "
        "and clients are settings",
    ),
    "redesign": (
        lambda: Redesign,
        "give an instance of a class that derives from wirelessfl.Redesign",
    ),
    "trainer": (
        _trainer,
        "give what wirelessfl.bridges.flower(app) returns, or leave it out",
    ),
    "shards": (
        lambda: Shards,
        "give the object that wirelessfl.extend.sharded() yields, or leave it out",
    ),
}


def check_objects(**objects: object) -> None:
    """Refuse objects of the wrong type; None means not given.

    Args:
        objects: arguments by name; arguments that are not in ``OBJECTS`` must be functions.

    Raises:
        ConfigError: an argument has the wrong type; the message names it.
    """
    for name, value in objects.items():
        if value is None and name != "shards":
            continue
        if name in OBJECTS:
            kind, remedy = OBJECTS[name]
            if not isinstance(value, kind()):
                raise ConfigError(f"{name} is {shown(value)}: {remedy}.")
        elif not callable(value):
            raise ConfigError(
                f"{name} is {shown(value)}: give a function of one argument, or leave it out."
            )


def check_functions(loss: object, metrics: object, functions: Mapping[str, object]) -> None:
    """Refuse losses and metrics that are neither names nor functions.

    Args:
        loss: the given loss; None for none.
        metrics: the given metrics; None for none.
        functions: those that are not names, by name of the field of rows.

    Raises:
        ConfigError: the message names the argument.
    """
    usable = isinstance(loss, str) or (callable(loss) and not isinstance(loss, type))
    if loss is not None and not usable:
        raise ConfigError(
            f"loss is {shown(loss)}: give a function f(outputs, labels), or the name of a loss."
        )
    for name, function in functions.items():
        if isinstance(function, str):
            raise ConfigError(
                f"metrics[{name!r}] is {function!r}: a dict has functions by name; give names in a "
                f"list, metrics=[{function!r}, my_function]."
            )
        if isinstance(function, Metric):
            if isinstance(metrics, Mapping):
                raise ConfigError(
                    f"metrics[{name!r}] is {shown(function)}, whose field is {function.field!r}: "
                    "give it in a list."
                )
        elif isinstance(function, type) or not callable(function):
            of_metrics = isinstance(function, type) and issubclass(function, Metric)
            need = f"an object, {name}()" if of_metrics else "a function f(outputs, labels)"
            raise ConfigError(f"metrics[{name!r}] is {shown(function)}: give {need}.")
        check_name(name)
    if isinstance(metrics, Sequence) and len(functions) < sum(
        not isinstance(entry, str) for entry in metrics
    ):
        raise ConfigError(
            f"metrics has two entries of the same name, {', '.join(functions)}: give a dict of "
            "functions by name."
        )
