"""The fitted learning curve: rounds to an accuracy, with intervals, table and figure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import ArrayLike

from channels.arrays import FloatArray
from wirelessfl.base.errors import ConfigError
from wirelessfl.base.figures.curves import COLOURS, DASHES, MARKERS, new_figure, style
from wirelessfl.base.wording import shown
from wirelessfl.designs.forms import Posynomial, PowerLaw
from wirelessfl.designs.observed import NAMES, Observed, Pilot

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


FLAGS = ("local_steps", "edge_rounds", "clients", "largest submodel", "noise")


class Fitted(Protocol):
    """A fitted form."""

    def rounds(self, target: float, points: FloatArray) -> FloatArray:
        """Rounds to a target at points [..., 5]."""

    def accuracy(self, rounds: FloatArray, points: FloatArray) -> FloatArray:
        """Accuracy after so many rounds."""


@dataclass(frozen=True, eq=False, repr=False)
class RoundsCurve:
    """Global rounds to a validation accuracy as a function of H, E, K, masks and noise.

    It is created by ``fit_rounds``.

    >>> import wirelessfl
    >>> rounds = range(1, 100)
    >>> runs = [
    ...     wirelessfl.Pilot(h, 1, 20, rounds, [1 - 1 / (1 + r * h**0.5) for r in rounds])
    ...     for h in (1, 2, 4)
    ... ]
    >>> curve = wirelessfl.fit_rounds(runs, [0.8, 0.9], form="power", bootstrap=0)
    >>> curve.rounds(0.9, local_steps=[1, 4], edge_rounds=1).round(1).tolist()
    [9.0, 4.5]
    >>> float(curve.accuracy(9, local_steps=1, edge_rounds=1).round(2))
    0.9

    Args:
        form: the chosen form; "scaled" if the targets of a posynomial differ by a factor only.
        errors: by form, root mean square of log(predicted / measured rounds) of left-out pilots; an
            error counts at most as a factor of 10.
        fitted: the fitted form, with its coefficients.
        observed: what the pilots say about each target.
        runs: the pilots.
        left_out: rounds of each pilot, predicted from those with other settings, [pilots, targets].
        replicates: the form fitted to resampled pilots, [bootstrap].
        residuals: log(predicted / measured) of a left-out pilot, for each of them, [bootstrap].
    """

    form: str
    errors: dict[str, float]
    fitted: Fitted
    observed: Observed
    runs: tuple[Pilot, ...]
    left_out: FloatArray
    replicates: tuple[Fitted, ...]
    residuals: FloatArray

    def __repr__(self) -> str:
        targets = ", ".join(f"{target:.4g}" for target in self.targets)
        return f"RoundsCurve({self.form}, {self.pilots} pilots, targets {targets})"

    @property
    def targets(self) -> FloatArray:
        """The targets, increasing accuracies in (0, 1), [targets]."""
        return np.asarray(self.observed.targets)

    @property
    def pilots(self) -> int:
        """Number of pilots."""
        return len(self.runs)

    @property
    def censored(self) -> int:
        """Number of pairs of a pilot and a target at which the pilot ends before the target."""
        return int(self.observed.censored.sum())

    @property
    def varies(self) -> tuple[str, ...]:
        """Settings on which the curve depends, because pilots differ in them."""
        return tuple(n for n, v in zip(NAMES, self.observed.varies, strict=True) if v)

    @property
    def coefficients(self) -> dict[str, FloatArray]:
        """Coefficients by name: of each term at all targets [targets], or of the power law."""
        if isinstance(self.fitted, Posynomial):
            terms = zip(self.fitted.terms, self.fitted.coefficients.T, strict=True)
            return {term.name: values for term, values in terms}
        assert isinstance(self.fitted, PowerLaw)
        law = self.fitted
        coefficients = {"a": np.array(law.limit)}
        coefficients |= {
            k: np.exp(v) for k, v in zip("bcd", (law.log_b, law.log_c, law.log_d), strict=True)
        }
        symbols = zip(("H", "E", "K", "m", "1 + sigma^2"), law.powers, strict=True)
        kept = zip(symbols, self.observed.varies, strict=True)
        return coefficients | {f"exponent of {s}": np.array(p) for (s, p), varies in kept if varies}

    def rounds(
        self,
        target: float,
        local_steps: ArrayLike,
        edge_rounds: ArrayLike,
        clients: ArrayLike | None = None,
        largest: ArrayLike | None = None,
        noise: ArrayLike = 0.0,
    ) -> FloatArray:
        """Global rounds to a target, at least 1 and not rounded; inf if it is never reached.

        Args:
            target: validation accuracy within ``targets``.
            local_steps: H >= 1; this and the following are broadcast against each other.
            edge_rounds: E >= 1.
            clients: K, participants of a round; None for those of the pilots.
            largest: m, the largest submodel relative to equal ones, or the mean of 1/width where
                each client has a width; None for that of the pilots, or 1 if they differ in it.
            noise: sigma^2, relative error variance of over-the-air sums.

        Raises:
            ConfigError: the target is outside the fitted ones, a setting is out of range, or has
                another value than all pilots, which say nothing about it.
        """
        self._check(target)
        points = self._points(local_steps, edge_rounds, clients, largest, noise)
        return np.asarray(np.maximum(self.fitted.rounds(float(target), points), 1.0))

    def draws(
        self,
        target: float,
        local_steps: ArrayLike,
        edge_rounds: ArrayLike,
        clients: ArrayLike | None = None,
        largest: ArrayLike | None = None,
        noise: ArrayLike = 0.0,
    ) -> FloatArray:
        """Rounds that a further run may need, one draw per resampled fit, [bootstrap, ...].

        A draw has the pilots of a fit drawn with replacement, and the residual of a left-out pilot.

        Args:
            target: see ``rounds``, also for the other arguments.

        Raises:
            ConfigError: see ``rounds``; or the curve was fitted with ``bootstrap=0``.
        """
        self._check(target)
        points = self._points(local_steps, edge_rounds, clients, largest, noise)
        if not self.replicates:
            raise ConfigError("the curve was fitted with bootstrap=0: give at least 100.")
        drawn = zip(self.replicates, self.residuals, strict=True)
        draws = np.stack([fit.rounds(float(target), points) * np.exp(-r) for fit, r in drawn])
        return np.asarray(np.maximum(draws, 1.0))

    def interval(
        self,
        target: float,
        local_steps: ArrayLike,
        edge_rounds: ArrayLike,
        clients: ArrayLike | None = None,
        largest: ArrayLike | None = None,
        noise: ArrayLike = 0.0,
        *,
        level: float = 0.9,
    ) -> tuple[FloatArray, FloatArray]:
        """Bounds of the rounds that a further run needs, by bootstrap.

        Args:
            target: see ``rounds``, also for the other arguments.
            level: probability of the interval, in (0, 1).

        Raises:
            ConfigError: see ``draws``; or ``level`` is out of range.
        """
        if not isinstance(level, int | float) or not 0 < level < 1:
            raise ConfigError(f"level is {shown(level)}: give a number between 0 and 1.")
        draws = self.draws(target, local_steps, edge_rounds, clients, largest, noise)
        # Between two draws of which one is infinite, linear interpolation gives NaN.
        low = np.quantile(draws, (1 - level) / 2, axis=0, method="lower")
        high = np.quantile(draws, (1 + level) / 2, axis=0, method="higher")
        return np.asarray(low), np.asarray(high)

    def accuracy(
        self,
        rounds: ArrayLike,
        local_steps: ArrayLike,
        edge_rounds: ArrayLike,
        clients: ArrayLike | None = None,
        largest: ArrayLike | None = None,
        noise: ArrayLike = 0.0,
    ) -> FloatArray:
        """The largest accuracy within ``targets`` that is reached within so many rounds.

        Args:
            rounds: global rounds > 0, broadcast against the others.
            local_steps: see ``rounds``, also for the other arguments.

        Returns:
            Accuracies; 0 where the lowest target is not reached, and at most the highest target.

        Raises:
            ConfigError: see ``rounds``.
        """
        numbers = _numbers("rounds", rounds, 0.0)
        points = self._points(local_steps, edge_rounds, clients, largest, noise)
        shape = np.broadcast_shapes(numbers.shape, points.shape[:-1])
        numbers = np.broadcast_to(numbers, shape)
        points = np.broadcast_to(points, (*shape, points.shape[-1]))
        accuracies = self.fitted.accuracy(numbers, points)
        low, high = self.targets[0], self.targets[-1]
        reached = numbers >= self.fitted.rounds(float(low), points)
        return np.asarray(np.where(reached, np.clip(accuracies, low, high), 0.0))

    def table(self) -> str:
        """The errors of all forms, the coefficients, and each pilot beside its prediction."""
        return table(self)

    def plot(self) -> Figure:
        """Measured rounds against predicted ones, and the pilots' accuracies with the curve."""
        return figure(self)

    def _check(self, target: float) -> None:
        low, high = self.targets[0], self.targets[-1]
        number = isinstance(target, int | float | np.number) and not isinstance(target, bool)
        if not number or not low - 1e-12 <= target <= high + 1e-12:
            raise ConfigError(
                f"target is {shown(target)}, and the curve was fitted from {low:g} to {high:g}: "
                "choose a target between them, or give it to fit_rounds."
            )

    def _points(self, *values: ArrayLike | None) -> FloatArray:
        """H, E, K, m and sigma^2 at the last axis, [..., 5]."""
        arrays = []
        for i, (name, value) in enumerate(zip(NAMES, values, strict=True)):
            pilots = self.observed.points[:, i]
            if value is None and name == "largest" and self.observed.varies[i]:
                value = 1.0
            if value is None:
                if self.observed.varies[i]:
                    raise ConfigError(f"{name} is missing, and pilots differ in it: give it.")
                value = pilots[0]
            array = _numbers(name, value, (1.0, 1.0, 0.0, 1.0, 0.0)[i], closed=name != "clients")
            # Shares of masks need not be exact multiples.
            if not self.observed.varies[i] and not np.allclose(array, pilots[0], rtol=1e-9, atol=0):
                raise ConfigError(
                    f"{name} is {shown(value)}, and all pilots have {pilots[0]:g}: the curve says "
                    f"nothing about others. Add pilots with other {FLAGS[i]}."
                )
            arrays.append(array)
        try:
            return np.stack(np.broadcast_arrays(*arrays), axis=-1)
        except ValueError:
            shapes = ", ".join(f"{n} {a.shape}" for n, a in zip(NAMES, arrays, strict=True))
            raise ConfigError(
                f"shapes do not fit each other, {shapes}: give arrays that can be broadcast, such "
                "as local_steps [[2], [5]] and edge_rounds [1, 2, 4]."
            ) from None


