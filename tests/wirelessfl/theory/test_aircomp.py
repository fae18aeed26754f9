"""Theorem 2: hand calculations, and its noise term where only noise causes gradients."""

import numpy as np
import pytest

from channels.streams import Stream
from tests.wirelessfl.theory.test_hist import CONSTANTS, RUN
from wirelessfl.theory import Constants, step_size_limit, theorem_1, theorem_2


def test_the_terms_by_hand():
    known = theorem_1(CONSTANTS, **RUN)
    published = theorem_2(CONSTANTS, **RUN, mse=29)
    assert published.terms == known.terms | {"air_error": pytest.approx(0.25 * 29)}
    assert published.total == pytest.approx(known.total + 0.25 * 29)
    corrected = theorem_2(CONSTANTS, **RUN, mse=29, corrected=True)
    assert corrected.air_error == pytest.approx(2 * 0.25 * 3 / 2 * 29)
    assert (published.holds, published.condition) == (known.holds, known.condition)
    assert theorem_2(CONSTANTS, **RUN, mse=0).total == known.total


def test_errors_may_differ_by_round():
    each = np.arange(35.0).reshape(7, 5)
    assert theorem_2(CONSTANTS, **RUN, mse=each).air_error == pytest.approx(0.25 * 17)
    assert theorem_2(CONSTANTS, **RUN, mse=np.arange(7.0)).air_error == pytest.approx(0.25 * 3)


@pytest.mark.parametrize("local_steps", [1, 8])
def test_the_corrected_term_bounds_gradients_caused_by_noise(local_steps):
    """Runs start at the optimum of f(x) = L |x|^2 / 2, so only receiver noise causes gradients.

    An edge round is x -> (1 - gamma L)^H x + gamma z, so E|x|^2 converges to gamma^2 s^2 /
    (1 - (1 - gamma L)^(2H)). The standard error of the mean over the path is below 1 %.
    """
    smoothness, size, variance, rounds = 8.0, 2000, 0.7, 4000
    sizes = {"edge_rounds": 1, "local_steps": local_steps, "cell_sizes": (1, 1)}
    gamma = step_size_limit(**sizes, smoothness=smoothness).value
    dice = Stream(1, ("air",)).generator()
    x, norms = np.zeros(size), []
    for _ in range(rounds):
        norms.append(x @ x)
        x = (1 - gamma * smoothness) ** local_steps * x
        x = x + gamma * np.sqrt(variance) * dice.standard_normal(size)
    measured = smoothness**2 * np.mean(norms)
    settled = (gamma * smoothness) ** 2 * size * variance
    settled /= 1 - (1 - gamma * smoothness) ** (2 * local_steps)
    assert 0.9 * settled < measured < 1.01 * settled  # the path starts at the optimum
    run = {
        **sizes,
        "rounds": rounds,
        "step_size": gamma,
        "parameters": size,
        "largest_mask": size / 2,
        "model_norm_sq": np.array(norms),
        "initial_gap": 0.0,
        "mse": size * variance,
    }
    constants = Constants(smoothness, 0, 0, 0)
    assert theorem_2(constants, **run).holds
    assert measured <= theorem_2(constants, **run, corrected=True).air_error
    published = theorem_2(constants, **run).air_error
    assert (measured <= published) == (local_steps == 8)  # L / (2 H) is 4 and 1/2


@pytest.mark.parametrize(
    ("mse", "message"),
    [
        (-1.0, "mse contains -1"),
        (np.inf, "mse contains inf"),
        (np.ones(5), r"mse has shape \[5\]: give one number, \[7\], or \[7, 5\]"),
    ],
)
def test_invalid_errors_are_rejected(mse, message):
    with pytest.raises(ValueError, match=message):
        theorem_2(CONSTANTS, **RUN, mse=mse)
