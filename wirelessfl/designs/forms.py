"""Forms of learning curves: posynomials of rounds, and power laws of accuracies."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import least_squares, nnls
from scipy.special import expit

from channels.arrays import BoolArray, FloatArray
from wirelessfl.designs.observed import Observed

STARTS = (0.3, 0.9), (1.0, 0.5)
"""Starts of the search: c, and the exponents of H and E."""
STEEPEST = 5.0
"""Largest logarithm of what an accuracy lacks; it keeps the search from overflowing."""
EVALUATIONS = 100
"""Largest number of evaluations of the residuals in a search."""
PRIOR = 1e-3
"""Weight of a parameter's distance from its start, which settles what rows do not determine."""
SCALE = 0.01
"""Accuracy that counts as a residual of 1."""


@dataclass(frozen=True, eq=False)
class PowerLaw:
    """Accuracy a - b (x + d)^-c after R rounds, x = R H^p1 E^p2 K^p3 m^p4 (1 + sigma^2)^p5.

    Args:
        limit: a, the accuracy after infinitely many rounds, in (0, 1).
        log_b: logarithm of b.
        log_c: logarithm of c.
        log_d: logarithm of d.
        powers: p1 to p5, [5]; 0 for settings that never vary.
    """

    limit: float
    log_b: float
    log_c: float
    log_d: float
    powers: FloatArray

    def rounds(self, target: float, points: FloatArray) -> FloatArray:
        """Rounds to a target at points [..., 5], at least 1; inf from ``limit`` on."""
        log_rate = _logs(points) @ self.powers
        if target >= self.limit:
            return np.full(log_rate.shape, np.inf)
        log_x = (self.log_b - np.log(self.limit - target)) / np.exp(self.log_c)
        with np.errstate(over="ignore"):
            rounds = (np.exp(log_x) - np.exp(self.log_d)) * np.exp(-log_rate)
        return np.asarray(np.maximum(rounds, 1.0))

    def accuracy(self, rounds: FloatArray, points: FloatArray) -> FloatArray:
        """Accuracy after so many rounds."""
        with np.errstate(divide="ignore"):
            log_x = np.log(rounds) + _logs(points) @ self.powers
        return _accuracy(self.limit, self.log_b, self.log_c, np.logaddexp(log_x, self.log_d))


def _accuracy(limit: float, log_b: float, log_c: float, log_shifted: FloatArray) -> FloatArray:
    return np.asarray(limit - np.exp(np.minimum(log_b - np.exp(log_c) * log_shifted, STEEPEST)))


def _logs(points: FloatArray) -> FloatArray:
    """Logarithms of H, E, K, m and 1 + sigma^2, [..., 5]."""
    return np.concatenate([np.log(points[..., :4]), np.log1p(points[..., 4:])], axis=-1)


def fit_power(observed: Observed, start: PowerLaw | None) -> PowerLaw:
    """The power law that is nearest to the best accuracies so far of all pilots.

    Every pilot has the same weight, and its rows are about equally far apart in log rounds. Several
    starts, or the given one.
    """
    varies = observed.varies
    counts = [track.shape[1] for track in observed.tracks]
    log_rounds, best = np.concatenate(observed.tracks, axis=1)
    logs = np.repeat(_logs(observed.points)[:, varies], counts, axis=0)
    weights = np.sqrt(np.repeat(observed.weights / counts, counts)) / SCALE
    top = float(best.max())

    def residuals(values: FloatArray, first: FloatArray) -> FloatArray:
        limit, log_b, log_c, log_d = _unpacked(values)
        shifted = np.logaddexp(log_rounds + logs @ values[4:], log_d)
        accuracies = _accuracy(limit, log_b, log_c, shifted)
        return np.concatenate([(accuracies - best) * weights, PRIOR * (values - first)])

    def slopes(values: FloatArray, first: FloatArray) -> FloatArray:
        limit, log_b, log_c, log_d = _unpacked(values)
        log_x = log_rounds + logs @ values[4:]
        shifted = np.logaddexp(log_x, log_d)
        missing = limit - _accuracy(limit, log_b, log_c, shifted)
        steep = np.exp(log_c) * missing
        share = expit(log_x - log_d)  # x / (x + d)
        columns = [np.full_like(missing, limit * (1 - limit)), -missing, steep * shifted]
        columns += [steep * (1 - share), *(steep * share * column for column in logs.T)]
        rows = np.stack(columns, axis=1) * weights[:, None]
        return np.concatenate([rows, PRIOR * np.eye(len(values))])

    if start is None:
        limit = min(top + 0.02, 0.99)
        firsts = [
            np.array([_logit(limit), np.log(limit), np.log(c), 0.0, *([0.0] * varies.sum())])
            for c, _ in STARTS
        ]
        for first, (_, power) in zip(firsts, STARTS, strict=True):
            first[4:] = np.where(np.flatnonzero(varies) < 2, power, 0.0)
    else:
        firsts = [_packed(start, varies)]
    fits = [
        least_squares(residuals, first, slopes, args=(first,), method="lm", max_nfev=EVALUATIONS)
        for first in firsts
    ]
    solution = min(fits, key=lambda fit: float(fit.cost)).x
    powers = np.zeros(len(varies))
    powers[varies] = solution[4:]
    return PowerLaw(*_unpacked(solution), powers)


