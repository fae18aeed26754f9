"""Loads: bits, seconds until ready, joules of training; loads that are refused."""

import numpy as np
import pytest

from channels import (
    EqualBands,
    EqualSlots,
    FixedRate,
    Load,
    Network,
    ReadyOrder,
    Simultaneous,
    Stream,
)

NETWORK = Network.from_snr(
    [0, 0, 1], cpu_hz=[1e9, 2e9, 4e9], snr_db=10.0, switched_capacitance=[1e-28, 2e-28, 3e-28]
)
ACCESSES = [EqualBands(), EqualSlots(), FixedRate(1e6), ReadyOrder(), Simultaneous()]


def test_bits_and_training_by_hand():
    load = Load(
        cycles=[1e9, 1e9, 2e9],
        elements=[10, 20, 0],
        vectors=[1, 2, 3],
        start_seconds=0.25,
        bits_per_element=16,
    )
    assert load.bits.tolist() == [160, 640, 0]
    assert load.ready_seconds(NETWORK).tolist() == [1.25, 0.75, 0.75]
    # kappa F^2 joules per cycle
    assert load.compute_joules(NETWORK) == pytest.approx([0.1, 0.8, 9.6])


def test_defaults_of_a_load():
    """One vector of 32 bits per element; over the air, all send their own elements."""
    load = Load(elements=[3, 4, 5])
    assert load.bits.tolist() == [96, 128, 160]
    assert load.jointly.tolist() == [3, 4, 5]
    assert load.weights is None
    assert load.ready_seconds(NETWORK).tolist() == [0, 0, 0]
    assert Load().bits == 0


def test_leading_axes_broadcast():
    load = Load(np.ones((4, 1, 3)), np.ones((2, 3)), start_seconds=np.ones((4, 2, 1)))
    assert load.ready_seconds(NETWORK).shape == (4, 2, 3)
    assert load.bits.shape == (2, 3)


@pytest.mark.parametrize("access", ACCESSES, ids=lambda access: type(access).__name__)
@pytest.mark.parametrize(
    ("load", "message"),
    [
        (
            Load(np.ones(2)),
            r"^cycles of the load has shape \(2,\), and the draw has 3 clients: give one number",
        ),
        (Load(elements=np.ones((3, 4))), r"^elements of the load has shape \(3, 4\)"),
        (Load(vectors=np.ones(4), elements=1), r"^vectors of the load has shape \(4,\)"),
        (Load(weights=np.ones(2)), r"^weights of the load has shape \(2,\)"),
        (
            Load(elements=np.ones((5, 3))),
            r"elements of the load \(5,\), .*blocks of the draw \(2,\)\. Give leading axes",
        ),
    ],
)
def test_a_load_of_other_clients_is_refused(access, load, message):
    """By each access, in one line that names the load's field and the draw."""
    with pytest.raises(ValueError, match=message) as caught:
        access.serve(load, NETWORK.draws(Stream(1), [0, 1]))
    assert "\n" not in str(caught.value)
