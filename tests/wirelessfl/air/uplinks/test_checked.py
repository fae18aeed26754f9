"""What a user's access returns is checked, and errors name the uplink and the method."""

from dataclasses import dataclass, replace

import numpy as np
import pytest

from channels import Access, EqualSlots, Load, Network, Stream
from wirelessfl.air.uplinks.checked import check_arrived, checked_access, serving
from wirelessfl.air.uplinks.tdma import Tdma
from wirelessfl.base.errors import ConfigError, TrainingError

NETWORK = Network.from_snr([0, 0, 1], cpu_hz=1e9, snr_db=[3, 9, 5])
LOAD, DRAW = Load(elements=[10.0, 20.0, 5.0], cycles=1e6), NETWORK.draw(Stream(1))
SNR = np.array([1.0, 3.0])


@dataclass(frozen=True)
class Changed(Access):
    """Equal slots, whose answers are changed."""

    change: object

    def serve(self, load, draw):
        return self.change(EqualSlots().serve(load, draw))

    def rates(self, snr, bandwidth_hz):
        return self.change(EqualSlots().rates(snr, bandwidth_hz))


@dataclass(frozen=True)
class OfRounds(Access):
    def serve(self, load, draw):
        return EqualSlots().serve(load, draw)


@dataclass(frozen=True)
class Own(Tdma):
    own: object = None

    @property
    def access(self):
        return self.own


def checked(change):
    return checked_access(Own(own=Changed(change)))


def test_an_access_of_the_package_is_not_wrapped():
    assert checked_access(Tdma()) == EqualSlots()
    assert checked_access(Own(own=EqualSlots())) == EqualSlots()


def test_valid_answers_are_unchanged():
    access = checked(lambda valid: valid)
    served, expected = access.serve(LOAD, DRAW), EqualSlots().serve(LOAD, DRAW)
    assert np.array_equal(served.seconds, expected.seconds)
    assert np.array_equal(served.joules, expected.joules)
    assert served.arrived.all()
    rates, expected = access.rates(SNR, 1e6), EqualSlots().rates(SNR, 1e6)
    assert np.array_equal(rates.bps, expected.bps)
    assert np.array_equal(rates.duty, expected.duty)


def test_what_never_arrives_may_take_forever():
    lost = np.array([False, True, False])
    access = checked(
        lambda valid: replace(valid, seconds=np.where(lost, np.inf, valid.seconds), arrived=~lost)
    )
    assert np.isinf(access.serve(LOAD, DRAW).seconds).tolist() == lost.tolist()


def test_one_answer_for_all_blocks_is_broadcast():
    cut = Load(elements=np.ones((4, 3)))
    access = checked(
        lambda valid: replace(
            valid, seconds=np.ones(3), joules=np.ones(3), arrived=np.ones(3, bool)
        )
    )
    served = access.serve(cut, DRAW)
    assert served.seconds.shape == served.joules.shape == served.arrived.shape == (4, 3)


def test_whether_clients_wait_for_each_other_is_the_users_answer():
    """Widths by deadline are found client by client unless the access says otherwise."""

    class Queue(OfRounds):
        coupled = True

    assert checked_access(Own(own=Queue())).coupled
    assert not checked_access(Own(own=OfRounds())).coupled


def test_what_an_access_cannot_serve_names_the_uplink():
    with (
        pytest.raises(ConfigError, match=r"^uplink 'x', round 2: no band$"),
        serving("uplink 'x', round 2"),
    ):
        raise ValueError("no band")
    with pytest.raises(ConfigError, match=r"^as it is$"), serving("uplink 'x'"):
        raise ConfigError("as it is")


def test_an_update_that_does_not_arrive_names_its_client():
    valid = EqualSlots().serve(LOAD, DRAW)
    check_arrived(valid, np.array([4, 7, 9]), "uplink 'x'")
    lost = replace(valid, arrived=np.array([[True, True, True], [True, False, True]]))
    with pytest.raises(ConfigError, match=r"^uplink 'x': the update of client 7 does not arrive"):
        check_arrived(lost, np.array([4, 7, 9]), "uplink 'x'")