def _logit(share: float) -> float:
    return float(np.log(share / (1 - share)))


def _unpacked(values: FloatArray) -> tuple[float, float, float, float]:
    """a, log b, log c and log d; a is within (0, 1)."""
    limit = 1 / (1 + np.exp(-np.clip(values[0], -30, 30)))
    log_c = np.clip(values[2], -10, 5)
    return float(limit), float(values[1]), float(log_c), float(np.clip(values[3], -50, 50))


def _packed(law: PowerLaw, varies: BoolArray) -> FloatArray:
    limit = float(np.clip(law.limit, 1e-9, 1 - 1e-9))
    return np.array([_logit(limit), law.log_b, law.log_c, law.log_d, *law.powers[varies]])


ALTERNATIONS = 50
TOLERANCE = 1e-5
"""Relative change of the scales at which the alternation of ``fit_scaled`` ends."""


@dataclass(frozen=True)
class Term:
    """A monomial of the settings.

    Args:
        powers: exponents of H, E, K, m and sigma^2.
    """

    powers: tuple[float, ...]

    def __call__(self, points: FloatArray) -> FloatArray:
        """Its values at points [..., 5]."""
        return np.asarray(np.prod(points ** np.array(self.powers), axis=-1))

    @property
    def name(self) -> str:
        """Its formula, e.g. "1/(H sqrt(E))"."""
        above = [_power(letter, p) for letter, p in zip(LETTERS, self.powers, strict=True) if p > 0]
        below = [
            _power(letter, -p) for letter, p in zip(LETTERS, self.powers, strict=True) if p < 0
        ]
        front = " ".join(above) or "1"
        if not below:
            return front
        return f"{front}/({' '.join(below)})" if len(below) > 1 else f"{front}/{below[0]}"


LETTERS = ("H", "E", "K", "m", "sigma^2")


def _power(letter: str, power: float) -> str:
    return {0.5: f"sqrt({letter})", 1.0: letter}[power]


THEOREM = tuple(
    Term(powers)
    for powers in (
        *((-1, -1, 0, 0, 0), (0, 0, 0, 0, 0), (1, 0, 0, 0, 0), (0, 1, 0, 0, 0)),
        *((0, 0, -1, 0, 0), (0, 0, 0, 0, 1), (0, 0, 0, 1, 0), (1, 0, -1, 0, 0)),
    )
)
"""Terms of the bounds of convergence: 1/(H E), 1, H, E, 1/K, sigma^2, m and H/K."""
DIMINISHING = tuple(
    Term((-a, -b, k, m, s))
    for k, m, s in ((0, 0, 0), (-1, 0, 0), (0, 1, 0), (0, 0, 1))
    for a in (0, 0.5, 1)
    for b in (0, 0.5, 1)
)
"""H^-a E^-b for a and b of 0, 1/2 and 1, alone and times 1/K, m and sigma^2: steps and edge rounds
help less the more there are."""


@dataclass(frozen=True, eq=False)
class Posynomial:
    """Rounds at each target: sum_k a_k term_k, a_k >= 0, at least those of lower targets and 1.

    Args:
        terms: the terms.
        targets: increasing accuracies, [targets].
        coefficients: a_k >= 0, [targets, terms].
    """

    terms: tuple[Term, ...]
    targets: FloatArray
    coefficients: FloatArray

    def at_targets(self, points: FloatArray) -> FloatArray:
        """Rounds at points [..., 5], [..., targets]."""
        values = np.stack([term(points) for term in self.terms], axis=-1) @ self.coefficients.T
        # A maximum of posynomials is convex in the logarithms of the settings, as each is.
        return np.asarray(np.maximum.accumulate(np.maximum(values, 1.0), axis=-1))

    def rounds(self, target: float, points: FloatArray) -> FloatArray:
        """Rounds to a target; between two targets, log rounds are linear in the accuracy."""
        rounds = self.at_targets(points)
        if len(self.targets) == 1:
            return rounds[..., 0]
        place = int(
            np.searchsorted(self.targets, target, side="right").clip(1, rounds.shape[-1] - 1)
        )
        first, last = self.targets[place - 1], self.targets[place]
        share = (target - first) / (last - first)
        return np.asarray(rounds[..., place - 1] ** (1 - share) * rounds[..., place] ** share)

    def accuracy(self, rounds: FloatArray, points: FloatArray) -> FloatArray:
        """The largest accuracy that is reached within so many rounds; 0 below the first target."""
        needed = self.at_targets(points)
        rounds = np.broadcast_to(rounds, needed.shape[:-1])
        result = np.where(rounds >= needed[..., 0], self.targets[0], 0.0)
        for i in range(1, len(self.targets)):
            low, high = np.log(needed[..., i - 1]), np.log(needed[..., i])
            with np.errstate(divide="ignore", invalid="ignore"):
                share = (np.log(rounds) - low) / (high - low)
            between = self.targets[i - 1] + share * (self.targets[i] - self.targets[i - 1])
            inside = (rounds >= needed[..., i - 1]) & (rounds < needed[..., i])
            result = np.where(inside, between, result)
            result = np.where(rounds >= needed[..., i], self.targets[i], result)
        return np.asarray(result)


