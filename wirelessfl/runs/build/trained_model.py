"""Builds one model of a run, with its data, split, loss, metrics and executor."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor, nn

from channels import Network
from channels.arrays import FloatArray, IntArray
from channels.concurrency import cached_property
from channels.streams import Stream
from channels.validation import compact
from wirelessfl.algorithms import Algorithm
from wirelessfl.base.errors import ConfigError
from wirelessfl.base.guard import described
from wirelessfl.base.import_paths import is_import_path
from wirelessfl.base.wording import suggestion
from wirelessfl.config import Config
from wirelessfl.data import Dataset
from wirelessfl.data.client_samples import ClientSamples
from wirelessfl.data.conversion import equal_note, range_note
from wirelessfl.data.dataset import widened
from wirelessfl.data.label_groups import LabelGroups
from wirelessfl.data.labels import class_hint, class_remedy, is_one_class, label_notes
from wirelessfl.engine.rounds.local_training import SentChanges
from wirelessfl.models.losses import FunctionLoss, check_labels, ready
from wirelessfl.models.metrics import Measures, Metric, find_metric, label_shares, smaller_is_better
from wirelessfl.models.metrics.built_in import VALIDATION
from wirelessfl.models.metrics.metric import own_metrics
from wirelessfl.models.shapes import Declared
from wirelessfl.models.submodels import ParamSpec, Submodels
from wirelessfl.runs.build.computing import (
    Computing,
    Workload,
    expect_workers,
    find_device,
    step_counts,
)
from wirelessfl.runs.build.executors import ModelAndData, build_executor
from wirelessfl.runs.build.given import GivenObjects
from wirelessfl.runs.build.samples import Loaded, configured_model
from wirelessfl.runs.build.structure import DeviceStep, StepCost, Structure, counted_cost
from wirelessfl.runs.build.trainers import check_trainer, trainer_executor
from wirelessfl.training.batches import Augmentation, BatchSource
from wirelessfl.training.cohort import Penalty, need_features
from wirelessfl.training.evaluation import Evaluation, EvaluationSamples, OfClients
from wirelessfl.training.executor import Executor, TrainingData
from wirelessfl.training.module_checks import output_of
from wirelessfl.training.objective import Objective
from wirelessfl.training.precision import check_precision
from wirelessfl.training.steps import StepCounts
from wirelessfl.training.trainer import TrainerExecutor
from wirelessfl.training.trial import probabilities

TRIED = 8
"""Number of samples on which a user's loss is tried."""


