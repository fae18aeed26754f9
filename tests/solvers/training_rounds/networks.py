"""Small random networks for ``optimize_rounds``, and costs by functions for single rounds."""

import itertools
from dataclasses import fields

import numpy as np

from solvers import (
    TrainingProblem,
    allocate_bandwidth,
    allocate_energy,
    evaluate_rounds,
    optimize_rounds,
)

KAPPA = 1e-28


def drawn(seed, draws=2, cells=2, clients=2, spread=1.0):
    """Arguments of ``TrainingProblem`` from ``bits_per_unit`` to ``bandwidth_hz``."""
    random = np.random.default_rng(seed)
    mean = 10 ** random.uniform(7.5 - spread, 7.5 + spread, (1, cells, clients))
    return {
        "bits_per_unit": 10 ** random.uniform(4.5, 5.5, (cells, clients)),
        "cycles_per_unit": 10 ** random.uniform(6.0, 7.0, (cells, clients)),
        "gain_per_noise": mean * random.exponential(1.0, (draws, cells, clients)) + 1e6,
        "max_power_watts": random.uniform(0.05, 0.2, (cells, clients)),
        "max_cpu_hz": random.uniform(5e8, 2e9, (cells, clients)),
        "kappa": KAPPA,
        "bandwidth_hz": random.uniform(5e5, 2e6, cells),
    }


def problem_of(**arguments):
    """The problem in some arguments, and the other arguments."""
    names = {f.name for f in fields(TrainingProblem)} & arguments.keys()
    problem = TrainingProblem(**{name: arguments.pop(name) for name in names})
    return problem, arguments


def solved(rounds, **arguments):
    """``optimize_rounds`` with arguments of the problem and its own."""
    problem, others = problem_of(**arguments)
    return optimize_rounds(problem, rounds, **others)


def evaluated(design, **arguments):
    """``evaluate_rounds`` with arguments of the problem and its own."""
    problem, others = problem_of(total=None, **arguments)
    return evaluate_rounds(design, problem, **others)


def rounds(local, edge, largest=None):
    """A posynomial with its minimum inside the grid."""
    h, e = np.meshgrid(local, edge, indexing="ij")
    found = 60 / (h * e) + 10 + 2.0 * h + 3.0 * e
    if largest is None:
        return found
    return found + 4.0 * np.asarray(largest)[:, None, None]


def loads(network, sizes, local, offsets=(0.0, 0.0)):
    """Bits and cycles of a local phase, [cells, clients] each."""
    sizes = np.asarray(sizes)[:, None]
    bits = offsets[0] + sizes * network["bits_per_unit"]
    return bits, local * (offsets[1] + sizes * network["cycles_per_unit"])


def least_seconds(network, sizes, local, offsets=(0.0, 0.0)):
    """Least seconds of a local phase, [draws, cells]."""
    bits, cycles = loads(network, sizes, local, offsets)
    snr = network["max_power_watts"] * network["gain_per_noise"]
    return allocate_bandwidth(
        bits, cycles / network["max_cpu_hz"], snr, network["bandwidth_hz"]
    ).objective


def least_joules(network, sizes, local, ends, offsets=(0.0, 0.0)):
    """Joules of all cells [..., draws] within ``ends`` [..., draws, cells]."""
    bits, cycles = loads(network, sizes, local, offsets)
    limits = {k: network[k] for k in ("max_power_watts", "max_cpu_hz", "kappa")}
    gain, band = network["gain_per_noise"], network["bandwidth_hz"]
    found = allocate_energy(bits, cycles, gain, band, deadline_seconds=ends, **limits)
    return found.objective.sum(-1)


def besides(others, sizes, edge):
    """Seconds of a global round besides its local phases: of exchanges, and of E downloads.

    Args:
        others: ``extra_seconds``, ``start_seconds`` and those per unit, [draws, cells].
    """
    extra, start = (
        np.asarray(others.get(f"{name}_seconds", 0.0))
        + np.asarray(sizes) * np.asarray(others.get(f"{name}_seconds_per_unit", 0.0))
        for name in ("extra", "start")
    )
    return extra + edge * start


def splits(total, cells, cap=None):
    """All sizes with a sum."""
    most = total if cap is None else cap
    for sizes in itertools.product(range(min(most, total) + 1), repeat=cells):
        if sum(sizes) == total:
            yield sizes


def best_weighted(network, sizes, local, edge, extra, weights, latest=np.inf, points=14):
    """Least mean of w_T seconds + w_E joules of a global round, by a search over the ends.

    Args:
        extra: [draws, cells].
        latest: end of the round.
    """
    soonest = (edge * least_seconds(network, sizes, local) + extra).max(-1)
    if (soonest > latest).any():
        return np.inf
    low, high = soonest, np.minimum(200 * soonest, latest)
    for _ in range(6):
        ends = low * (high / low) ** np.linspace(0, 1, points)[:, None]  # [points, draws]
        phases = (ends[..., None] - extra) / edge
        least = np.maximum(least_seconds(network, sizes, local) * (1 + 1e-15), 1e-9)
        phases = np.maximum(phases, least)
        cost = weights[0] * ends + weights[1] * edge * least_joules(network, sizes, local, phases)
        at, each = cost.argmin(0), np.arange(cost.shape[1])
        low = ends[np.maximum(at - 1, 0), each]
        high = ends[np.minimum(at + 1, points - 1), each]
    return cost.min(0).mean()
