"""Learning curves: exact on data of their form, optimal, one-sided at bounds, with intervals."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import least_squares

import wirelessfl
from wirelessfl.designs.fit import FITS
from wirelessfl.designs.forms import (
    DIMINISHING,
    THEOREM,
    Posynomial,
    PowerLaw,
    fit_power,
    least,
)
from wirelessfl.designs.observed import Observed

GRID = [(h, e) for h in (1, 2, 4, 8) for e in (1, 4)]
TARGETS = (0.6, 0.7)


def pilot(h, e, hits, *, last=None, targets=TARGETS, **settings):
    """A pilot that reaches each target at the given round, and ends at ``last``."""
    rounds, scores = [1, *hits], [0.1, *targets]
    if last is not None:
        scores = [s for r, s in zip(rounds, scores, strict=True) if r <= last] + [0.1]
        rounds = [r for r in rounds if r <= last] + [last]
    settings = {"clients": 20} | settings
    return wirelessfl.Pilot(h, e, rounds=rounds, scores=scores, **settings)


def theorem(h, e, scale=1):
    return scale * (64 // (h * e) + 3 + 2 * h + e)


def power_pilot(h, e, rounds=range(1, 1000)):
    x = np.array(rounds) * h**0.6 * e**0.9
    scores = 0.9 - 6.0 * (x + 40.0) ** -0.7
    return wirelessfl.Pilot(h, e, 20, list(rounds), scores)


@pytest.fixture(scope="module")
def noisy():
    """The curve of pilots whose rounds scatter by 10 %, and a function of the true rounds."""
    return scattered(np.random.default_rng(1), GRID)


def scattered(generator, grid, bootstrap=20):
    pilots = []
    for h, e in grid:
        scatter = np.exp(0.1 * generator.standard_normal())
        hits = [round(scatter * r) for r in true_rounds(h, e)]
        pilots.append(pilot(h, e, hits))
    return wirelessfl.fit_rounds(pilots, TARGETS, form="diminishing", bootstrap=bootstrap)


def true_rounds(h, e):
    return 2000 / (h**0.5 * e), 3200 / (h**0.5 * e)


# Exact on data of their form


def test_a_posynomial_is_recovered():
    runs = [pilot(h, e, (theorem(h, e), theorem(h, e, 3))) for h, e in GRID]
    for form in ("posynomial", "posynomial, scaled"):
        found = FITS[form](Observed.of([*runs], np.array(TARGETS)), None)
        by_name = dict(zip((t.name for t in found.terms), found.coefficients.T, strict=True))
        np.testing.assert_allclose(by_name["1/(H E)"], [64, 192], rtol=1e-4)
        np.testing.assert_allclose(by_name["1"], [3, 9], rtol=1e-3)
        np.testing.assert_allclose(by_name["H"], [2, 6], rtol=1e-4)
        np.testing.assert_allclose(by_name["E"], [1, 3], rtol=1e-3)
    curve = wirelessfl.fit_rounds(runs, TARGETS, bootstrap=0)
    assert curve.form.startswith("posynomial")
    assert curve.errors[curve.form] < 1e-4 < curve.errors["power"]
    found = curve.rounds(0.7, [3], [[1], [5]])
    np.testing.assert_allclose(found, [[3 * (64 / 3 + 10)], [3 * (64 / 15 + 14)]], rtol=1e-4)


def test_a_power_law_is_recovered():
    runs = [power_pilot(h, e) for h, e in GRID]
    curve = wirelessfl.fit_rounds(runs, [0.7, 0.85], bootstrap=0)
    assert curve.form == "power"
    values = {name: float(value) for name, value in curve.coefficients.items()}
    expected = {"a": 0.9, "b": 6.0, "c": 0.7, "d": 40.0, "exponent of H": 0.6, "exponent of E": 0.9}
    assert values == pytest.approx(expected, rel=1e-2)
    rounds = ((6.0 / 0.1) ** (1 / 0.7) - 40) / (3**0.6 * 2**0.9)
    assert curve.rounds(0.8, 3, 2) == pytest.approx(rounds, rel=1e-3)


def test_exponents_of_clients_masks_and_noise_are_recovered():
    observed = []
    for i, (h, e) in enumerate(GRID * 2):
        k, m, s = (10, 20, 40)[i % 7 % 3], (1.0, 1.4)[i // len(GRID)], (0.0, 0.2, 0.4)[i % 5 % 3]
        rounds = np.arange(1, 40)
        x = rounds * h**0.6 * e**0.9 * k**0.3 * m**-0.5 * (1 + s) ** -2.0
        scores = 0.9 - 0.8 * (x + 2.0) ** -0.7
        observed.append(wirelessfl.Pilot(h, e, k, rounds, scores, largest=m, noise=s))
    found = fit_power(Observed.of(observed, np.array(TARGETS)), None)
    np.testing.assert_allclose(found.powers, [0.6, 0.9, 0.3, -0.5, -2.0], rtol=2e-2)


@pytest.mark.parametrize("settings", [{}, {"clients": [10, 20], "largest": 1.4, "noise": 0.3}])
def test_slopes_of_the_power_law_are_those_of_differences(settings, monkeypatch):
    """At the start of a search, at its end, and between."""
    checked = []

    def search(residuals, first, slopes, *, args, **options):
        found = least_squares(residuals, first, slopes, args=args, **options)
        for share in (0.0, 0.3, 1.0):
            at = first + share * (found.x - first)
            steps = 1e-5 * np.eye(len(at))
            pairs = [residuals(at + s, *args) - residuals(at - s, *args) for s in steps]
            differences = np.stack(pairs, axis=1) / 2e-5
            np.testing.assert_allclose(slopes(at, *args), differences, rtol=1e-5, atol=1e-6)
            checked.append(len(at))
        return found

    monkeypatch.setattr("wirelessfl.designs.forms.least_squares", search)
    runs = [power_pilot(h, e, range(1, 200, 5)) for h, e in GRID]
    if settings:
        runs = [
            replace(run, clients=settings["clients"][place % 2],
                    largest=settings["largest"] if place % 3 else 1.0,
                    noise=settings["noise"] if place % 5 else 0.0)
            for place, run in enumerate(runs)
        ]  # fmt: skip
    fit_power(Observed.of(runs, np.array(TARGETS)), None)
    assert checked == [9 if settings else 6] * 6


# Optimal, convex, non-negative


@st.composite
def problems(draw):
    n, k = draw(st.integers(3, 8)), draw(st.integers(1, 5))
    generator = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    kinds = generator.integers(3, size=n)
    rounds = np.exp(3 * generator.standard_normal(n))
    columns = np.exp(generator.standard_normal((n, k)) + np.log(rounds)[:, None] / 2)
    return columns, rounds, kinds == 1, kinds == 2, generator.uniform(0.5, 3, n)


@given(problems())
def test_coefficients_satisfy_the_optimality_conditions(problem):
    """KKT of the one-sided problem, written without slack variables."""
    columns, rounds, censored, early, weights = problem
    found = least(columns, rounds, censored, early, weights)
    residual = columns @ found / rounds - 1
    residual[censored] = np.minimum(residual[censored], 0)
    residual[early] = np.maximum(residual[early], 0)
    gradient = (columns / rounds[:, None]).T @ (weights * residual)
    scale = (columns / rounds[:, None]).T @ weights
    assert (found >= 0).all()
    assert (gradient >= -1e-8 * scale).all()
    assert (np.abs(gradient[found > 0]) <= 1e-8 * scale[found > 0]).all()


def test_posynomials_are_convex_in_the_logarithms_of_the_settings():
    generator = np.random.default_rng(2)
    for terms in (THEOREM, DIMINISHING):
        curve = Posynomial(terms, np.array(TARGETS), generator.exponential(size=(2, len(terms))))
        a, b = np.exp(generator.standard_normal((2, 200, 5)))
        middle = np.log(curve.at_targets(np.sqrt(a * b)))
        assert (middle <= (np.log(curve.at_targets(a) * curve.at_targets(b))) / 2 + 1e-12).all()


def test_terms_have_names():
    assert [term.name for term in THEOREM] == [
        "1/(H E)",
        "1",
        "H",
        "E",
        "1/K",
        "sigma^2",
        "m",
        "H/K",
    ]
    assert {"1/(sqrt(H) E)", "1/sqrt(E)", "m/H", "1/K"} <= {term.name for term in DIMINISHING}


@pytest.mark.thorough(every=8)
@pytest.mark.parametrize("form", ["posynomial", "diminishing", "power"])
def test_higher_targets_need_more_rounds_and_accuracy_is_the_inverse(form):
    runs = [power_pilot(h, e) for h, e in GRID]
    curve = wirelessfl.fit_rounds(runs, [0.6, 0.7, 0.8, 0.85], form=form, bootstrap=0)
    targets = np.linspace(0.6, 0.85, 26)
    rounds = np.stack([curve.rounds(t, [1, 3, 8], [1, 2, 4]) for t in targets])
    assert (np.diff(rounds, axis=0) >= 0).all()
    back = curve.accuracy(rounds, [1, 3, 8], [1, 2, 4])
    inside = (rounds > 1) & (rounds < curve.rounds(0.85, [1, 3, 8], [1, 2, 4]))
    np.testing.assert_allclose(back[inside], np.broadcast_to(targets[:, None], back.shape)[inside])
    assert curve.accuracy(1e-3, 1, 1) == 0
    assert curve.accuracy(1e9, 1, 1) == pytest.approx(0.85)


# One-sided at bounds


def test_where_a_pilot_reaches_a_target():
    run = wirelessfl.Pilot(1, 1, 4, [0, 10, 20, 30], [0.1, 0.5, 0.4, 0.7])
    assert run.reached(0.6) == (25.0, "exact")  # between the best so far and the next
    assert run.reached(0.5) == run.reached(0.3) == (10.0, "early")
    assert run.reached(0.8) == (30.0, "censored")


def test_a_pilot_that_ends_early_counts_only_if_it_is_predicted_too_early():
    runs = [pilot(h, e, (theorem(h, e), theorem(h, e, 3))) for h, e in GRID]
    points = (3, 3)
    whole = wirelessfl.fit_rounds(runs, TARGETS, form="posynomial", bootstrap=0)
    # Ends before the second target at a round that the others predict to be too few: no effect.
    short = pilot(1, 1, (theorem(1, 1), theorem(1, 1, 3)), last=100)
    fitted = wirelessfl.fit_rounds([short, *runs[1:]], TARGETS, form="posynomial", bootstrap=0)
    assert fitted.censored == 1
    np.testing.assert_allclose(fitted.rounds(0.7, *points), whole.rounds(0.7, *points), rtol=1e-4)
    # Still has not reached it when the others say that it should have: more rounds are predicted.
    late = pilot(1, 1, (theorem(1, 1),), last=400, targets=TARGETS[:1])
    raised = wirelessfl.fit_rounds([late, *runs[1:]], TARGETS, form="posynomial", bootstrap=0)
    assert raised.censored == 1
    assert raised.rounds(0.7, 1, 1) > 1.05 * whole.rounds(0.7, 1, 1)
    # Ignoring it, or taking its end for the target, would be wrong in the first case.
    taken = pilot(1, 1, (theorem(1, 1), 100))
    wrong = wirelessfl.fit_rounds([taken, *runs[1:]], TARGETS, form="posynomial", bootstrap=0)
    assert wrong.rounds(0.7, 1, 1) < 0.9 * whole.rounds(0.7, 1, 1)


def test_a_first_evaluation_after_the_target_is_an_upper_bound():
    runs = [pilot(h, e, (theorem(h, e), theorem(h, e, 3))) for h, e in GRID]
    coarse = wirelessfl.Pilot(8, 4, 20, [0, 40, 90], [0.1, 0.65, 0.7])
    fitted = wirelessfl.fit_rounds([*runs[:-1], coarse], TARGETS, form="posynomial", bootstrap=0)
    assert fitted.observed.early.sum() == 1
    assert fitted.rounds(0.6, 8, 4) == pytest.approx(theorem(8, 4), rel=1e-2)


# Doubt


@pytest.mark.thorough
def test_intervals_cover_further_runs(noisy):
    """Over many studies, about nine of ten further runs are within the 90 % interval."""
    within = []
    for study in range(4):
        generator = np.random.default_rng(10 + study)
        curve = scattered(generator, GRID, bootstrap=40)
        for h, e in ((1, 1), (3, 2), (6, 3), (8, 1)):
            low, high = curve.interval(0.7, h, e)
            runs = true_rounds(h, e)[1] * np.exp(0.1 * generator.standard_normal(50))
            within.extend((low <= runs) & (runs <= high))
    assert 0.8 <= np.mean(within) <= 0.99


def test_intervals_hold_the_curve_and_are_reproducible(noisy):
    low, high = noisy.interval(0.7, [1, 4], 2)
    assert (low < noisy.rounds(0.7, [1, 4], 2)).all()
    assert (noisy.rounds(0.7, [1, 4], 2) < high).all()
    narrow = noisy.interval(0.7, [1, 4], 2, level=0.5)
    assert (low <= narrow[0]).all()
    assert (narrow[1] <= high).all()
    again = scattered(np.random.default_rng(1), GRID)
    np.testing.assert_array_equal(noisy.draws(0.7, 2, 2), again.draws(0.7, 2, 2))


def test_a_left_out_pilot_is_predicted_without_runs_of_its_settings():
    """A second seed with equal settings does not help to predict the first."""
    runs = [pilot(h, e, (theorem(h, e), theorem(h, e, 3))) for h, e in GRID]
    odd = [pilot(1, 1, (700, 900))] * 2
    curve = wirelessfl.fit_rounds([*odd, *runs[1:]], TARGETS, form="posynomial", bootstrap=0)
    np.testing.assert_allclose(curve.left_out[0], [theorem(1, 1), theorem(1, 1, 3)], rtol=1e-3)


def test_the_form_with_the_least_error_is_chosen_and_all_are_printed(noisy):
    # Two terms, unlike a power law, and no term of the bounds of convergence.
    runs = [pilot(h, e, [round(s * (1000 + 2000 / (h**0.5 * e))) for s in (1, 2)]) for h, e in GRID]
    curve = wirelessfl.fit_rounds(runs, TARGETS, bootstrap=0)
    assert curve.form == min(curve.errors, key=curve.errors.get)
    assert curve.form.startswith("diminishing")
    lines = curve.table().splitlines()
    for form, error in curve.errors.items():
        (line,) = (line for line in lines if line.startswith(f"{form:20} "))
        assert f"{np.expm1(error):.1%}" in line
        assert line.endswith("chosen") == (form == curve.form)
    assert any(line.startswith("H = 8, E = 4") for line in lines)


def test_both_panels_are_drawn(noisy):
    left, right = noisy.plot().axes
    drawn = np.concatenate([line.get_ydata() for line in left.lines[:-1]])
    assert sorted(drawn) == sorted(noisy.observed.rounds.ravel())
    assert len(right.get_legend().get_texts()) == 6


# What the curve depends on


def test_settings_that_never_vary_are_left_out_and_others_refused():
    runs = [pilot(h, 2, (theorem(h, 2), theorem(h, 2, 3))) for h in (1, 2, 4, 8)]
    curve = wirelessfl.fit_rounds(runs, TARGETS, form="posynomial", bootstrap=0)
    assert curve.varies == ("local_steps",)
    assert {*curve.coefficients} == {"1/H", "1", "H"}
    assert curve.rounds(0.6, 2, 2) == curve.rounds(0.6, 2, 2, clients=20)
    for other in ({"edge_rounds": 3}, {"clients": 10}, {"largest": 1.5}, {"noise": 0.1}):
        (name,) = other
        with pytest.raises(wirelessfl.ConfigError, match=f"^{name} is .* and all pilots have"):
            curve.rounds(0.6, **{"local_steps": 2, "edge_rounds": 2} | other)


def test_clients_that_vary_have_to_be_given():
    runs = [pilot(h, 2, (40 // k + h, 90 // k + h), clients=k) for h in (1, 2) for k in (2, 10)]
    curve = wirelessfl.fit_rounds(runs, TARGETS, form="posynomial", bootstrap=0)
    assert curve.rounds(0.6, 1, 2, clients=2) > curve.rounds(0.6, 1, 2, clients=10)
    with pytest.raises(wirelessfl.ConfigError, match=r"^clients is missing"):
        curve.rounds(0.6, 1, 2)


# Runs


@pytest.fixture(scope="module")
def result(tmp_path_factory):
    config = wirelessfl.Config.from_flags(
        "hist", dataset="digits", cells=2, clients=4, rounds=2, local_steps=3, edge_rounds=2,
        batch_size=8, hidden=(8,), validation_fraction=0.1, threads=1,
        out=tmp_path_factory.mktemp("runs") / "pilot",
    )  # fmt: skip
    return wirelessfl.run(config)


def test_a_pilot_of_a_run_and_of_its_archive(result):
    from wirelessfl.results.archive import StoredRun

    for run in (wirelessfl.Pilot.of(result), wirelessfl.Pilot.of(StoredRun.of(result))):
        assert run.settings == (3, 2, 4, 1, 0)
        assert run.rounds.tolist() == [0, 1, 2]
        assert run.scores.tolist() == [row["validation_accuracy"] for row in result.rows]
        assert run.wall_seconds == pytest.approx(result.rows[-1]["wall_seconds"], abs=1e-3)


class Run:
    """A run with some rows and settings, as the fit sees it."""

    def __init__(self, rows, **settings):
        self.rows, self.settings = rows, {"local_steps": 1, "clients": 4} | settings


ROWS = [{"round": r, "accuracy": 0.9, "validation_accuracy": 0.2 * r} for r in range(4)]


def test_sizes_of_masks_and_participants():
    run = Run(ROWS, mask_sizes="fixed", mask_shares=(0.4, 0.3, 0.2, 0.1), clients_per_round=3)
    assert wirelessfl.Pilot.of(run).settings == pytest.approx((1, 1, 3, 1.6, 0))
    assert wirelessfl.Pilot.of(Run(ROWS, uplink="aircomp"), noise=0.2).noise == 0.2
    assert wirelessfl.Pilot.of(Run(ROWS, mask_sizes="optimized"), largest=1.2).largest == 1.2


def test_test_data_are_not_read():
    blind = [{k: v for k, v in row.items() if k != "accuracy"} for row in ROWS]
    assert (wirelessfl.Pilot.of(Run(blind)).scores == wirelessfl.Pilot.of(Run(ROWS)).scores).all()


@pytest.mark.parametrize(
    ("run", "message"),
    [
        (Run([{"round": 1, "accuracy": 0.9}]), "--validation-fraction 0.1"),
        (Run([]), "--validation-fraction 0.1"),
        (Run([row | {"task": "a"} for row in ROWS]), "several models"),
        (Run([row | {"session": 1} for row in ROWS]), "sessions"),
        (Run(ROWS, schedule="buffered"), "schedule=rounds"),
        (Run(ROWS, mask_sizes="optimized"), "largest="),
        (Run(ROWS, uplink="aircomp"), "noise="),
    ],
)
def test_runs_without_a_curve_are_refused(run, message):
    with pytest.raises(wirelessfl.ConfigError, match=message):
        wirelessfl.Pilot.of(run)
    with pytest.raises(wirelessfl.ConfigError, match=message):
        wirelessfl.fit_rounds([run])


GOOD = {"local_steps": 1, "edge_rounds": 1, "clients": 4, "rounds": [1, 2], "scores": [0.1, 0.2]}


@pytest.mark.parametrize(
    "wrong",
    [
        *({"local_steps": v} for v in (0, 0.5, "2", None, True, float("nan"))),
        *({"edge_rounds": 0}, {"clients": 0}, {"largest": 0.9}, {"noise": -1}),
        *({"noise": float("inf")}, {"wall_seconds": -1}),
        *({"rounds": [2, 1]}, {"rounds": [1]}, {"rounds": [1, 1.5]}, {"rounds": [-1, 1]}),
        *({"rounds": "ab"}, {"rounds": [], "scores": []}),
        *({"scores": [0.1, 1.2]}, {"scores": [0.1, float("nan")]}, {"scores": ["a", "b"]}),
    ],
)
def test_pilots_with_nonsense_are_refused(wrong):
    with pytest.raises(
        wirelessfl.ConfigError,
        match=f"{next(iter(wrong))} .*of a pilot|{next(iter(wrong))} of a pilot",
    ):
        wirelessfl.Pilot(**GOOD | wrong)


RUNS = [power_pilot(h, e) for h, e in GRID[:4]]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"runs": RUNS[:2]}, "2 different settings"),
        ({"runs": [RUNS[0]] * 5}, "1 different settings"),
        ({"runs": []}, "0 different settings"),
        ({"runs": [*RUNS, 3]}, r"runs\[4\] is 3"),
        ({"runs": 3}, r"runs\[0\] is 3"),
        ({"runs": "pilots"}, r"load_all\('pilots'\)"),
        ({"runs": RUNS[0]}, "1 different settings"),
        ({"targets": [0.999]}, "reached by 0 of 4 pilots.*more rounds"),
        ({"targets": [0.101]}, "before the first evaluation"),
        ({"targets": [80]}, "between 0 and 1"),
        ({"targets": ["high"]}, "between 0 and 1"),
        ({"targets": []}, "between 0 and 1"),
        ({"form": "posinomial"}, "'posynomial'"),
        ({"bootstrap": -1}, "bootstrap is -1"),
        ({"bootstrap": 1.5}, "bootstrap is 1.5"),
        ({"seed": None}, "seed is None"),
    ],
)
def test_fits_of_nonsense_are_refused(given, message):
    arguments = {"runs": RUNS, "targets": [0.5]} | given
    with pytest.raises(wirelessfl.ConfigError, match=message):
        wirelessfl.fit_rounds(arguments.pop("runs"), arguments.pop("targets"), **arguments)


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda c: c.rounds(0.9, 1, 1), "fitted from 0.6 to 0.7"),
        (lambda c: c.rounds("a", 1, 1), "target is 'a'"),
        (lambda c: c.rounds(0.7, 0, 1), "local_steps is 0"),
        (lambda c: c.rounds(0.7, 1, float("nan")), "edge_rounds is nan"),
        (lambda c: c.rounds(0.7, 1, "x"), "edge_rounds is 'x'"),
        (lambda c: c.rounds(0.7, [1, 2], [1, 2, 3]), "broadcast"),
        (lambda c: c.accuracy(0, 1, 1), "rounds is 0"),
        (lambda c: c.interval(0.7, 1, 1, level=90), "level is 90"),
    ],
)
def test_questions_of_nonsense_are_refused(noisy, ask, message):
    with pytest.raises(wirelessfl.ConfigError, match=message):
        ask(noisy)


def test_intervals_need_resampled_fits(noisy):
    with pytest.raises(wirelessfl.ConfigError, match="bootstrap=0"):
        replace(noisy, replicates=()).interval(0.7, 1, 1)


def test_a_target_above_the_limit_is_never_reached():
    law = PowerLaw(0.9, np.log(0.8), np.log(0.7), np.log(2.0), np.array([0.6, 0.9, 0, 0, 0]))
    points = np.array([[2.0, 2, 20, 1, 0]])
    assert law.rounds(0.9, points) == law.rounds(0.95, points) == np.inf
    assert np.isfinite(law.rounds(0.8999, points))


def test_default_targets_are_reached_by_most_pilots():
    curve = wirelessfl.fit_rounds([power_pilot(h, e) for h, e in GRID], bootstrap=0)
    assert len(curve.targets) == 6
    assert curve.observed.censored[:, -1].mean() <= 0.3
