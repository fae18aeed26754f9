"""Algorithms and warm starts of the dynamic-clients paper, with their settings (App. D.1).

Step sizes are those of the published code. In that code SCAFFOLD's control variates have no
effect; here SCAFFOLD is implemented as published by Karimireddy et al., with the same step
size.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from experiments.studies import Settings

ALGORITHMS = ("fedavg", "fedprox", "scaffold", "fedacg", "moon")
SHOWN = {
    "proposed": "Proposed",
    "continuous": "Continuous",
    "previous": "Previous",
    "average": "Average",
    "random-pilot": "Random pilot",
    "fresh": "Fresh",
}
WITH_TRIALS = ("proposed", "random-pilot")
"""Warm starts that train V trial rounds to compare the new session with past ones."""


class Rate(NamedTuple):
    """Step size in a session, which decreases from ``lr`` to ``ratio`` times ``lr``."""

    lr: float
    ratio: float


class Training(NamedTuple):
    """Rounds per session, and step sizes by algorithm, for a data set."""

    rounds: int
    others: Rate
    moon: Rate
    scaffold: Rate


MNIST, FASHION = Rate(0.001, 0.6), Rate(0.003, 0.3)
TRAINING = {
    "mnist": Training(50, MNIST, MNIST, Rate(0.03, 0.9)),
    "fashion-mnist": Training(50, FASHION, FASHION, Rate(0.03, 0.9)),
    "cifar10": Training(150, Rate(0.05, 0.5), Rate(0.05, 0.5), Rate(0.3, 0.9)),
    "cifar100": Training(150, Rate(0.1, 0.5), Rate(0.1, 0.5), Rate(0.4, 0.9)),
    "svhn": Training(200, Rate(0.005, 0.2), Rate(0.01, 0.2), Rate(0.1, 0.9)),
    "ag-news": Training(100, Rate(0.005, 0.2), Rate(0.005, 0.2), Rate(0.05, 0.2)),
    "tinyimagenet": Training(200, Rate(0.2, 0.5), Rate(0.2, 0.5), Rate(0.5, 0.9)),
    # Not from the paper: for sessions of a few rounds.
    "digits": Training(2, Rate(0.1, 0.5), Rate(0.1, 0.5), Rate(0.1, 0.5)),
}
LENET5 = {"scaffold": Rate(0.01, 0.5), "fedacg": Rate(0.02, 0.5)}
LENET5_OTHERS = Rate(0.1, 0.5)
"""Not from the paper: at the published rates of the linear model, LeNet-5 learns little in short
sessions. With momentum 0.9 and rate 0.05, SCAFFOLD learns nothing, and FedACG little."""


def per_session(settings: Settings) -> int:
    """Clients per session, if two groups take turns, or three groups with unseen labels."""
    groups = 3 if settings.get("unseen_labels") else 2
    return int(settings["clients"]) // groups


def of_algorithm(settings: Settings) -> Settings:
    """The published settings of an algorithm; those of FedACG depend on the number of clients."""
    match settings["algorithm"]:
        case "fedprox":
            return {"mu": 1.0}
        case "moon":
            return {"mu": 1.0, "tau": 1.0}
        case "fedacg":
            many = per_session(settings) >= 100
            return {"acceleration": 0.5 if many else 0.85, "beta": 0.1 if many else 0.01}
    return {}


def of_warm_start(settings: Settings) -> Settings:
    """The published settings of a warm start."""
    text = settings["dataset"] == "ag-news"
    scale, weight = (800.0, 0.5) if text else (10.0, 1.0)
    pilot = {"pilot_sessions": 1}
    if settings["warm_start"] in WITH_TRIALS:
        return pilot | {"trial_rounds": 1, "similarity": "two_norm", "similarity_scale": scale}
    if settings["warm_start"] == "average":
        return pilot
    if settings["warm_start"] == "continuous":
        return {"distillation": "csrd", "kl_weight": weight}
    return {}


def complete(settings: Settings, scale: str) -> dict[str, Any]:
    """Add the settings that depend on data set, model, algorithm and warm start."""
    settings = dict(settings)
    training = TRAINING[settings["dataset"]]
    if settings["algorithm"] == "moon" and settings["model"] == "linear":
        # MOON compares hidden representations, which a linear model does not have.
        settings["model"] = "mlp"
    rates = {"moon": training.moon, "scaffold": training.scaffold}
    rate = rates.get(settings["algorithm"], training.others)
    if settings["model"] == "lenet5":
        rate = LENET5.get(settings["algorithm"], LENET5_OTHERS)
    if settings["split"] != "dirichlet":
        settings.pop("alpha", None)
    if not settings.get("overlap"):
        settings.pop("shared_labels", None)
    if settings.get("eval_every") == 1:
        settings.pop("eval_first", None)
    chosen = {"rounds": training.rounds, "lr": rate.lr, "lr_ratio": rate.ratio}
    return chosen | of_algorithm(settings) | of_warm_start(settings) | settings
