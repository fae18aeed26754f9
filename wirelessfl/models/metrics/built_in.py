"""Built-in metrics of classes, of regression, and of the worst-served clients; metrics by name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch

from channels.arrays import FloatArray
from wirelessfl.base.errors import ConfigError
from wirelessfl.base.import_paths import module_and_name
from wirelessfl.base.registry import Kind, by_name, subclass
from wirelessfl.base.wording import shown
from wirelessfl.models.losses import Accuracy
from wirelessfl.models.metrics.metric import Metric, OfClasses, OfReals, OwnMetric, Predicted


@dataclass(frozen=True)
class ClassAccuracy(OfClasses):
    """Accuracy of each class, a list: the fraction of its samples, or pixels, that are right.

    It is None for a class without samples. With several labels per sample it is the fraction of
    the samples in which each label is right.
    """

    name = "class-accuracy"

    def value(self, tested: Predicted) -> list[float]:
        """See :class:`Metric`."""
        accuracies: list[float] = of_classes(tested).tolist()
        return accuracies


def of_classes(tested: Predicted) -> torch.Tensor:
    """Accuracy of each class, [classes], float64; nan for a class without samples."""
    truth, predicted = tested.one_hot
    if tested.accuracy == "signs":
        return (truth == predicted).double().mean(0)
    return (truth & predicted).sum(0).double() / truth.sum(0)


@dataclass(frozen=True)
class MacroF1(OfClasses):
    """Mean over the classes of F1 = 2 TP / (2 TP + FP + FN).

    Classes that occur neither among labels nor among predictions are left out. With several labels
    per sample all of them count, and F1 is 0 for a label that never occurs and is never predicted.
    """

    name = "macro-f1"

    def value(self, tested: Predicted) -> float:
        """See :class:`Metric`."""
        truth, predicted = tested.one_hot
        hits, total = (
            (truth & predicted).sum(0).double(),
            (truth.sum(0) + predicted.sum(0)).double(),
        )
        score = 2 * hits / total.clamp(min=1)
        return float((score if tested.accuracy == "signs" else score[total > 0]).mean())


FRACTION = 0.1


@dataclass(frozen=True)
class WorstClients(Metric):
    """Mean accuracy of the worst 10 % of clients.

    The accuracy of a client is an estimate: the mean of the test accuracies of the classes,
    weighted by the shares of these labels among the client's training samples. Classes without
    test samples are left out of the mean. In sessions, the clients are those present.
    """

    name = "worst-clients"
    by_clients: ClassVar[bool] = True

    def why_not(self, labels: torch.Tensor, accuracy: Accuracy | None) -> str | None:
        """Clients are described by one label per sample."""
        single = labels.dtype == torch.int64 and labels.dim() == 1
        return None if single else "needs one class per sample, int64 labels [n]"

    def value(self, tested: Predicted) -> float:
        """See :class:`Metric`."""
        assert tested.shares is not None
        return worst(of_classes(tested).cpu().numpy(), tested.shares)


def worst(accuracy: FloatArray, shares: FloatArray) -> float:
    """Mean accuracy of the worst tenth of the clients, rounded up.

    Args:
        accuracy: [classes], nan if unknown.
        shares: [clients, classes], fraction of each label among the samples of each client.
    """
    measured = ~np.isnan(accuracy)
    weights = shares[:, measured]
    total = weights.sum(1)
    tested = total > 0
    if not tested.any():
        return float("nan")
    accuracies = np.sort((weights[tested] @ accuracy[measured]) / total[tested])
    return float(accuracies[: int(np.ceil(FRACTION * len(accuracies)))].mean())


@dataclass(frozen=True)
class MAE(OfReals):
    """Mean absolute error, in the unit of the labels; the mean over the labels of a sample."""

    name = "mae"
    smaller: ClassVar[bool] = True

    def of(self, outputs: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        """See :class:`OfReals`."""
        return (outputs - labels).abs().mean()


@dataclass(frozen=True)
class RMSE(OfReals):
    """Root mean squared error, in the unit of the labels; the mean over the labels of a sample."""

    name = "rmse"
    smaller: ClassVar[bool] = True

    def of(self, outputs: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        """See :class:`OfReals`."""
        return ((outputs - labels) ** 2).mean(0).sqrt().mean()


@dataclass(frozen=True)
class R2(OfReals):
    """Coefficient of determination, the mean over the labels of a sample.

    1 - sum (y - f)^2 / sum (y - mean y)^2; None if a label is equal in all samples.
    """

    name = "r2"

    def of(self, outputs: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        """See :class:`OfReals`."""
        left = ((labels - outputs) ** 2).sum(0)
        return (1 - left / ((labels - labels.mean(0)) ** 2).sum(0)).mean()


METRICS: Kind[Metric] = Kind("metric", "wirelessfl.models.metrics", Metric)
"""All built-in metrics."""
VALIDATION = "validation_"
"""Prefix of the fields of validation samples."""
FIELDS = frozenset(
    [
        "accuracy",
        "allocation",
        "available",
        "backhaul_mib",
        "buffer",
        "bytes",
        "charge_mean",
        "charge_min",
        "downlink_mib",
        "dropped",
        "empty",
        "equal_joules",
        "equal_seconds",
        "joules",
        "joules_max",
        "labels",
        "loss",
        "lost",
        "numerics",
        "present",
        "requests",
        "round",
        "round_seconds",
        "session",
        "session_round",
        "silent",
        "sim_seconds",
        "staleness_max",
        "staleness_mean",
        "task",
        "updates",
        "uplink_mib",
        "version",
        "wall_seconds",
        "warm_weights",
    ]
)
"""Fields of rows that no metric may replace."""
PREFIXES = (VALIDATION, "air_error", "extra_", "stored_")
"""Beginnings of further fields of rows: of validation samples, aggregation over the air, sessions.
"""


def is_row_field(name: str) -> bool:
    """Whether rows have, or may have, a field of this name that is no metric."""
    return name in FIELDS or name.startswith(PREFIXES)


def check_name(name: object) -> str:
    """The name of a metric.

    >>> from wirelessfl.metrics import check_name
    >>> check_name("f1")
    'f1'
    """
    if not isinstance(name, str) or not name.strip():
        raise ConfigError(f"a metric is called {shown(name)}: give a name, such as 'f1'.")
    if is_row_field(name):
        raise ConfigError(f"metric {name!r} has the name of a row field: give another name.")
    return name


def find_metric(name: object) -> Metric:
    """The metric called ``name``, or the user's function, class or object at that import path.

    >>> from wirelessfl.metrics import find_metric
    >>> find_metric("macro-f1").field, find_metric("torch.nn.functional:l1_loss").field
    ('macro_f1', 'l1_loss')
    """
    built_in = METRICS.classes()
    choice = by_name("metric", name, built_in)
    assert isinstance(name, str)
    if isinstance(choice, type) and issubclass(choice, Metric):
        choice = subclass("metric", name, choice, Metric)()
    if isinstance(choice, Metric):
        check_name(choice.field)
        return choice
    if not callable(choice) or isinstance(choice, type):
        raise ConfigError(
            f"metric {name!r} is {shown(choice)}: give a function f(outputs, labels) that returns "
            "a number."
        )
    return OwnMetric(check_name(module_and_name(name)[1]), choice)


def smaller_is_better(field: str) -> bool:
    """Whether smaller values of a field are better: losses, and built-in metrics of errors.

    >>> from wirelessfl.metrics import smaller_is_better
    >>> smaller_is_better("loss"), smaller_is_better("rmse"), smaller_is_better("accuracy")
    (True, True, False)
    """
    field = field.removeprefix(VALIDATION)
    if field.endswith("loss"):
        return True
    return any(kind().field == field for kind in METRICS.classes().values() if kind.smaller)