def with_loss(
    config: Config,
    objective: Objective,
    data: Dataset,
    objects: GivenObjects,
    device: torch.device,
) -> tuple[Objective, str | None]:
    """The objective with the configured or given loss, and a message for the user, if any.

    Args:
        config: settings of the model.
        objective: the model, on the device.
        data: the data set.
        objects: Python objects that replace settings.
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
    function = objects.loss if callable(objects.loss) else None
    criterion, note = ready(loss, function, outputs, y, data.train_labels)
    return replace(objective, criterion=criterion), note


def measures_of(
    config: Config,
    objects: GivenObjects,
    objective: Objective,
    data: Dataset,
    samples: ClientSamples,
) -> Measures:
    """The configured and given metrics.

    Args:
        config: settings of the model.
        objects: Python objects that replace settings.
        objective: model and loss.
        data: the data set.
        samples: samples of each client.

    Raises:
        ConfigError: a metric does not exist, does not fit the labels, or two have the same name.
    """
    metrics: list[Metric] = [find_metric(name) for name in config.evaluation.metric or ()]
    metrics += own_metrics(objects.functions)
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
    field = evaluation.monitor
    if field is None and evaluation.target is not None and not has_accuracy:
        raise ConfigError(
            f"target={evaluation.target:g} refers to the accuracy, which loss "
            f'"{objective.criterion.title}" does not have: name the field that it refers to, '
            f"monitor {', '.join(fields)}."
        )
    if field is not None and field not in fields:
        raise ConfigError(
            f"monitor is {field!r}, which is not a measured field of this run's rows."
            f"{suggestion(field, fields)} Choose {', '.join(fields)}, or add a metric."
        )
    for metric in measures.metrics:
        monitored = field is not None and field.removeprefix(VALIDATION) == metric.field
        if monitored and metric.smaller and not smaller_is_better(metric.field):
            raise ConfigError(
                f"monitor is {field!r}, of which smaller values are better: give your metric a "
                f"name that ends in loss, such as {metric.field}_loss, by which rows tell this."
            )


@dataclass(frozen=True, eq=False)
class TrainedModel:
    """One model of a run, ready to be trained.

    Args:
        algorithm: client and server rule.
        data: the data set.
        client_samples: samples of each client.
        groups: groups of clients that attend different sessions; None without groups.
        module: the model's torch module.
        objective: model and loss.
        start: initial parameters [P], on the device.
        test_inputs: test samples, on the device.
        test_labels: labels of the test samples.
        validation: held-out training samples; None without validation.
        measures: further metrics of rows.
        executor: computes local updates.
        computing: resolved device, workers and threads.
        steps: number of local steps of each client.
        step_cost: counted cost of a full-model step, see ``counted_cost``.
        notes: messages for the user, one line each.
        layers: see ``Structure``.
        of_clients: see ``Evaluation``.
    """

    algorithm: Algorithm
    data: Dataset
    client_samples: ClientSamples
    groups: LabelGroups | None
    module: nn.Module
    objective: Objective
    start: Tensor
    test_inputs: Tensor
    test_labels: Tensor
    validation: EvaluationSamples | None
    measures: Measures
    executor: Executor
    computing: Computing
    steps: StepCounts
    step_cost: StepCost | DeviceStep | None
    notes: list[str]
    layers: tuple[str, ...] | None = None
    of_clients: OfClients | None = None

    trains = True
    shapes = None
    """Its structure is validated."""

    @property
    def spec(self) -> ParamSpec:
        """Names and shapes of the parameters."""
        return self.objective.spec

    @cached_property
    def structure(self) -> Structure:
        """The partition and the neurons, found on demand."""
        return Structure(self, self.layers)

    @property
    def threads(self) -> int:
        """CPU threads per process."""
        return self.computing.threads

    @property
    def chunk(self) -> int:
        """Clients per batched training step."""
        return self.executor.chunk

    def evaluation(self, submodel: Submodels | None) -> Evaluation:
        """What the model is evaluated on, as ``submodel`` or, if this is None, as a whole."""
        test = EvaluationSamples(self.test_inputs, self.test_labels)
        return Evaluation(
            self.objective,
            test,
            self.validation,
            self.measures,
            submodel,
            of_clients=self.of_clients,
        )

    def first_inputs(self, count: int) -> Tensor:
        """A few training samples [count, ...], on the device."""
        return self.data.train_inputs[:count].to(self.computing.device)

    def sample_weights(self, weighting: str) -> FloatArray | None:
        """Number of samples of each client, [clients]; None for uniform weights."""
        if weighting == "uniform":
            return None
        return compact(self.client_samples.sizes.astype(np.float64))


def build_model_of(
    config: Config,
    network: Network,
    workload: Workload,
    objects: GivenObjects,
    loaded: Loaded,
    *,
    split_stream: Stream,
    stream: Stream,
) -> TrainedModel:
    """Load and split the data, and build the model and its executor.

    Args:
        config: settings of the model.
        network: cells and clients.
        workload: amount of training.
        objects: Python objects that replace settings.
        loaded: cache of data sets and splits.
        split_stream: randomness of the split.
        stream: randomness of initial weights and batches.

    Raises:
        ConfigError: settings conflict.
        DataError: the data are missing, or cannot be split as requested.
    """
    if objects.trainer is None:
        expect_workers(config.run, workload)
    else:
        check_trainer(config, objects.trainer)
    data = objects.data or loaded.dataset(config.dataset, config.data.data_dir)
    samples, groups, held = loaded.split(
        config.data, config, data, network, split_stream, objects.split
    )
    if groups is not None and config.training.clients_per_round is None:
        present = int(np.bincount(groups.group_of).max())
        workload = replace(workload, cohort=present, updates=present)
    if objects.model is None:
        module = configured_model(config.model, data, stream.child("initial weights"))
    else:
        module = objects.model
    objective = Objective.of(module)
    start = objective.spec.from_module(module).cpu()
    device = find_device(config.run.device)
    check_precision(config.training.precision, device)
    steps = step_counts(config.training, samples.sizes)
    if config.training.local_epochs is not None:
        ratio = steps.average / config.training.local_steps
        workload = replace(
            workload,
            steps=max(1, round(workload.steps * ratio)),
            # A GPU records the steps of a chunk, whose number differs between chunks.
            steady=workload.steady and (steps.each is None or device.type == "cpu"),
        )
    module.to(device)
    inputs, labels = data.train_inputs.to(device), data.train_labels.to(device)
    objective, loss_note = with_loss(config, objective, data, objects, device)
    measures = measures_of(config, objects, objective, data, samples)
    check_monitor(config, objective, measures, held=held is not None)
    # No client can fill a larger batch. Equal widths keep results independent of the chunk.
    batch_size = min(config.training.batch_size, int(samples.sizes.max()))
    augmentation = _augmentation(config, objects)
    if augmentation is not None:
        augmentation.check(widened(inputs[:TRIED]))
    source = BatchSource(samples, batch_size, stream, augmentation)
    users = objects.data is not None or is_import_path(config.dataset.name)
    unlabelled: list[str] = []
    if is_one_class(data.train_labels):
        classes = data.classes if users else None
        unlabelled = label_notes(data.train_labels, data.test_labels, classes)
    label_hint = class_hint(data.train_labels)
    if unlabelled:
        label_hint = f" Of data set {data.name!r}, {unlabelled[0]}"
    penalties, comparing = _penalties(config)
    trained = ModelAndData(
        objective=objective,
        data=TrainingData(inputs, labels, source),
        classes=data.classes,
        label_hint=label_hint,
        clients=len(samples),
        algorithm=config.rule,
        fixed_shapes=config.used_assigner.fixed_shapes,
        penalties=_checked(penalties, comparing, data),
        comparing=comparing,
        workload=workload,
        precision=config.training.precision,
    )
    executor: Executor
    if objects.trainer is None:
        executor, computing, notes = build_executor(config.run, trained)
    else:
        executor, computing = trainer_executor(
            config, trained, objects.trainer, samples.sizes, stream
        )
        notes = []
    if loss_note is not None:
        notes.append(loss_note)
    step_cost = counted_cost(config, network, lambda: (objective, inputs, labels))
    if step_cost is not None and step_cost.note is not None:
        notes.append(step_cost.note)
    notes += [f"data set {data.name}: {note}" for note in data.notes]
    if users:
        for note in (range_note(data.train_inputs), equal_note(data)):
            notes += [] if note is None else [f"data set {data.name}: {note}"]
    notes += [f"data set {data.name}: {note}" for note in unlabelled]
    notes += Declared.of(module).notes
    if objects.model is not None or is_import_path(config.model.name):
        notes += probabilities(objective, widened(inputs[:TRIED]))
    if data.lossy:
        notes.append(f"data set {data.name}: {data.verification}.")
    tested = _tested(config.evaluation.eval_samples, len(data.test_labels), stream)
    return TrainedModel(
        algorithm=config.rule,
        data=data,
        client_samples=samples,
        groups=groups,
        module=module,
        objective=objective,
        start=start.to(device),
        test_inputs=data.test_inputs[tested].to(device),
        test_labels=data.test_labels[tested].to(device),
        validation=_validation(data, held, device),
        measures=measures,
        executor=executor,
        computing=computing,
        steps=steps,
        step_cost=step_cost,
        notes=notes,
        layers=config.model.layers,
        of_clients=executor.evaluated if isinstance(executor, TrainerExecutor) else None,
    )


def _tested(count: int | None, total: int, stream: Stream) -> slice | torch.Tensor:
    """Which test samples are evaluated, in their order: all of them, or a random sample."""
    if count is None or count >= total:
        return slice(None)
    drawn = stream.child("evaluated samples").generator().permutation(total)[:count]
    return torch.from_numpy(np.sort(drawn))


def _validation(
    data: Dataset, held: IntArray | None, device: torch.device
) -> EvaluationSamples | None:
    if held is None:
        return None
    rows = torch.from_numpy(held)
    return EvaluationSamples(data.train_inputs[rows].to(device), data.train_labels[rows].to(device))


def _augmentation(config: Config, objects: GivenObjects) -> Augmentation | None:
    if objects.augment is not None:
        return Augmentation.of(objects.augment)
    path = config.data.augment
    return None if path is None else Augmentation.find(path)


def _penalties(config: Config) -> tuple[tuple[Penalty, ...], str]:
    """Penalty terms of the clients' loss, and the algorithm or warm start to name in messages."""
    rule, warm_start = config.rule, config.warm_start
    penalties, comparing = rule.penalties, f'algorithm "{config.named("algorithm")}"'
    if warm_start is not None and config.warm_start is not None:
        if not need_features(penalties):
            comparing = f'warm_start "{config.named("warm_start")}"'
        penalties += warm_start.penalties(1, ())  # as in later sessions
    return penalties, comparing


def _checked(penalties: tuple[Penalty, ...], comparing: str, data: Dataset) -> tuple[Penalty, ...]:
    """The penalties, none of which needs classes that the labels do not have."""
    if any(penalty.of_classes for penalty in penalties) and not is_one_class(data.train_labels):
        raise ConfigError(
            f"{comparing} compares class probabilities, but the labels of data set {data.name!r} "
            f"are {described(data.train_labels)}{class_remedy(data.train_labels)} another one, or "
            "int64 labels [n]."
        )
    return penalties


def sent_changes(config: Config, stream: Stream) -> SentChanges | None:
    """Compression of the changes of a model that clients send; None without one.

    Args:
        config: the settings.
        stream: random stream of the run, or of the task.
    """
    if config.uplink_compression is None:
        return None
    feedback = config.training.error_feedback
    return SentChanges(config.uplink_compression, feedback, stream.child("uplink compression"))