def _numbers(name: str, value: ArrayLike, least: float, closed: bool = False) -> FloatArray:
    """An array of numbers."""
    try:
        array = np.asarray(value, float)
        good = np.all(array >= least if closed else array > least) and not np.isnan(array).any()
    except (TypeError, ValueError):
        good = False
    if not good:
        sign = ">=" if closed else ">"
        raise ConfigError(f"{name} is {shown(value)}: give numbers {sign} {least:g}.")
    return array


SHOWN = 6
"""Largest number of pilots whose accuracies are drawn."""


def draw_rounds(axes: Axes, curve: RoundsCurve) -> None:
    """Measured rounds of each pilot against those predicted from the other pilots.

    Open marks are bounds: triangles up for pilots that end before the target, triangles down for
    those that reach it before their first evaluation.
    """
    observed, predicted = curve.observed, curve.left_out
    for t, target in enumerate(curve.observed.targets):
        colour = COLOURS[t % len(COLOURS)]
        kinds = (observed.exact, None), (observed.censored, "^"), (observed.early, "v")
        for kind, sign in kinds:
            chosen = kind[:, t] & np.isfinite(predicted[:, t])
            axes.plot(
                predicted[chosen, t],
                observed.rounds[chosen, t],
                linestyle="none",
                marker=sign or MARKERS[t % len(MARKERS)],
                markersize=style().small / 1.8,
                markerfacecolor="none" if sign else colour,
                color=colour,
                label=None if sign else f"target {100 * target:.3g} %",
            )
    finite = predicted[np.isfinite(predicted)]
    low = min(finite.min(initial=np.inf), observed.rounds.min())
    high = max(finite.max(initial=0.0), observed.rounds.max())
    axes.plot([low, high], [low, high], color="0.5", linewidth=0.8)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("predicted from the other pilots (rounds)", fontsize=style().text)
    axes.set_ylabel("measured (rounds)", fontsize=style().text)
    axes.legend(fontsize=style().small, frameon=False, loc="best")