def test_whether_clients_may_upload_at_any_time_is_the_users_answer():
    assert checked(None).asynchronous
    assert not checked_access(Own(own=OfRounds())).asynchronous


SERVE = [
    (lambda valid: None, r"access.serve returned None. Return a value of type channels.Service"),
    (lambda valid: replace(valid, seconds=valid.seconds[:2]), r"float64 \[2\] as seconds"),
    (lambda valid: replace(valid, seconds=-valid.seconds), r"-\S+ at \[0\] as seconds"),
    (lambda valid: replace(valid, seconds=np.full(3, np.inf)), r"inf at \[0\] as seconds.*arrives"),
    (lambda valid: replace(valid, joules=valid.joules * np.nan), r"nan at \[0\] as joules"),
    (lambda valid: replace(valid, joules=0.0), r"0.0 as joules"),
    (lambda valid: replace(valid, arrived=np.ones(3)), r"float64 \[3\] as arrived"),
]
RATES = [
    (lambda valid: (valid.bps, valid.duty), r"access.rates returned \(.*of type channels.Rates"),
    (lambda valid: replace(valid, bps=valid.bps[:1]), r"float64 \[1\] as bps"),
    (lambda valid: replace(valid, bps=valid.bps * np.inf), r"inf at \[0\] as bps"),
    (lambda valid: replace(valid, bps=0 * valid.bps), r"float64 \[2\] of 0 as bps.*rate > 0"),
    (lambda valid: replace(valid, duty=2 * np.ones(2)), r"2.0 as duty.*from 0 to 1"),
]


@pytest.mark.parametrize(("change", "text"), SERVE)
def test_a_wrong_service_is_refused(change, text):
    with pytest.raises(ConfigError, match=rf"^uplink '{__name__}:Own': .*{text}") as caught:
        checked(change).serve(LOAD, DRAW)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(("change", "text"), RATES)
def test_wrong_rates_are_refused(change, text):
    with pytest.raises(ConfigError, match=rf"^uplink '{__name__}:Own': .*{text}"):
        checked(change).rates(SNR, 1e6)


@pytest.mark.parametrize("method", ["serve", "rates"])
def test_an_exception_names_uplink_and_method(method):
    access = checked(lambda valid: {}["nothing"])
    arguments = (LOAD, DRAW) if method == "serve" else (SNR, 1e6)
    with pytest.raises(TrainingError, match=f"Own', access.{method}: KeyError: 'nothing'"):
        getattr(access, method)(*arguments)


@dataclass(frozen=True)
class Choosing(OfRounds):
    """Chooses clients by a rule of its own."""

    chosen: object

    def soonest(self, load, draw, counts):
        return self.chosen


def test_the_clients_that_end_soonest():
    """The default of a user's access is that of the slots that it computes with."""
    counts = np.array([1, 1])
    expected = EqualSlots().soonest(LOAD, DRAW, counts)
    assert np.array_equal(checked(lambda valid: valid).soonest(LOAD, DRAW, counts), expected)
    own = np.array([False, True, True])
    access = checked_access(Own(own=Choosing(own)))
    assert access.soonest(LOAD, DRAW, counts).tolist() == own.tolist()


@pytest.mark.parametrize(
    ("chosen", "text"),
    [
        (np.array([True, True, True]), "access.soonest returned 2 clients of cell 0. Return bool"),
        (np.array([1, 0, 1]), "access.soonest returned int64 [3]. Return booleans of shape [3]"),
        (np.ones(2, dtype=bool), "access.soonest returned bool [2]"),
        (None, "access.soonest returned None"),
    ],
)
def test_wrong_clients_that_end_soonest(chosen, text):
    with pytest.raises(ConfigError) as caught:
        checked_access(Own(own=Choosing(chosen))).soonest(LOAD, DRAW, np.array([1, 1]))
    assert text in str(caught.value)
