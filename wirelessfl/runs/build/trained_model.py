"""Builds one model of a run, with its data, split and executor."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor, nn

from channels import Network
from channels.arrays import FloatArray, IntArray
from channels.streams import Stream
from channels.validation import compact
from wirelessfl.algorithms import Algorithm
from wirelessfl.base.errors import ConfigError
from wirelessfl.base.guard import described
from wirelessfl.base.import_paths import is_import_path
from wirelessfl.config import Config
from wirelessfl.data import Dataset
from wirelessfl.data.client_samples import ClientSamples
from wirelessfl.data.dataset import widened
from wirelessfl.data.label_groups import LabelGroups
from wirelessfl.data.labels import class_hint, class_remedy, is_one_class, label_notes
from wirelessfl.data.own import range_note
from wirelessfl.models.metrics import Measures
from wirelessfl.models.submodels import Submodels
from wirelessfl.runs.build.computing import (
    Computing,
    Workload,
    expect_workers,
    find_device,
    step_counts,
)
from wirelessfl.runs.build.executors import ModelAndData, build_executor
from wirelessfl.runs.build.given import GivenObjects
from wirelessfl.runs.build.losses import TRIED, check_monitor, measures_of, with_loss
from wirelessfl.runs.build.samples import Loaded, configured_model
from wirelessfl.runs.build.structure import StepCost, counted_cost
from wirelessfl.training.augmentation import Augmentation
from wirelessfl.training.batches import BatchSource
from wirelessfl.training.evaluation import Evaluation, EvaluationSamples
from wirelessfl.training.executor import Executor, TrainingData
from wirelessfl.training.objective import Objective
from wirelessfl.training.rules import Penalty, need_features
from wirelessfl.training.steps import StepCounts
from wirelessfl.training.trial import probabilities


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
        step_cost: counted cost of a full-model step; None unless ``cycles_per_flop`` is set.
        notes: messages for the user, one line each.
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
    step_cost: StepCost | None
    notes: list[str]

    @property
    def chunk(self) -> int:
        """Clients per batched training step."""
        return self.executor.chunk

    def evaluation(self, submodel: Submodels | None) -> Evaluation:
        """What the model is evaluated on, as ``submodel`` or, if this is None, as a whole."""
        test = EvaluationSamples(self.test_inputs, self.test_labels)
        return Evaluation(self.objective, test, self.validation, self.measures, submodel)

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
    given: GivenObjects,
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
        given: Python objects that replace settings.
        loaded: cache of data sets and splits.
        split_stream: randomness of the split.
        stream: randomness of initial weights and batches.

    Raises:
        ConfigError: settings conflict.
        DataError: the data are missing, or cannot be split as requested.
    """
    expect_workers(config.run, workload)
    data = given.data or loaded.dataset(config.dataset, config.data.data_dir)
    samples, groups, held = loaded.split(
        config.data, config, data, network, split_stream, given.split
    )
    if groups is not None and config.training.clients_per_round is None:
        present = int(np.bincount(groups.group_of).max())
        workload = replace(workload, cohort=present, updates=present)
    if given.model is None:
        module = configured_model(config.model, data, stream.child("initial weights"))
    else:
        module = given.model
    objective = Objective.of(module)
    start = objective.spec.from_module(module).cpu()
    device = find_device(config.run.device)
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
    objective, loss_note = with_loss(config, objective, data, given, device)
    measures = measures_of(config, given, objective, data, samples)
    check_monitor(config, objective, measures, held=held is not None)
    # No client can fill a larger batch. Equal widths keep results independent of the chunk.
    batch_size = min(config.training.batch_size, int(samples.sizes.max()))
    augmentation = _augmentation(config, given)
    if augmentation is not None:
        augmentation.check(widened(inputs[:TRIED]))
    source = BatchSource(samples, batch_size, stream, augmentation)
    own = given.data is not None or is_import_path(config.dataset.name)
    unlabelled: list[str] = []
    if is_one_class(data.train_labels):
        classes = data.classes if own else None
        unlabelled = label_notes(data.train_labels, data.test_labels, classes)
    label_hint = class_hint(data.train_labels)
    if unlabelled:
        label_hint = f" Of data set {data.name!r}, {unlabelled[0]}"
    penalties, comparing = _penalties(config)
    executor, computing, notes = build_executor(
        config.run,
        ModelAndData(
            objective=objective,
            data=TrainingData(inputs, labels, source),
            classes=data.classes,
            label_hint=label_hint,
            clients=len(samples),
            algorithm=config.algorithm.rule,
            fixed_shapes=config.used_assigner.fixed_shapes,
            penalties=_checked(penalties, comparing, data),
            comparing=comparing,
            workload=workload,
        ),
    )
    if loss_note is not None:
        notes.append(loss_note)
    step_cost = counted_cost(config, objective, inputs, labels)
    if step_cost is not None:
        notes.append(step_cost.note)
    notes += [f"data set {data.name}: {note}" for note in data.notes]
    if own:
        note = range_note(data.train_inputs)
        notes += [] if note is None else [f"data set {data.name}: {note}"]
    notes += [f"data set {data.name}: {note}" for note in unlabelled]
    if given.model is not None or is_import_path(config.model.name):
        notes += probabilities(objective, widened(inputs[:TRIED]))
    if data.lossy:
        notes.append(f"data set {data.name}: {data.verification}.")
    return TrainedModel(
        algorithm=config.algorithm.rule,
        data=data,
        client_samples=samples,
        groups=groups,
        module=module,
        objective=objective,
        start=start.to(device),
        test_inputs=data.test_inputs.to(device),
        test_labels=data.test_labels.to(device),
        validation=_validation(data, held, device),
        measures=measures,
        executor=executor,
        computing=computing,
        steps=steps,
        step_cost=step_cost,
        notes=notes,
    )


def _validation(
    data: Dataset, held: IntArray | None, device: torch.device
) -> EvaluationSamples | None:
    """The held-out samples, on the device."""
    if held is None:
        return None
    rows = torch.from_numpy(held)
    return EvaluationSamples(data.train_inputs[rows].to(device), data.train_labels[rows].to(device))


def _augmentation(config: Config, given: GivenObjects) -> Augmentation | None:
    """The given or configured changes of training samples."""
    if given.augment is not None:
        return Augmentation.of(given.augment)
    path = config.data.augment
    return None if path is None else Augmentation.find(path)


def _penalties(config: Config) -> tuple[tuple[Penalty, ...], str]:
    """Penalty terms of the clients' loss, and the algorithm or warm start to name in messages."""
    rule, warm_start = config.algorithm.rule, config.warm_start
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
