"""Seconds per round of the run-time model, compared with minutes / rounds of Table 2."""

from __future__ import annotations

import math
from functools import cache

import torch
from torch import nn

from experiments.fadamgc.methods import METHODS, SELECTIVE
from experiments.fadamgc.tables import PUBLISHED_MINUTES, PUBLISHED_ROUNDS
from wirelessfl.algorithms import find_algorithm
from wirelessfl.config import Config
from wirelessfl.models import ResNet18
from wirelessfl.models.submodels import ParamSpec
from wirelessfl.results.costs import markdown
from wirelessfl.results.price import price
from wirelessfl.results.selection import DATA, NAMES

CLIENTS, SAMPLED, STEPS = 100, 10, 60
GPU_STEP_SECONDS = 1e-3
"""Order of magnitude of a ResNet-18 step with 50 images on an A100. The paper gives no value; in
Table 2, K steps take about a hundredth of a round, where the text has a tenth to a 25th."""
RANK = 64
IMAGES = {"cifar10": (32, 10), "cifar100": (32, 100), "tinyimagenet": (64, 200)}
"""Width of the images and number of classes."""
TEXT = {"images": (10, 25), "language": (10, 30)}
"""Section 6: communication takes 10 to 25 times as long as local training for images, and local
training 10 to 30 times as long as communication for language."""
LANGUAGE = ("20newsgroups", "qnli", "qqp", "sst2")
CLASSES = {"20newsgroups": 20, "qnli": 2, "qqp": 2, "sst2": 2}


@cache
def round_seconds(
    method: str, parameters: int, tracking: int, step_seconds: float, steps: int, wait: str = "mean"
) -> float:
    """Seconds per round of ``method`` over 100 Mbit/s links, computed as in a run.

    Args:
        method: name of the algorithm.
        parameters: P, number of transmitted parameters.
        tracking: S_tilde of 10 sampled clients; used by methods that track selectively.
        step_seconds: t_grad, seconds per local step.
        steps: K, local steps.
        wait: what a round waits for if clients send different numbers of vectors, ``mean`` or
            ``slowest``.
    """
    flags = {"tracking_clients": tracking} if method in SELECTIVE else {}
    config = Config.from_flags(
        method,
        clients=CLIENTS,
        clients_per_round=SAMPLED,
        local_steps=steps,
        step_seconds=step_seconds,
        uplink="fixed",
        wait=wait,
        **flags,
    )
    return float(price(config, 1, model=_Sized(parameters), joules=False).seconds[0])


class _Sized(nn.Module):
    """A model of this many parameters."""

    def __init__(self, parameters: int) -> None:
        super().__init__()
        self.all = nn.Parameter(torch.empty(parameters))


def published_seconds(dataset: str) -> dict[str, float]:
    """Minutes / rounds of Table 2, in seconds, by method."""
    pairs = zip(PUBLISHED_MINUTES[dataset], PUBLISHED_ROUNDS[dataset], strict=True)
    return dict(zip(METHODS, (60 * minutes / rounds for minutes, rounds in pairs), strict=True))


def lora_parameters(classes: int) -> int:
    """Trained parameters of GPT-2 (12 layers of width 768): adapters of rank 64, and the head."""
    return 12 * RANK * (768 + 3 * 768) + 768 * classes


def parameters_of(dataset: str) -> int:
    """Transmitted parameters: ResNet-18, or adapters and head of GPT-2."""
    if dataset not in IMAGES:
        return lora_parameters(CLASSES[dataset])
    width, classes = IMAGES[dataset]
    return ParamSpec.of(ResNet18((3, width, width), classes)).size


def transfer_seconds(dataset: str) -> float:
    """Seconds of LocalAdam's two transfers per round."""
    return round_seconds("local-adam", parameters_of(dataset), 0, 1e-9, 1)


