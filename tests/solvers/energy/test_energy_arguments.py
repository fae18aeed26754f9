"""Arguments of ``allocate_energy``: bad or infeasible ones get one line, tensors give tensors."""

import numpy as np
import pytest
import torch

from solvers import Status, allocate_energy


def test_infeasible_problems_say_why():
    limits = {"max_power_watts": 0.1, "max_cpu_hz": 1e9, "kappa": 1e-28}
    clients = ([1e5, 1e5], [1e7, 0], [1e10, 1e8], 1e6)
    found = allocate_energy(*clients, deadline_seconds=0.02, **limits)
    assert (found.value, found.objective, found.status) == (None, np.inf, Status.INFEASIBLE)
    assert found.message == (
        "deadline_seconds is 0.02: even at full power and speed the clients need 0.0369809 s, "
        "0.017 s more; client 1 needs 0.0289065 s in the whole band"
    )
    near = allocate_energy(*clients, deadline_seconds=0.035, **limits)
    assert near.message.endswith("0.00198 s more; client 1 then takes 68% of the band")
    mute = allocate_energy(*clients[:2], [1e10, 0], 1e6, deadline_seconds=1, **limits)
    assert mute.message == "client 1 cannot send: gain_per_noise is 0"
    weak = allocate_energy(*clients, weights=(1, 1), **limits | {"max_power_watts": [0, 1]})
    assert weak.message == "client 0 cannot send: max_power_watts is 0"
    halted = allocate_energy(*clients, weights=(1, 1), **limits | {"max_cpu_hz": 0})
    assert halted.message == "client 0 cannot compute: max_cpu_hz is 0"


def test_tensors_give_tensors():
    bits = torch.full((2, 3), 1e5)
    found = allocate_energy(
        bits,
        torch.full((3,), 1e7),
        1e10,
        torch.tensor([1e6, 2e6]),
        weights=(1.0, torch.tensor(2.0)),
        max_power_watts=0.1,
        max_cpu_hz=1e9,
        kappa=1e-28,
    )
    assert all(isinstance(part, torch.Tensor) for part in found.value)
    assert found.value.cpu_hz.shape == (2, 3)
    assert found.value.seconds.shape == (2,)
    assert found.value.cpu_hz.dtype == found.objective.dtype == torch.float64
    limits = {"max_power_watts": 0.1, "max_cpu_hz": 1e9, "kappa": 1e-28}
    one = allocate_energy(bits[0], 1e7, 1e9, 1e6, weights=(1.0, 2.0), **limits)
    assert isinstance(one.value.seconds, torch.Tensor)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"cycles": np.inf}, "cycles is inf: .* in CPU cycles"),
        ({"deadline_seconds": None}, r"are missing: give deadline_seconds .* or weights \(w_T"),
        ({"weights": (1, 1)}, "are both given: give deadline_seconds .* or weights"),
        ({"deadline_seconds": None, "weights": 3}, r"weights is 3: give \(w_T, w_E\)"),
        (
            {"deadline_seconds": None, "weights": (0, 1)},
            "w_T is 0.0, and energy alone never ends a round: give .* or deadline_seconds",
        ),
        ({"deadline_seconds": None, "weights": (1, -1)}, "weights: w_E is -1.0"),
        ({"bits": [[1, 1]] * 3, "bandwidth_hz": [1, 2]}, r"not fit: .*bandwidth_hz \(2,\)"),
        ({"bits": [], "cycles": 1}, "give .*, with clients"),
    ],
)
def test_bad_arguments_are_named(change, message):
    good = {
        "bits": [1.0, 1],
        "cycles": 0,
        "gain_per_noise": 1,
        "bandwidth_hz": 1,
        "max_power_watts": 1,
        "max_cpu_hz": 1,
        "kappa": 0,
        "deadline_seconds": 1,
    }
    with pytest.raises(ValueError, match=message):
        allocate_energy(**good | change)
