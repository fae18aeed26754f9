"""The compared methods, their step sizes, and the labels of their cases."""

from __future__ import annotations

import tomllib
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

from experiments.studies import Case, Settings
from wirelessfl.base.errors import ConfigError
from wirelessfl.results import selection
from wirelessfl.results.selection import MODELS, NAMES

SETTINGS = Path(__file__).with_name("settings")
REFERENCE = "fedavg"
"""The method in which all clients train the full model, regardless of their capacity."""
OTHERS = ("fedavg-small", "heterofl", "fedrolex")
OURS = ("ra-fed", "ram-fed")
METHODS = (*OTHERS, *OURS)
TARGETS = {"cifar10": 0.5, "digits": 0.3, "fashion-mnist": 0.75, "mnist": 0.93}
OF_SPLITS = {"dirichlet": "alpha", "noniid": "shards"}
"""The setting that belongs to a split."""
MIXED = "mixed"
DATA = {**selection.DATA, "experiments.ra_fed.words:newsgroups": "20 Newsgroups (words)"}
"""Names of the data sets."""


def complete(settings: Settings, scale: str) -> dict[str, Any]:
    """Settings of a case with its step size and its Gamma*, without settings that do not apply.

    With masks ``covered`` and capacities, min_coverage is the guaranteed coverage S beta.
    """
    settings = dict(settings)
    for split, setting in OF_SPLITS.items():
        if settings["split"] != split:
            settings.pop(setting, None)
    if "capacities" in settings:
        settings["capacities"] = tuple(settings["capacities"])
        if settings.get("masks") == "covered":
            (beta,) = settings["capacities"]
            settings["min_coverage"] = int(settings["clients_per_round"] * beta + 1e-9)
    return {"lr": rate(settings, scale)} | settings


def rate(settings: Settings, scale: str) -> float:
    """The step size of a method, from ``settings/rates.toml``."""
    rates = _rates()[scale]
    by_method = rates.get("any", {}) | rates.get(settings["model"], {})
    if len(settings.get("capacities", ())) > 1:
        mixed = f"{settings['algorithm']} {MIXED}"
        if mixed in by_method:
            by_method = {settings["algorithm"]: by_method[mixed]}
    if settings["algorithm"] not in by_method:
        raise ConfigError(
            f"settings/rates.toml has no step size of {settings['algorithm']!r} for model "
            f"{settings['model']!r} at scale {scale!r}: add one."
        )
    return float(by_method[settings["algorithm"]])


@cache
def _rates() -> dict[str, Any]:
    return tomllib.loads((SETTINGS / "rates.toml").read_text(encoding="utf-8"))


def share(case: Case) -> str:
    """Label of the clients' capacity: a width, mixed widths, a share of parameters or a budget."""
    capacities = case["capacities"]
    if capacities is None:
        return "full" if case["budget"] is None else case["budget"]
    if len(capacities) > 1:
        return MIXED
    (capacity,) = capacities
    if case["budget"] == "bytes":
        return f"{100 * capacity:g} % of parameters"
    near = Fraction(capacity).limit_denominator(16)
    return str(near) if abs(near - capacity) < 1e-9 and near.numerator == 1 else f"{capacity:g}"


def name_of(case: Case) -> str:
    """Name of the method, with the budget that determines its widths, if any."""
    name = NAMES[case["algorithm"]]
    if case["budget"] == "deadline":
        return f"{name}, deadline {case['deadline']:g} s"
    if case["budget"] == "fastest":
        return f"{name}, fastest, Γ* = {case['min_coverage']}"
    if case["budget"] == "bytes":
        return f"{name}, {share(case)}"
    return name


def dealt(case: Case) -> str:
    """Name of the label distribution."""
    if case["split"] == "dirichlet":
        return f"Dir({case['alpha']:g})"
    return f"{case['shards']} shards" if case["split"] == "noniid" else str(case["split"])


def setting_of(case: Case) -> str:
    """Names of data set, split and model."""
    return f"{DATA[case['dataset']]}, {dealt(case)}, {MODELS.get(case['model'], case['model'])}"


def case_order(case: Case) -> tuple[int, float]:
    """Sort key: widths in increasing order, mixed widths, other budgets."""
    kind = 2 if case["budget"] is not None else int(len(case["capacities"]) > 1)
    return kind, max(case["capacities"])