def quotients(dataset: str) -> tuple[float, float]:
    """Least and largest quotient of communication and local training that fit LocalAdam's row.

    Communication over local training for images, the inverse for language, as in Section 6. The
    rounds and minutes of Table 2 are rounded to 0.1. What is left of a round without the transfers
    is local training; infinite if nothing is left.
    """
    place = METHODS.index("local-adam")
    minutes, rounds = PUBLISHED_MINUTES[dataset][place], PUBLISHED_ROUNDS[dataset][place]
    transfer = transfer_seconds(dataset)
    short, long = (60 * (minutes + d) / (rounds - d) - transfer for d in (-0.05, 0.05))
    if dataset not in IMAGES:
        return short / transfer, long / transfer
    return transfer / long, transfer / short if short > 0 else math.inf


def share_table() -> str:
    """The text's quotients of communication and local training against those of Table 2."""
    rows = []
    for dataset in PUBLISHED_ROUNDS:
        image = dataset in IMAGES
        low, high = quotients(dataset)
        table = f"{low:.3g} to {high:.3g}" if math.isfinite(high) else f"{low:.3g} or more"
        what = "communication / local training"
        low, high = TEXT["images" if image else "language"]
        what = what if image else "local training / communication"
        rows.append([DATA[dataset], what, f"{low:g} to {high:g}", table])
    return markdown(["data", "quotient", "text", "Table 2 (LocalAdam)"], rows)


def missing_transfers(dataset: str) -> dict[str, float]:
    """Published seconds per round minus those of the run-time model, in transmitted models.

    Half of the sampled clients track. For language, LocalAdam's row determines the local epoch.
    """
    published, parameters = published_seconds(dataset), parameters_of(dataset)
    if dataset in IMAGES:
        step, steps = GPU_STEP_SECONDS, STEPS
    else:
        step, steps = published["local-adam"] - transfer_seconds(dataset), 1
    model = {m: round_seconds(m, parameters, SAMPLED // 2, step, steps) for m in METHODS}
    transfer = (model["local-adam"] - step * steps) / 2
    return {method: (published[method] - model[method]) / transfer for method in METHODS}


def image_table() -> str:
    """ResNet-18 with ten classes on CIFAR-10: 44.7 MB and 3.58 s per transfer."""
    parameters = ParamSpec.of(ResNet18((3, 32, 32), 10)).size
    published, rows = published_seconds("cifar10"), []
    for method in METHODS:
        mean, slowest = (
            round_seconds(method, parameters, SAMPLED // 2, GPU_STEP_SECONDS, STEPS, wait)
            for wait in ("mean", "slowest")
        )
        deviation = f"{100 * (mean / published[method] - 1):+.1f} %"
        shown = f"{mean:.2f}", f"{published[method]:.2f}", deviation, f"{slowest:.2f}"
        rows.append([NAMES[method], f"{transfers(method, SAMPLED // 2):g}", *shown])
    head = [
        "method",
        "transfers",
        "s per round",
        "published",
        "deviation",
        "s per round, slowest upload",
    ]
    return markdown(head, rows)


def transfers(method: str, tracking: int) -> float:
    """Transmitted vectors per client, downlink plus uplink, mean over the sampled clients."""
    algorithm = find_algorithm(method)()
    up = sum(
        tracking / SAMPLED if payload.senders == "tracking" and method in SELECTIVE else 1
        for payload in algorithm.payloads
    )
    return len(algorithm.sends) + up


def language_table() -> str:
    """GPT-2 with LoRA: LocalAdam's row determines the local epoch; the other rows are predicted.

    With S_tilde = S, as stated in the text, FAdamGC and FA-NT need 4 transfers; the published
    minutes agree with 3.5.
    """
    rows = []
    for dataset in LANGUAGE:
        parameters, published = parameters_of(dataset), published_seconds(dataset)
        epoch = published["local-adam"] - transfer_seconds(dataset)
        for method in METHODS:
            half, whole = (
                round_seconds(method, parameters, tracking, epoch, 1)
                for tracking in (SAMPLED // 2, SAMPLED)
            )
            shown = f"{half:.2f}" if method in SELECTIVE else "-"
            printed = f"{published[method]:.2f}"
            rows.append([dataset, NAMES[method], printed, f"{whole:.2f}", shown])
    head = ["data", "method", "published s per round", "S_tilde = S (4)", "S_tilde = S/2 (3.5)"]
    return markdown(head, rows)