def fit_each(terms: tuple[Term, ...], observed: Observed, start: Posynomial | None) -> Posynomial:
    """The posynomial of each target by itself.

    Minimises sum_i w_i (sum_k a_k term_k(i) / R_i - 1)^2 over a >= 0, where a term counts on one
    side only if R_i is a bound: a convex quadratic program.
    """
    del start  # the solution is unique in its values: no start is needed
    kept = identified(terms, observed.varies)
    columns = np.stack([term(observed.points) for term in kept], axis=-1)
    coefficients = [
        least(columns, observed.rounds[:, t], observed.censored[:, t], observed.early[:, t], w)
        for t, w in ((t, observed.weights) for t in range(len(observed.targets)))
    ]
    return Posynomial(kept, observed.targets, np.array(coefficients))


def fit_scaled(terms: tuple[Term, ...], observed: Observed, start: Posynomial | None) -> Posynomial:
    """One posynomial for all targets, times a scale for each target.

    Alternates between the scales and the posynomial, each a convex quadratic program. The sum of
    squares falls in every step; its end is a stationary point.
    """
    kept = identified(terms, observed.varies)
    columns = np.stack([term(observed.points) for term in kept], axis=-1)
    count = len(observed.targets)
    rounds, weights = observed.rounds, np.tile(observed.weights, count)
    if start is None:
        scales = np.exp(np.log(rounds).mean(axis=0))
    else:
        scales = np.maximum(start.coefficients.sum(axis=1), 1e-9)
    bounds = observed.censored.T.ravel(), observed.early.T.ravel()
    for _ in range(ALTERNATIONS):
        stacked = np.concatenate([columns * scale for scale in scales])
        shape = least(stacked, rounds.T.ravel(), *bounds, weights)
        values = (columns @ shape)[:, None]
        if not values.any():
            break
        before = scales
        scales = np.array(
            [
                least(values, rounds[:, t], observed.censored[:, t], observed.early[:, t], w)[0]
                for t, w in ((t, observed.weights) for t in range(count))
            ]
        )
        if np.all(np.abs(scales - before) <= TOLERANCE * before):
            break
    return Posynomial(kept, observed.targets, scales[:, None] * shape)


def least(
    columns: FloatArray,
    rounds: FloatArray,
    censored: BoolArray,
    early: BoolArray,
    weights: FloatArray,
) -> FloatArray:
    """Coefficients a >= 0 with the least sum of w (columns a / rounds - 1)^2, [terms].

    The excess over a lower bound and what lacks to an upper bound are free: each is a further
    variable >= 0, so that one call of non-negative least squares finds the optimum.

    Args:
        columns: values of the terms, [n, terms].
        rounds: numbers of rounds or their bounds, [n].
        censored: whether ``rounds`` is a lower bound, [n].
        early: whether it is an upper bound, [n].
        weights: weight of each residual, [n].
    """
    root = np.sqrt(weights)
    slack = np.eye(len(rounds)) * np.where(censored, -1.0, 1.0) * root
    relative = np.hstack([columns / rounds[:, None] * root[:, None], slack[:, censored | early]])
    size = np.linalg.norm(relative, axis=0)
    solution, _ = nnls(relative / size, root, maxiter=50 * relative.shape[1])
    return np.asarray((solution / size)[: columns.shape[1]])


def identified(terms: tuple[Term, ...], varies: BoolArray) -> tuple[Term, ...]:
    """The terms that pilots can tell apart: settings that never vary are left out of them."""
    kept = [Term(_masked(term.powers, varies)) for term in terms]
    return tuple(dict.fromkeys(kept))


def _masked(powers: tuple[float, ...], varies: BoolArray) -> tuple[float, ...]:
    return tuple(float(p) if v else 0.0 for p, v in zip(powers, varies, strict=True))
