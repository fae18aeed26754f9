"""What holds of the access of every built-in uplink, on a network of two cells."""

from dataclasses import replace

import numpy as np
import pytest

from channels import Load, section_vi_c
from channels.streams import Stream
from wirelessfl.air.uplinks import UPLINKS

CLIENTS = 6
STREAM = Stream(7)
NETWORK = section_vi_c(2, CLIENTS, stream=STREAM.child("network"))
DRAW = NETWORK.draw(STREAM.child("channel"), 3)
CYCLES = np.array([3e6, 1e6, 5e6, 2e6, 2e6, 4e6])
ELEMENTS = np.array([3000.0, 1000.0, 2000.0, 500.0, 4000.0, 1500.0])
each_access = pytest.mark.parametrize(
    "access", [cls().access for _, cls in sorted(UPLINKS.classes().items())]
)


def seconds(access, elements=ELEMENTS, draw=DRAW):
    served = access.serve(Load(CYCLES, elements), draw).seconds
    return np.broadcast_to(served, draw.h.shape[:-1])


@each_access
def test_no_update_arrives_before_its_client_has_trained(access):
    ready = Load(CYCLES, ELEMENTS).ready_seconds(NETWORK)
    assert (seconds(access) >= ready * (1 - 1e-9)).all()


@each_access
def test_several_draws_are_served_at_once(access):
    other = NETWORK.draw(STREAM.child("channel"), 4)
    both = seconds(access, draw=replace(DRAW, h=np.stack([DRAW.h, other.h])))
    for together, draw in zip(both, (DRAW, other), strict=True):
        np.testing.assert_allclose(together, seconds(access, draw=draw), rtol=1e-9)


@each_access
@pytest.mark.parametrize("client", range(CLIENTS))
def test_clients_affect_others_of_their_cell_only_and_only_if_coupled(access, client):
    more = np.where(np.arange(CLIENTS) == client, 3, 1) * ELEMENTS
    changed = ~np.isclose(seconds(access), seconds(access, more), rtol=1e-9, atol=0)
    changed[client] = False
    allowed = access.coupled & (NETWORK.cell_of == NETWORK.cell_of[client])
    assert not (changed & ~allowed).any()


@each_access
def test_more_elements_take_no_less_time(access):
    assert (seconds(access, 2 * ELEMENTS) >= seconds(access) * (1 - 1e-9)).all()
