"""Majority votes over the air without channel knowledge: energy on one of two resources.

Each client sends the sign of each element as energy: on the first of two resources for +1, on the
second for -1, with a random phase, and on neither for 0. The server compares the energies that its
antennas receive: neither it nor the clients need channels or phases (Sahin, Everette, Hoque,
CommNet 2021, arXiv:2111.01850; with absent voters Sahin, arXiv:2209.04692). The decision on each
element is a majority vote of the clients, weighted by the powers that arrive.

A client that votes uses the power of both resources on one of them: it sends at twice its limit P_i
on half of the resources, so its mean power is P_i.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from channels.arguments import checked
from channels.arrays import ComplexArray, FloatArray
from channels.loads import amounts
from channels.streams import Stream
from channels.validation import common_shape, whole_number

RESOURCES = 2
"""Resources (symbols) per element: one for each sign."""
_ELEMENTS = 1 << 16
"""Elements whose signals are in memory at a time; results depend on it."""


@checked()
def wrong_vote_probability(
    power_for: ArrayLike, power_against: ArrayLike, *, antennas: int
) -> FloatArray:
    """Probability that the side with ``power_for`` loses a vote by energy under Rayleigh fading.

    The energies over M antennas are Gamma variables of shape M, with means M (1 + power), so the
    probability is I_x(M, M) with x = b / (a + b), a = 1 + ``power_for``, b = 1 + ``power_against``,
    and the regularised incomplete beta function I. With one antenna it is b / (a + b).

    >>> import channels
    >>> probability = channels.wrong_vote_probability(3.0, 1.0, antennas=4)
    >>> round(float(probability), 4)  # three clients against one, each as strong as the noise
    0.1733

    Args:
        power_for: sum over the clients that vote for this side of their mean received powers per
            antenna, in units of the noise power; any shape.
        power_against: the same of the other side; the two are broadcast.
        antennas: M of the server, at most 1,000,000.

    Returns:
        Probabilities; 1/2 where both powers are equal.
    """
    from scipy.special import betainc  # SciPy loads slowly

    a, b = 1 + amounts("power_for", power_for), 1 + amounts("power_against", power_against)
    common_shape(
        {"power_for": a.shape, "power_against": b.shape},
        (a.shape, b.shape),
        "shapes that broadcast",
    )
    number = whole_number("antennas", antennas)
    if not 1 <= number <= 1_000_000:
        raise ValueError(f"antennas is {number}: give an integer from 1 to 1,000,000.")
    return np.asarray(betainc(number, number, b / (a + b)))


def energy_difference(
    signs: NDArray[np.int8], h: ComplexArray, amplitudes: FloatArray, stream: Stream
) -> FloatArray:
    """Energy for +1 minus energy for -1 at each element: its sign is the vote.

    Args:
        signs: [clients, elements], -1, 0 (sends nothing) or 1.
        h: channels [clients, antennas], the same for all elements.
        amplitudes: [clients], in units of the noise's standard deviation.
        stream: randomness of the phases and of the noise.

    Returns:
        [elements], in units of the noise power.
    """
    clients, elements = signs.shape
    phases = [stream.child("phase", row).generator() for row in range(clients)]
    noise = stream.child("noise").generator()
    gains = (h * amplitudes[:, None]).T.astype(np.complex64)  # [antennas, clients]
    quarters = np.array([1, 1j, -1, -1j], np.complex64)
    difference = np.empty(elements)
    for first in range(0, elements, _ELEMENTS):
        some = signs[:, first : first + _ELEMENTS]
        width = some.shape[1]
        symbols = np.stack([quarters[dice.integers(0, 4, width)] for dice in phases])
        energies = []
        for sign in (1, -1):
            parts = noise.standard_normal((2, len(gains), width), np.float32) * np.float32(0.5**0.5)
            received = gains @ np.where(some == sign, symbols, 0) + (parts[0] + 1j * parts[1])
            energies.append((received.real**2 + received.imag**2).sum(0))
        difference[first : first + width] = energies[0] - energies[1]
    return difference


def powers_of_sides(signs: NDArray[np.int8], powers: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Sums [elements] of ``powers`` [clients] over those that vote +1, and that vote -1."""
    sides = np.zeros((2, signs.shape[1]))
    for power, votes in zip(powers, signs, strict=True):
        sides[0] += power * (votes > 0)
        sides[1] += power * (votes < 0)
    return sides[0], sides[1]
