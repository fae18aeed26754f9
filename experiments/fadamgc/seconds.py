"""Seconds a round by the run-time model, beside the published minutes over rounds of Table 2."""

from __future__ import annotations

import numpy as np

from channels import Network
from channels.streams import Stream
from experiments.fadamgc.methods import METHODS, SELECTIVE
from experiments.fadamgc.tables import PUBLISHED_MINUTES, PUBLISHED_ROUNDS
from experiments.report import markdown
from experiments.studies import NAMES
from wirelessfl.algorithms import find_algorithm
from wirelessfl.errors import ConfigError
from wirelessfl.models import ResNet18
from wirelessfl.rounds.costs import Links
from wirelessfl.rounds.plan import Participation, Planner, WholeModel
from wirelessfl.rounds.settings import TrainingSettings
from wirelessfl.submodels import NeuronMap, ParamSpec, Partition
from wirelessfl.uplinks.fixed import Fixed

CLIENTS, SAMPLED, STEPS = 100, 10, 60
GPU_STEP_SECONDS = 1e-3
"""A step of ResNet-18 and 50 images on an A100, by order of magnitude; the paper gives none, and K
of them are a hundredth of a round."""
RANK = 64
LANGUAGE = ("20newsgroups", "qnli", "qqp", "sst2")
CLASSES = {"20newsgroups": 20, "qnli": 2, "qqp": 2, "sst2": 2}


def round_seconds(
    method: str, parameters: int, tracking: int, step_seconds: float, steps: int, wait: str = "mean"
) -> float:
    """Seconds a round of ``method`` over 100 Mbit/s links, as a run counts them.

    Args:
        method: its name.
        parameters: P, what is sent of the model.
        tracking: S_tilde, of 10 sampled clients; counts for the methods that track selectively.
        step_seconds: t_grad.
        steps: K.
        wait: of unequal uploads, ``mean`` or ``slowest``.
    """
    algorithm = find_algorithm(method)()
    uplink = Fixed(wait=wait)  # type: ignore[arg-type]
    network = Network(
        np.zeros(CLIENTS, dtype=np.int64),
        cpu_hz=1e9,
        snr_db=20.0,
        antennas=1,
        cycles_per_step=1e9 * step_seconds,
    )
    planner = Planner(
        algorithm,
        Links(network, uplink, downlink_bps=uplink.downlink_bps),
        WholeModel(ParamSpec({"all": (parameters,)}), _no_parts, _no_neurons),
        TrainingSettings(steps, edge_rounds=1),
        Stream(1),
        Participation(SAMPLED, tracking if method in SELECTIVE else None),
    )
    return float(planner.plan(0).cost.seconds.max())


def _no_parts(scheme: str) -> Partition:
    raise ConfigError(f"partition is {scheme!r}: the run-time model is one of whole models.")


def _no_neurons() -> NeuronMap:
    raise ConfigError("the run-time model is one of whole models")


def published_seconds(dataset: str) -> dict[str, float]:
    """Minutes over rounds of Table 2, in seconds, by method."""
    pairs = zip(PUBLISHED_MINUTES[dataset], PUBLISHED_ROUNDS[dataset], strict=True)
    return dict(zip(METHODS, (60 * minutes / rounds for minutes, rounds in pairs), strict=True))


def lora_parameters(classes: int) -> int:
    """What GPT-2 (12 layers of 768) sends: adapters of rank 64 on its attention, and the head."""
    return 12 * RANK * (768 + 3 * 768) + 768 * classes


def image_table() -> str:
    """ResNet-18 with ten classes on CIFAR-10: 44.7 MB a transfer of 3.58 s."""
    parameters = ParamSpec.of(ResNet18((3, 32, 32), 10)).size
    published, rows = published_seconds("cifar10"), []
    for method in METHODS:
        mean, slowest = (
            round_seconds(method, parameters, SAMPLED // 2, GPU_STEP_SECONDS, STEPS, wait)
            for wait in ("mean", "slowest")
        )
        off = f"{100 * (mean / published[method] - 1):+.1f} %"
        shown = f"{mean:.2f}", f"{published[method]:.2f}", off, f"{slowest:.2f}"
        rows.append([NAMES[method], f"{transfers(method, SAMPLED // 2):g}", *shown])
    head = ["method", "transfers", "s a round", "published", "ours is", "waiting for the slowest"]
    return markdown(head, rows)


def transfers(method: str, tracking: int) -> float:
    """Vectors down and up, on average over the sampled clients."""
    algorithm = find_algorithm(method)()
    up = sum(
        tracking / SAMPLED if payload.senders == "tracking" and method in SELECTIVE else 1
        for payload in algorithm.payloads
    )
    return len(algorithm.sends) + up


def language_table() -> str:
    """LoRA-adapted GPT-2: the local epoch as LocalAdam's row implies it, the rest predicted.

    With S_tilde = S, as the text says, FAdamGC and FA-NT make 4 transfers; the published minutes
    fit 3.5.
    """
    rows = []
    for dataset in LANGUAGE:
        parameters, published = lora_parameters(CLASSES[dataset]), published_seconds(dataset)
        epoch = published["local-adam"] - round_seconds("local-adam", parameters, 0, 1e-9, 1)
        for method in METHODS:
            half, whole = (
                round_seconds(method, parameters, tracking, epoch, 1)
                for tracking in (SAMPLED // 2, SAMPLED)
            )
            shown = f"{half:.2f}" if method in SELECTIVE else "-"
            said = f"{published[method]:.2f}"
            rows.append([dataset, NAMES[method], said, f"{whole:.2f}", shown])
    head = ["data", "method", "published s a round", "S_tilde = S (4)", "S_tilde = S/2 (3.5)"]
    return markdown(head, rows)
