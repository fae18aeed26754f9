"""The loss and the metrics of a model, for its data set."""

from __future__ import annotations

from dataclasses import replace

import torch

from wirelessfl.base.errors import ConfigError
from wirelessfl.base.wording import suggestion
from wirelessfl.config import Config
from wirelessfl.data import Dataset
from wirelessfl.data.client_samples import ClientSamples
from wirelessfl.data.dataset import widened
from wirelessfl.models.losses import FunctionLoss, check_labels, ready
from wirelessfl.models.metrics import Measures, Metric, find_metric, label_shares, smaller_is_better
from wirelessfl.models.metrics.metric import own_metrics
from wirelessfl.models.metrics.names import VALIDATION
from wirelessfl.runs.build.given import GivenObjects
from wirelessfl.training.module_checks import output_of
from wirelessfl.training.objective import Objective

TRIED = 8
"""Number of samples on which a user's loss is tried."""


def with_loss(
    config: Config,
    objective: Objective,
    data: Dataset,
    given: GivenObjects,
    device: torch.device,
) -> tuple[Objective, str | None]:
    """The objective with the configured or given loss, and a message for the user, if any.

    Args:
        config: settings of the model.
        objective: the model, on the device.
        data: the data set.
        given: Python objects that replace settings.
        device: the device.

    Raises:
        ConfigError, TrainingError: the loss does not fit the labels, or fails.
    """
    loss = config.loss
    check_labels(loss, data.train_labels, data.name)
    if not isinstance(loss, FunctionLoss):
        return replace(objective, criterion=loss), None
    count = min(TRIED, len(data.train_labels))
    rows = torch.arange(count) * len(data.train_labels) // count  # samples may be sorted by label
    x, y = (part[rows].to(device) for part in (data.train_inputs, data.train_labels))
    objective.module.train()
    outputs = output_of(objective.module, widened(x))
    function = given.loss if callable(given.loss) else None
    criterion, note = ready(loss, function, outputs, y, data.train_labels)
    return replace(objective, criterion=criterion), note


def measures_of(
    config: Config,
    given: GivenObjects,
    objective: Objective,
    data: Dataset,
    samples: ClientSamples,
) -> Measures:
    """The configured and given metrics.

    Args:
        config: settings of the model.
        given: Python objects that replace settings.
        objective: model and loss.
        data: the data set.
        samples: samples of each client.

    Raises:
        ConfigError: a metric does not exist, does not fit the labels, or two have the same name.
    """
    metrics: list[Metric] = [find_metric(name) for name in config.evaluation.metric or ()]
    metrics += own_metrics(given.functions)
    accuracy = objective.criterion.accuracy
    for place, metric in enumerate(metrics):
        if metric.field in {earlier.field for earlier in metrics[:place]}:
            raise ConfigError(f"two metrics are named {metric.field!r}: rename one.")
        reason = metric.why_not(data.train_labels, accuracy)
        if reason is not None:
            raise ConfigError(
                f"metric {metric.title!r} {reason} (data set {data.name!r}): leave it out."
            )
    shares = None
    if any(metric.by_clients for metric in metrics):
        shares = label_shares(data.train_labels, samples, data.classes)
    return Measures(tuple(metrics), accuracy, data.classes, shares)


def check_monitor(config: Config, objective: Objective, measures: Measures, *, held: bool) -> None:
    """Raise unless rows have the field that the target refers to.

    Args:
        config: settings of the model.
        objective: model and loss.
        measures: further metrics.
        held: whether there are validation samples.

    Raises:
        ConfigError: the monitored field is a metric that is not computed, or there is a target
            but neither an accuracy nor a monitored field.
    """
    evaluation, has_accuracy = config.evaluation, objective.criterion.accuracy is not None
    fields = ["loss", *["accuracy"] * has_accuracy, *(m.field for m in measures.metrics)]
    fields += [f"validation_{name}" for name in fields] if held else []
    wanted = evaluation.monitor
    if wanted is None and evaluation.target is not None and not has_accuracy:
        raise ConfigError(
            f"target={evaluation.target:g} refers to the accuracy, which loss "
            f'"{objective.criterion.title}" does not have: name the field that it refers to, '
            f"monitor {', '.join(fields)}."
        )
    if wanted is not None and wanted not in fields:
        raise ConfigError(
            f"monitor is {wanted!r}, which is not a measured field of this run's rows."
            f"{suggestion(wanted, fields)} Choose {', '.join(fields)}, or add a metric."
        )
    for metric in measures.metrics:
        monitored = wanted is not None and wanted.removeprefix(VALIDATION) == metric.field
        if monitored and metric.smaller and not smaller_is_better(metric.field):
            raise ConfigError(
                f"monitor is {wanted!r}, of which smaller values are better: give your metric a "
                f"name that ends in loss, such as {metric.field}_loss, by which rows tell this."
            )
