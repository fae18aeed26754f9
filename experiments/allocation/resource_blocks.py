"""Resource blocks for clients whose packets can be lost: the best assignment against random ones.

M. Chen et al., "A Joint Learning and Communications Framework for Federated Learning Over Wireless
Networks", IEEE TWC 20(1) (2021), arXiv:1909.07972, with the numbers of its published simulation
(github.com/mzchen0/Wireless-FL): 15 clients at up to 500 m, of which each uses one block or none.
A packet of client i in block n is lost with probability 1 - exp(-m (I_n + N) d_i^2 / P).
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from channels.arrays import FloatArray, IntArray
from channels.streams import Stream
from experiments import records
from solvers import assign_resource_blocks
from wirelessfl.data import Dataset
from wirelessfl.results.costs import markdown, spread

FILE = Path(__file__).with_name("resource_blocks.json")
"""Accuracies on MNIST, in the repository."""
SEEDS, ROUNDS, HIDDEN = 10, 130, 50
STEP_SIZE = 0.03
"""Of the gradient steps. The simulation has a line search; 0.1 gives 3 points more accuracy."""
SAMPLES = np.array([100, 200, 300, 400, 500, 400, 300, 200, 100, 200, 300, 400, 500, 600, 100])
"""Training samples of each client."""
INTERFERENCE = {
    3: [1, 6, 10],
    6: [1, 3, 5, 7, 9, 11],
    9: [0, 2, 3, 4, 6, 7, 8, 10, 11],
    12: [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11],
}
"""I_n in units of 1e-8 W by number of blocks; the simulation has -1 for the first of 9 and 12."""
POWER_WATTS, NOISE_WATTS, LOSS_FACTOR = 0.01, 1e-14, 1.08
DOWNLINK_INTERFERENCE, DOWNLINK_POWER = 1.8e-7, 1.0
MEGABITS = 39760 * 16 / 2**20
"""Size of a model, as in the simulation; the uplink has 1 MHz and the downlink 20 MHz."""
MAX_SECONDS, MAX_JOULES, CPU_JOULES = 0.5, 0.003, 1e-27 * 40 * 1e18 * MEGABITS


class Blocks(NamedTuple):
    """Final accuracies with a rule.

    Args:
        blocks: number of resource blocks.
        rule: how clients get blocks.
        accuracy: of each seed, in [0, 1].
    """

    blocks: int
    rule: str
    accuracy: list[float]


def received(blocks: int, dice: np.random.Generator) -> FloatArray:
    """Probability [clients, blocks] that an update arrives; 0 if it would be late or too dear."""
    metres = 500 * dice.random((len(SAMPLES), 1))
    noise = np.array(INTERFERENCE[blocks]) * 1e-8 + NOISE_WATTS
    up = MEGABITS / np.log2(1 + POWER_WATTS / metres**2 / noise)
    down = MEGABITS / (20 * np.log2(1 + DOWNLINK_POWER / metres**2 / DOWNLINK_INTERFERENCE))
    able = (up + down < MAX_SECONDS) & (CPU_JOULES + POWER_WATTS * up < MAX_JOULES)
    return np.where(able, np.exp(-LOSS_FACTOR * noise * metres**2 / POWER_WATTS), 0.0)


def assigned(arrives: FloatArray, dice: np.random.Generator) -> FloatArray:
    """The most expected samples, sum_i K_i x probability; of each client, [clients]."""
    return _placed(arrives, *_best(arrives, SAMPLES))


def fewest_losses(arrives: FloatArray, dice: np.random.Generator) -> FloatArray:
    """The most expected updates, whatever their samples."""
    return _placed(arrives, *_best(arrives, 1))


def best_clients(arrives: FloatArray, dice: np.random.Generator) -> FloatArray:
    """The clients of ``assigned``, with random blocks."""
    clients, blocks = _best(arrives, SAMPLES)
    return _placed(arrives, clients, dice.permutation(blocks))


def random_clients(arrives: FloatArray, dice: np.random.Generator) -> FloatArray:
    """Random clients with random blocks."""
    clients, blocks = arrives.shape
    return _placed(arrives, dice.permutation(clients)[:blocks], np.arange(blocks))


def _best(arrives: FloatArray, weights: ArrayLike) -> tuple[IntArray, IntArray]:
    """Clients and their blocks with the most expected samples, or with weights 1 updates.

    All blocks are in use, as in the simulation, also those in which no update arrives.
    """
    solution = assign_resource_blocks(1 - arrives, weights=weights, count=arrives.shape[1])
    clients = np.flatnonzero(solution.value.block >= 0)
    return clients, solution.value.block[clients]


def _placed(arrives: FloatArray, clients: IntArray, blocks: IntArray) -> FloatArray:
    probabilities = np.zeros(len(arrives))
    probabilities[clients] = arrives[clients, blocks]
    return probabilities


RULES: dict[str, Callable[[FloatArray, np.random.Generator], FloatArray]] = {
    "best assignment": assigned,
    "fewest losses": fewest_losses,
    "its clients, random blocks": best_clients,
    "random": random_clients,
}


def accuracy(arrives: FloatArray, data: Dataset, stream: Stream, rounds: int = ROUNDS) -> float:
    """Test accuracy after full-batch FedAvg steps on the updates that arrive.

    One local step makes the mean over clients, by samples, a step on all samples that arrive.
    """
    start = np.append(0, SAMPLES.cumsum())
    inputs, labels = data.train_inputs, data.train_labels
    parts = [(inputs[a:b].flatten(1), labels[a:b]) for a, b in pairwise(start)]
    normal = torch.Generator().manual_seed(stream.child("model").key())
    sizes = parts[0][0].shape[1], HIDDEN, data.classes
    layers: list[Tensor] = []
    for wide, out in pairwise(sizes):
        weight = torch.randn(wide, out, generator=normal) / wide**0.5
        layers += [weight.requires_grad_(), torch.zeros(out, requires_grad=True)]

    def logits(x: Tensor) -> Tensor:
        return torch.tanh(x @ layers[0] + layers[1]) @ layers[2] + layers[3]

    dice = stream.child("packets").generator()
    for _ in range(rounds):
        arrived = np.flatnonzero(dice.random(len(arrives)) < arrives)
        if not arrived.size:
            continue
        x, y = (torch.cat(some) for some in zip(*(parts[i] for i in arrived), strict=True))
        slopes = torch.autograd.grad(torch.nn.functional.cross_entropy(logits(x), y), layers)
        with torch.no_grad():
            for layer, slope in zip(layers, slopes, strict=True):
                layer -= STEP_SIZE * slope
    with torch.no_grad():
        right = logits(data.test_inputs.flatten(1)).argmax(1) == data.test_labels
    return float(right.float().mean())


def measure(data: Dataset, seeds: int = SEEDS, rounds: int = ROUNDS) -> list[Blocks]:
    """Accuracies of all rules and numbers of blocks; seeds have the same places and models."""
    measured = []
    for blocks in INTERFERENCE:
        for rule, place in RULES.items():
            values = []
            for seed in range(seeds):
                stream = Stream(seed, ("resource blocks", blocks))
                dice = stream.child("places").generator()
                arrives = place(received(blocks, dice), dice)
                values.append(accuracy(arrives, data, stream, rounds))
            measured.append(Blocks(blocks, rule, values))
    return measured


def table(measured: list[Blocks]) -> str:
    """One row per rule: mean and standard deviation of the accuracies in percent."""
    rows = []
    for rule in RULES:
        of_rule = [one for one in measured if one.rule == rule]
        rows.append([rule, *(spread([100 * x for x in one.accuracy]) for one in of_rule)])
    return markdown(["rule", *(f"{blocks} blocks" for blocks in INTERFERENCE)], rows)


def load(file: Path = FILE) -> list[Blocks]:
    """Read the accuracies."""
    return records.load(Blocks, file)
