"""Clients that cannot take part are reported alike by all solvers, alone and in a batch."""

import re

import numpy as np
import pytest

from solvers import (
    Status,
    allocate_bands_in_time,
    allocate_bandwidth,
    allocate_energy,
    assign_resource_blocks,
    optimize_masks_and_bands,
    optimize_masks_and_energy,
    optimize_widths_and_bands,
    schedule_uplink,
    select_clients,
)

CELLS = np.array([[1e7, 1e7], [1e7, 1e7]])  # of the joint solvers: client 1 of cell 1 varies
LIMITS = {"max_power_watts": 0.1, "max_cpu_hz": 1e9, "kappa": 1e-28}


def cells(last):
    snr_hz = np.tile(CELLS, (*last.shape, 1, 1))
    snr_hz[..., 1, 1] = last
    return snr_hz


def clients(last):
    return np.stack([np.full(last.shape, 1e7), last], -1)


def energy(last, **goal):
    return allocate_energy(1e5, 1e7, clients(last), 1e6, **goal, **LIMITS)


def resource_blocks(last, count):
    allowed = np.repeat((clients(last) > 0)[..., None], 2, axis=-1)
    return assign_resource_blocks(np.full((2, 2), 0.1), allowed=allowed, count=count)


def masks_and_energy(last, **more):
    return optimize_masks_and_energy(1e5, 1e7, cells(last), 1e6, 4, **more, **LIMITS)


# The last client's channel to a solution: 1e7, or 0.
NEEDED = {
    "schedule_uplink": lambda last: schedule_uplink(
        0.1, np.where(clients(last) > 0, 0.2, np.inf)
    ),
    "allocate_bandwidth": lambda last: allocate_bandwidth(1e5, 0.1, clients(last), 1e6),
    "allocate_bands_in_time": lambda last: allocate_bands_in_time(1e5, 0.1, clients(last), 1e6),
    "select_clients": lambda last: select_clients(1e5, 0.1, clients(last), 1e6, count=2),
    "values": lambda last: select_clients(1e5, 0.1, clients(last), 1e6, values=1.0, at_least=2.0),
    "assign_resource_blocks": lambda last: resource_blocks(last, 2),
    "energy by a deadline": lambda last: energy(last, deadline_seconds=9.0),
    "energy by weights": lambda last: energy(last, weights=(1.0, 1.0)),
    "masks": lambda last: optimize_masks_and_bands(1e5, 0.1, cells(last), 1e6, 4, lower=1),
    "masks' caps": lambda last: optimize_masks_and_bands(1e5, 0.1, cells(last), 1e6, 4, cap=3),
    "sizes by a deadline": lambda last: masks_and_energy(last, deadline_seconds=99.0, lower=1),
    "caps by a deadline": lambda last: masks_and_energy(last, deadline_seconds=99.0, cap=3),
    "sizes by weights": lambda last: masks_and_energy(last, weights=(1.0, 1.0), lower=1),
    "caps by weights": lambda last: masks_and_energy(last, weights=(1.0, 1.0), cap=3),
    "sizes of least time": lambda last: masks_and_energy(last, weights=(1.0, 0.0), lower=1),
}  # fmt: skip
OPTIONAL = {
    "select_clients": lambda last: select_clients(1e5, 0.1, clients(last), 1e6, count=1),
    "values": lambda last: select_clients(1e5, 0.1, clients(last), 1e6, values=1.0, at_least=1.0),
    "assign_resource_blocks": lambda last: resource_blocks(last, None),
    "widths": lambda last: optimize_widths_and_bands(1e5, 0.1, clients(last), 1e6, 0.5),
    "masks": lambda last: optimize_masks_and_bands(1e5, 0.1, cells(last), 1e6, 4),
    "sizes by a deadline": lambda last: masks_and_energy(last, deadline_seconds=99.0),
    "sizes by weights": lambda last: masks_and_energy(last, weights=(1.0, 1.0)),
    "sizes of least time": lambda last: masks_and_energy(last, weights=(1.0, 0.0)),
}
NAMED = (
    r"client 1 cannot send: "
    r"(snr_hz is 0|gain_per_noise is 0|upload_seconds is infinite|no block is allowed)$"
)


@pytest.mark.thorough(every=8)
@pytest.mark.parametrize("name", NEEDED)
def test_a_problem_that_needs_the_client_is_infeasible(name):
    alone = NEEDED[name](np.array(0.0))
    assert (alone.status, alone.value) == (Status.INFEASIBLE, None)
    assert (alone.objective, alone.bound, alone.gap) == (np.inf, np.inf, 0)
    assert re.search(NAMED, alone.message)
    both = NEEDED[name](np.array([1e7, 0.0]))
    assert both.status[1] is Status.INFEASIBLE
    assert both.message == f"1 of 2 problems are infeasible; item [1]: {alone.message}"
    assert (
        np.asarray(both.value[0] if isinstance(both.value, tuple) else both.value)[1] <= 0
    ).all()
    assert (both.objective[1], both.bound[1]) == (np.inf, np.inf)
    usual = NEEDED[name](np.array(1e7))
    assert both.objective[0] == usual.objective < np.inf
    assert usual.message == ""


@pytest.mark.thorough(every=8)
@pytest.mark.parametrize("name", OPTIONAL)
def test_other_problems_go_without_the_client_and_name_it(name):
    alone = OPTIONAL[name](np.array(0.0))
    assert alone.status is Status.OPTIMAL
    if name == "assign_resource_blocks":
        assert alone.value.block[-1] == -1
    else:
        assert alone.value.bandwidth_hz[..., -1].min() == 0
    assert re.search(NAMED, alone.message)
    both = OPTIONAL[name](np.array([1e7, 0.0]))
    assert both.message.startswith("1 of 2 problems ")
    assert both.message.endswith(f"; item [1]: {alone.message}")
    assert both.objective[1] == alone.objective
    assert OPTIONAL[name](np.array(1e7)).message == ""


def test_all_clients_and_reasons_are_named():
    found = allocate_energy(
        1e5, 1e7, [1e7, 0, 1e7, 0, 1e7], 1e6, deadline_seconds=9.0,
        max_power_watts=[0.1, 0, 0, 0.1, 0.1], max_cpu_hz=[1e9, 1e9, 1e9, 1e9, 0], kappa=1e-28,
    )  # fmt: skip
    assert found.message == (
        "clients 1, 3 cannot send: gain_per_noise is 0; client 2 cannot send: max_power_watts is "
        "0; client 4 cannot compute: max_cpu_hz is 0"
    )


def test_numbers_at_the_limits_fail_alone():
    """Least times from 1e-120 to 1e120 seconds are out of range for the other problems' solver."""
    gain = np.array([1e-60, 1e7])[:, None, None]
    for goal in ({"weights": (1.0, 0.0)}, {"deadline_seconds": 99.0}):
        found = optimize_masks_and_energy(
            np.array([1e60, 1e5])[:, None, None] * np.ones((2, 1)), 1e7, gain, 1e6, 12, **goal,
            **LIMITS,
        )  # fmt: skip
        usual = optimize_masks_and_energy(
            np.full((2, 1), 1e5), 1e7, gain[1], 1e6, 12, **goal, **LIMITS
        )
        assert found.objective[1] == usual.objective
        assert found.status[1] is Status.OPTIMAL
