"""Declarations of algorithms: units of payloads."""

from dataclasses import dataclass

import pytest

from wirelessfl.algorithms.fedavg import FedAvg
from wirelessfl.training.payloads import Payload


@dataclass(frozen=True)
class InServerSteps(FedAvg):
    """Its payload is sent over the air in a unit of its own."""

    def unit(self, payload, local_steps):
        return self.server_lr * local_steps


def test_payloads_are_sent_in_steps_or_as_they_are():
    rule = FedAvg(lr=0.3, server_lr=0.5)
    assert rule.unit(Payload("update", unit="lr"), 7) == 0.3
    assert rule.unit(Payload("update"), 7) == 1.0
    assert InServerSteps(server_lr=0.5).unit(Payload("update", unit="lr"), 7) == 3.5
    with pytest.raises(ValueError, match=r"unit of payload 'update' is 'server_lr': choose 'lr'"):
        Payload("update", unit="server_lr")