def draw_accuracies(axes: Axes, curve: RoundsCurve) -> None:
    """Best accuracies so far of some pilots (thin), and the fitted curve at their settings."""
    order = sorted(curve.runs, key=lambda run: run.settings)
    places = np.unique(np.linspace(0, len(order) - 1, min(SHOWN, len(order))).round().astype(int))
    shades = np.linspace(curve.observed.targets[0], curve.observed.targets[-1], 40)
    for i, place in enumerate(places):
        run, colour = order[place], COLOURS[i % len(COLOURS)]
        trained = run.rounds > 0
        axes.plot(
            run.rounds[trained], 100 * run.best[trained], color=colour, linewidth=0.6, alpha=0.6
        )
        settings = run.settings
        rounds = np.array([curve.rounds(target, *settings) for target in shades])
        dashes = DASHES[i % len(DASHES)]
        axes.plot(
            rounds,
            100 * shades,
            color=colour,
            linestyle=dashes,
            linewidth=1.2 * style().line,
            label=run.label,
        )
    axes.set_xscale("log")
    low = 100 * (2 * curve.observed.targets[0] - curve.observed.targets[-1])
    axes.set_ylim(bottom=max(0.0, low))
    axes.set_xlabel("global round", fontsize=style().text)
    axes.set_ylabel("best validation accuracy so far (%)", fontsize=style().text)
    axes.legend(fontsize=style().small, frameon=False, loc="best")


