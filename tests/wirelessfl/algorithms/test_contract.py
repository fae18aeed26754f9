"""What algorithms declare: units of payloads, and when their servers merge."""

from dataclasses import dataclass

import pytest

from channels.streams import Stream
from wirelessfl.algorithms import algorithm_classes, find_algorithm
from wirelessfl.algorithms.fedavg import FedAvg
from wirelessfl.algorithms.timing import Timing
from wirelessfl.assignment import BanditAssignment, BayesAssignment, RandomAssignment
from wirelessfl.training.payloads import Payload


@dataclass(frozen=True)
class InServerSteps(FedAvg):
    """Its payload crosses the air in a unit of its own."""

    def unit(self, payload, local_steps):
        return self.server_lr * local_steps


def test_payloads_are_sent_in_steps_or_as_they_are():
    rule = FedAvg(lr=0.3, server_lr=0.5)
    assert rule.unit(Payload("update", unit="lr"), 7) == 0.3
    assert rule.unit(Payload("update"), 7) == 1.0
    assert InServerSteps(server_lr=0.5).unit(Payload("update", unit="lr"), 7) == 3.5
    with pytest.raises(ValueError, match=r"unit of payload 'update' is 'server_lr': choose 'lr'"):
        Payload("update", unit="server_lr")


def test_those_of_one_model_in_rounds_say_nothing_of_time():
    """And each other one either has asynchronous requests or common rounds, never both."""
    for name, cls in algorithm_classes().items():
        timing = cls().timing
        asynchronous, common = timing.buffering is not None, timing.common_rounds is not None
        assert timing.rounds == (timing == Timing()), name
        assert asynchronous + common + timing.rounds == 1, name
        settings = vars(cls())
        assert set(timing.shared) <= set(settings), name
        assert asynchronous == ("requests" in settings), name


def test_settings_of_time_are_those_given():
    dynamic = find_algorithm("fedast")(
        option="D", requests=8, buffer=2, floor=3, period=1.5, lr=0.2
    )
    buffering = dynamic.timing.buffering
    assert (buffering.requests, buffering.buffer, buffering.floor) == (8, 2, 3)
    assert buffering.scales
    assert (buffering.reallocation.period, buffering.reallocation.updates) == (1.5, 8)
    assert find_algorithm("fedast")(option="S").timing.buffering.reallocation is None
    for name in ("fedasync", "fedast-nobuffer"):
        alone = find_algorithm(name)(requests=5).timing.buffering
        assert (alone.requests, alone.buffer, alone.scales) == (5, 1, False)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("sync-st", RandomAssignment),
        ("sync-bayes-st", BayesAssignment),
        ("sync-ucb-st", BanditAssignment),
    ],
)
def test_common_rounds_differ_by_their_assignment(name, kind):
    common = find_algorithm(name)(first=4).timing.common_rounds
    assert common.first == 4
    assert type(common.assignment(6, 2, Stream(1))) is kind
