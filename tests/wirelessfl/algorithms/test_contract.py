"""Units of the payloads that algorithms send."""

from dataclasses import dataclass

import pytest

from wirelessfl.algorithms.fedavg import FedAvg
from wirelessfl.training.rules import Payload


@dataclass(frozen=True)
class InServerSteps(FedAvg):
    """Defines its own unit for payloads."""

    def unit(self, payload, local_steps):
        return self.server_lr * local_steps


def test_units_of_payloads():
    """The unit is lr, 1, or defined by the algorithm; unknown unit names raise an error."""
    rule = FedAvg(lr=0.3, server_lr=0.5)
    assert rule.unit(Payload("update", unit="lr"), 7) == 0.3
    assert rule.unit(Payload("update"), 7) == 1.0
    assert InServerSteps(server_lr=0.5).unit(Payload("update", unit="lr"), 7) == 3.5
    with pytest.raises(ValueError, match=r"unit of payload 'update' is 'server_lr': choose 'lr'"):
        Payload("update", unit="server_lr")
