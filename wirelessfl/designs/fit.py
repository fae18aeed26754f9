"""Fit learning curves to pilots: choose the form by prediction, and resample the pilots."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np

from channels.arrays import FloatArray
from channels.streams import Stream
from wirelessfl.base.errors import ConfigError
from wirelessfl.base.wording import shown, suggestion
from wirelessfl.designs.curve import Fitted, RoundsCurve
from wirelessfl.designs.forms import DIMINISHING, THEOREM, fit_each, fit_power, fit_scaled
from wirelessfl.designs.observed import Observed, Pilot, PilotRun

Form = Literal["auto", "posynomial", "diminishing", "power"]
Fit = Callable[[Observed, Any], Fitted]

FITS: Mapping[str, Fit] = {
    "posynomial": partial(fit_each, THEOREM),
    "posynomial, scaled": partial(fit_scaled, THEOREM),
    "diminishing": partial(fit_each, DIMINISHING),
    "diminishing, scaled": partial(fit_scaled, DIMINISHING),
    "power": fit_power,
}
"""The forms. ``scaled``: targets differ by a factor, otherwise by all coefficients."""
LEAST = 3
"""Fewest settings of pilots."""
REACHING = 2
"""Fewest pilots in which the rounds to a target are known."""
DEFAULT_TARGETS = 6
ATTEMPTS = 100


def fit_rounds(
    runs: Iterable[PilotRun | Pilot],
    targets: Sequence[float] | None = None,
    *,
    form: Form = "auto",
    bootstrap: int = 200,
    seed: int = 1,
) -> RoundsCurve:
    """Global rounds to a validation accuracy, as a function of the settings, from pilot runs.

    Three forms are fitted, and the one that predicts left-out pilots best is chosen:

    - ``posynomial``: a0/(H E) + a1 + a2 H + a3 E + a4/K + a5 sigma^2 + a6 m + a7 H/K, the shape of
      the bounds of convergence, all a >= 0;
    - ``diminishing``: a posynomial of H^-a E^-b for a and b of 0, 1/2 and 1, alone and times 1/K, m
      and sigma^2;
    - ``power``: the accuracy is a - b (x + d)^-c, x = R H^p1 E^p2 K^p3 m^p4 (1 + sigma^2)^p5.

    The posynomials minimise squares of relative errors of rounds, with own coefficients for every
    target or ("scaled") one shape times a scale per target. A pilot that ends before a target is a
    lower bound, and one that reaches it before its first evaluation an upper bound: both count on
    one side only. The power law is fitted to all rows of all pilots.

    Rounds are those at which the best validation accuracy so far reaches the target, linear between
    two evaluations; a run itself reaches it at its next evaluation. Test data are not read.

    >>> import wirelessfl
    >>> rounds = range(1, 100)
    >>> runs = [
    ...     wirelessfl.Pilot(h, e, 20, rounds, [1 - 1 / (1 + r * (h * e) ** 0.5) for r in rounds])
    ...     for h in (1, 4)
    ...     for e in (1, 4)
    ... ]
    >>> curve = wirelessfl.fit_rounds(runs, [0.8, 0.9], bootstrap=0)
    >>> float(curve.rounds(0.9, local_steps=1, edge_rounds=1).round(1))
    9.0

    Args:
        runs: at least three pilots with different settings: runs (``wirelessfl.RunResult``) with
            validation data, or ``Pilot``.
        targets: validation accuracies in (0, 1); None for six up to the best accuracy that three
            quarters of the pilots reach.
        form: one of the forms; "auto" for the one with the least error.
        bootstrap: number of resampled fits behind ``interval``, >= 0.
        seed: seed of the resampling.

    Returns:
        The curve, with the errors of all forms.

    Raises:
        ConfigError: a run has no validation accuracy, there are too few pilots, or too few of them
            reach a target.
    """
    if form not in get_args(Form):
        raise ConfigError(
            f"form is {shown(form)}.{suggestion(form, get_args(Form))} Choose "
            f"{', '.join(get_args(Form))}."
        )
    for name, value in (("bootstrap", bootstrap), ("seed", seed)):
        whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
        if not whole or (name == "bootstrap" and value < 0):
            raise ConfigError(
                f"{name} is {shown(value)}: give a whole number{' >= 0' * (name != 'seed')}."
            )
    pilots = _pilots(runs)
    observed = Observed.of(pilots, _targets(pilots, targets))
    _check_targets(pilots, observed)
    left_out = {name: _left_out(fit, observed) for name, fit in FITS.items()}
    errors = {name: observed.mean_error(predictions) for name, predictions in left_out.items()}
    among = [name for name in FITS if form in ("auto", name.partition(",")[0])]
    chosen = min(among, key=lambda name: errors[name])
    fitted = FITS[chosen](observed, None)
    residuals = observed.error(left_out[chosen])[observed.exact]
    replicates, drawn = _resampled(FITS[chosen], fitted, observed, residuals, bootstrap, seed)
    return RoundsCurve(
        form=chosen,
        errors=errors,
        fitted=fitted,
        observed=observed,
        runs=tuple(pilots),
        left_out=left_out[chosen],
        replicates=replicates,
        residuals=drawn,
    )


def _pilots(runs: Iterable[PilotRun | Pilot]) -> list[Pilot]:
    """The runs as pilots."""
    if isinstance(runs, str | Path):
        raise ConfigError(
            f"runs is {shown(runs)}: give runs, such as wirelessfl.load_all({str(runs)!r})."
        )
    candidates = list(runs) if isinstance(runs, Iterable) else [runs]
    pilots = []
    for i, run in enumerate(candidates):
        if not isinstance(run, Pilot) and not (hasattr(run, "rows") and hasattr(run, "settings")):
            raise ConfigError(f"runs[{i}] is {shown(run)}: give a run or a wirelessfl.Pilot.")
        pilots.append(run if isinstance(run, Pilot) else Pilot.of(run))
    settings = {pilot.settings for pilot in pilots}
    if len(settings) < LEAST:
        raise ConfigError(
            f"runs has {len(settings)} different settings of H, E, K, masks and noise: give pilots "
            f"with at least {LEAST}, better 6 to 10."
        )
    for i, pilot in enumerate(pilots):
        if not (pilot.rounds > 0).any():
            raise ConfigError(f"runs[{i}] has no evaluation after a round: leave it out.")
    return pilots


def spread_targets(low: float, high: float) -> FloatArray:
    """Targets above ``low`` up to ``high``, [targets], in increasing order.

    They have equal steps in log(1 - accuracy): each costs about as many rounds as all before it.
    """
    return np.asarray(1 - np.geomspace(1 - low, 1 - high, DEFAULT_TARGETS + 1)[1:])


def _targets(pilots: Sequence[Pilot], targets: Sequence[float] | None) -> FloatArray:
    """The targets in increasing order, chosen from the pilots if there are none."""
    if targets is None:
        low = float(np.median([pilot.best[pilot.rounds > 0][0] for pilot in pilots]))
        high = float(np.quantile([pilot.best[-1] for pilot in pilots], 0.25, method="lower"))
        if not low < high < 1:
            low, high = low - 0.5 * (low - pilots[0].best[0]), min(high, 0.999)
        return spread_targets(low, high)
    try:
        values = np.unique(np.array([float(t) for t in np.atleast_1d(targets)]))
    except (TypeError, ValueError):
        values = np.array([])
    if not values.size or not ((values > 0) & (values < 1)).all():
        raise ConfigError(
            f"targets is {shown(targets)}: give validation accuracies between 0 and 1, such as "
            "[0.7, 0.8]."
        )
    return values


def _check_targets(pilots: Sequence[Pilot], observed: Observed) -> None:
    """Refuse targets at which too few pilots say how many rounds they need."""
    for t, target in enumerate(observed.targets):
        count = int(observed.exact[:, t].sum())
        if count >= REACHING:
            continue
        if observed.censored[:, t].sum() >= observed.early[:, t].sum():
            best = sorted(float(pilot.best[-1]) for pilot in pilots)[-REACHING]
            raise ConfigError(
                f"target {target:g} is reached by {count} of {len(pilots)} pilots: train them for "
                f"more rounds, or give a target of at most {best:.3g}."
            )
        raise ConfigError(
            f"target {target:g} is reached before the first evaluation by all but {count} of "
            f"{len(pilots)} pilots: give a higher target, or train them with a smaller "
            "--eval-every."
        )


def _left_out(fit: Fit, observed: Observed) -> FloatArray:
    """Rounds of each pilot as predicted from the pilots with other settings, [pilots, targets]."""
    predictions = np.empty(observed.rounds.shape)
    groups = observed.groups
    for group in range(groups.max() + 1):
        out = groups == group
        fitted = fit(observed.take(np.flatnonzero(~out)), None)
        points = observed.points[out]
        predictions[out] = np.stack([fitted.rounds(t, points) for t in observed.targets], axis=-1)
    return predictions


def _resampled(
    fit: Fit,
    fitted: Fitted,
    observed: Observed,
    residuals: FloatArray,
    count: int,
    seed: int,
) -> tuple[tuple[Fitted, ...], FloatArray]:
    """Fits to pilots drawn with replacement, and a drawn residual for each.

    Pilots are drawn by settings. Draws in which a setting no longer varies are drawn again.
    """
    groups = observed.groups
    members = [np.flatnonzero(groups == group) for group in range(groups.max() + 1)]
    fits, drawn = [], []
    for i in range(count):
        generator = Stream(seed, ("design", "bootstrap")).generator(i)
        for _ in range(ATTEMPTS):
            chosen = generator.integers(len(members), size=len(members))
            sample = observed.take(np.concatenate([members[j] for j in chosen]))
            if (sample.varies == observed.varies).all() and len(set(chosen)) >= LEAST:
                break
        else:
            sample = observed
        fits.append(fit(sample, fitted))
        drawn.append(generator.choice(residuals))
    return tuple(fits), np.array(drawn)