def figure(curve: RoundsCurve) -> Figure:
    """Both panels."""
    drawing, (left, right) = new_figure(2, height=3.0)
    draw_rounds(left, curve)
    draw_accuracies(right, curve)
    return drawing


def table(curve: RoundsCurve) -> str:
    """The errors of all forms, the coefficients, and each pilot beside its prediction.

    ``left out``: rounds as predicted from the pilots with other settings; ``>`` and ``<`` mark
    bounds.
    """
    return "\n".join(_lines(curve))


def _lines(curve: RoundsCurve) -> Iterator[str]:
    observed = curve.observed
    wall = sum(run.wall_seconds for run in curve.runs)
    censored, early = int(observed.censored.sum()), int(observed.early.sum())
    yield f"Rounds to a validation accuracy, from {len(curve.runs)} pilots"
    yield f"training of the pilots: {wall:.0f} wall-clock seconds"
    yield f"pilots x targets: {observed.rounds.size}"
    yield f"  end before the target: {censored}"
    yield f"  reach it before the first evaluation: {early}"
    yield ""
    yield "form                  error of left-out pilots"
    for form, error in curve.errors.items():
        chosen = "  chosen" if form == curve.form else ""
        yield f"{form:20}  {np.expm1(error):>7.1%}{chosen}"
    yield ""
    for name, values in curve.coefficients.items():
        if np.any(values):
            yield f"{name:20}  " + "  ".join(f"{value:>8.4g}" for value in np.atleast_1d(values))
    yield ""
    targets = observed.targets
    yield f"{'validation accuracy':22}" + "  ".join(f"{target:>17.4g}" for target in targets)
    yield f"{'rounds':22}" + "  ".join([f"{'measured':>8} {'left out':>8}"] * len(targets))
    for i, run in enumerate(curve.runs):
        cells = []
        for t in range(len(targets)):
            sign = ">" if observed.censored[i, t] else "<" if observed.early[i, t] else ""
            measured = f"{sign}{observed.rounds[i, t]:.4g}"
            cells.append(f"{measured:>8} {curve.left_out[i, t]:>8.4g}")
        yield f"{run.label:22}" + "  ".join(cells)
