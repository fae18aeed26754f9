"""Which uploads fail, and what lost and repeated ones cost."""

from dataclasses import dataclass
from itertools import combinations

import numpy as np
import pytest

from channels import (
    ChannelDraw,
    EqualBands,
    EqualSlots,
    FixedRate,
    Load,
    Network,
    ReadyOrder,
    Stream,
)
from solvers import EnergyWithinDeadline, OptimalBands
from wirelessfl.air.delivery import before_failures, delivered
from wirelessfl.air.failures import FAILURES, Failing
from wirelessfl.air.links import AmongParticipants

LOST, REPEAT = {"on_failure": "lost"}, {"on_failure": "repeat"}


@dataclass(frozen=True)
class Half(Failing):
    """The uploads of all clients fail with the same probability."""

    chance: float = 0.5

    def probability(self, snr, draws):
        return np.full(snr.shape, self.chance)


def network(sizes=(3, 2), snr_db=15.0, **changes):
    clients = sum(sizes)
    cell_of = np.repeat(np.arange(len(sizes)), sizes)
    cpu_hz = np.linspace(1e9, 2e9, clients)
    settings = {"cpu_hz": cpu_hz, "snr_db": snr_db, "antennas": 2} | changes
    return Network.from_snr(cell_of, **settings)


def draw(net, blocks=1):
    return net.draws(Stream(4), range(blocks))


LOAD = Load(2e7, 5e4)
ACCESSES = {
    "slots": EqualSlots(),
    "ready": ReadyOrder(),
    "equal": EqualBands(),
    "optimal": OptimalBands(),
    "energy": EnergyWithinDeadline(3.0),
}


@pytest.mark.parametrize("name", ACCESSES)
def test_a_lost_update_takes_its_time_and_energy(name):
    access, draws = ACCESSES[name], draw(network())
    exact = access.serve(LOAD, draws)
    found = delivered(access, LOAD, draws, Half(**LOST), 40, Stream(5))
    assert np.array_equal(found.seconds, exact.seconds)
    assert np.array_equal(found.joules, exact.joules)
    assert found.arrived.shape == (40, 5)
    assert 0.35 < found.arrived.mean() < 0.65
    assert found.transmissions is None


@pytest.mark.parametrize("name", ["slots", "equal", "optimal", "energy"])
def test_a_repeat_takes_the_own_time_and_energy_once_more(name):
    access, draws = ACCESSES[name], draw(network())
    exact = access.serve(LOAD, draws)
    found = delivered(access, LOAD, draws, Half(**REPEAT), 30, Stream(5))
    times, net = found.transmissions, draws.network
    clocks = net.cpu_hz if exact.decision.cpu_hz is None else exact.decision.cpu_hz
    training, heat = 2e7 / clocks, net.switched_capacitance * clocks**2 * 2e7
    np.testing.assert_allclose(found.seconds, training + times * (exact.seconds - training))
    np.testing.assert_allclose(found.joules, heat + times * (exact.joules - heat))
    assert found.arrived.all()


def test_others_wait_for_repeats_in_turns():
    """In order of readiness, an upload starts when those before it have been repeated."""
    draws = draw(network((4,)))
    alone = EqualSlots().serve(Load(0, 5e4), draw(network((4,)))).seconds / 4
    found = delivered(ReadyOrder(), Load(2e7, 5e4), draws, Half(**REPEAT), 10, Stream(5))
    ready = 2e7 / draws.network.cpu_hz
    for edge in range(10):
        free = 0.0
        for client in np.argsort(ready):
            free = max(free, ready[client]) + found.transmissions[edge, client] * alone[0, client]
            assert found.seconds[edge, client] == pytest.approx(free)


def test_the_number_of_transmissions_is_geometric():
    """Its mean is 1 / (1 - q) and P(1) is 1 - q, within 5 standard errors."""
    net = network((2000,))
    found = delivered(EqualSlots(), LOAD, draw(net), Half(**REPEAT, chance=0.7), 4, Stream(6))
    times, count = found.transmissions, 8000
    assert times.min() == 1
    assert abs(times.mean() - 1 / 0.3) < 5 * np.sqrt(0.7 / 0.3**2 / count)
    assert abs((times == 1).mean() - 0.3) < 5 * np.sqrt(0.21 / count)
    # Clients and edge rounds are independent.
    assert abs(np.corrcoef(times[0], times[1])[0, 1]) < 5 / np.sqrt(2000)


def test_failures_do_not_depend_on_the_other_clients():
    net = network()
    draws, some = draw(net), np.array([1, 4])
    whole = delivered(EqualBands(), LOAD, draws, Half(), 6, Stream(7))
    part = delivered(EqualBands(), LOAD, draws.of(some), Half(), 6, Stream(7))
    assert np.array_equal(part.arrived, whole.arrived[:, some])


@pytest.mark.thorough
def test_packet_errors_follow_the_snr_in_the_own_band():
    """Loss rates are 1 - exp(-m / SNR) with the SNR of each client at its power in its band."""
    net = network((3, 2), snr_db=np.array([-3.0, 0, 3, 6, -6]))
    draws, edges = draw(net), 4000
    waterfall = FAILURES.find("waterfall")(waterfall_db=2.0)
    threshold = 10**0.2
    gain = (np.abs(draws.h.astype(complex)) ** 2).sum(-1)[0] * 10 ** (net.snr_db / 10)
    share = {"slots": np.ones(5), "equal": 1 / net.cell_sizes[net.cell_of]}
    solved = OptimalBands().serve(LOAD, draws).decision.bands_hz[0]
    share["optimal"] = solved / net.bandwidth_hz[net.cell_of]
    for name, part in share.items():
        found = delivered(ACCESSES[name], LOAD, draws, waterfall, edges, Stream(8))
        chance = -np.expm1(-threshold * part / gain)
        error = np.sqrt(chance * (1 - chance) / edges)
        assert (np.abs(1 - found.arrived.mean(0) - chance) < 5 * error).all(), name


@dataclass(frozen=True)
class Heard(Half):
    """Uploads that never fail; the SNR with which they could is kept in ``SEEN``."""

    margin: float = 1.0

    def probability(self, snr, draws):
        SEEN.append(snr)
        return np.zeros(snr.shape)


SEEN = []


@pytest.mark.parametrize("margin", [1.0, 2.0])
@pytest.mark.parametrize("name", ACCESSES)
def test_the_snr_of_a_failure_is_that_of_the_rate(name, margin):
    """With interference: P g / (N0 b + I), with I of one client in each band or in the whole one.

    An upload of so many bits in this band, at this SNR, takes the seconds of the service; with a
    margin, at an SNR that is lower by it.
    """
    access, whole = ACCESSES[name], draw(network(bandwidth_hz=[2e6, 5e6]), blocks=2)
    net, rise = whole.network, np.array([[1.5, 3.0], [8.0, 1.0]])
    draws = ChannelDraw(net, whole.h, rise)
    SEEN.clear()
    service = delivered(access, LOAD, draws, Heard(margin=margin), 2, Stream(5))
    (snr,), decision = SEEN, service.decision
    cell, size = net.cell_of, net.cell_sizes[net.cell_of]
    total = net.bandwidth_hz[cell]
    noise = net.transmit_power_w / 10 ** (net.snr_db / 10)  # watts in the whole band
    bands = np.broadcast_to(total if decision.bands_hz is None else decision.bands_hz, (2, 5))
    power = net.transmit_power_w if decision.powers_w is None else decision.powers_w
    heard = (rise[:, cell] - 1) * noise
    if decision.bands_hz is not None:
        heard = size * heard * bands / total
    gain = (np.abs(draws.h.astype(complex)) ** 2).sum(-1)
    expected = power * gain / (noise * bands / total + heard)
    np.testing.assert_allclose(snr, expected, rtol=1e-6)
    if decision.order is None and decision.bands_hz is not None:
        clocks = net.cpu_hz if decision.cpu_hz is None else decision.cpu_hz
        seconds = 2e7 / clocks + 32 * 5e4 / (bands * np.log2(1 + expected / margin))
        np.testing.assert_allclose(service.seconds, seconds, rtol=1e-5)


def test_errors_of_a_channel_are_fractions_of_its_mean_power():
    """Half of the mean gain in h, and the same SNR: as many outages as without a path gain."""
    gain = np.array([-3.0, 0.0, -60.0, 7.0, -110.0])
    plain, faded = network(), network(path_gain_db=gain)
    outage = FAILURES.find("outage")(csi_error=0.3, margin_db=1.0)
    draws = draw(plain, 3)
    h = draws.h * (10 ** (gain / 20))[:, None]
    wanted = outage.probability(draws.snr_hz, draws)
    found = outage.probability(draws.snr_hz, ChannelDraw(faded, h))
    assert (wanted > 0.01).any()
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-9)


def test_outages_follow_the_error_of_the_channel():
    """A true channel h + e carries less than the rate with the loss rate that was drawn."""
    net = network((4,), antennas=2)
    draws, edges = draw(net), 4000
    outage = FAILURES.find("outage")(csi_error=0.3, margin_db=1.0)
    found = delivered(EqualSlots(), LOAD, draws, outage, edges, Stream(9))
    dice, h = np.random.default_rng(0), draws.h[0].astype(complex)
    error = dice.normal(size=(edges, 4, 2, 2)) @ np.array([1, 1j]) * np.sqrt(0.15)
    lost = (np.abs(h + error) ** 2).sum(-1) < (np.abs(h) ** 2).sum(-1) / 10**0.1
    chance = lost.mean(0)
    assert (np.abs(1 - found.arrived.mean(0) - chance) < 0.045).all()
    # Rates are those of an SNR that is 1 dB lower.
    lower = ChannelDraw(net, draws.h / np.sqrt(10**0.1))
    assert np.array_equal(found.seconds, EqualSlots().serve(LOAD, lower).seconds)


def test_a_client_that_sends_nothing_loses_nothing():
    load = Load(2e7, 5e4, vectors=[0, 1, 1, 0, 1])
    found = delivered(EqualBands(), load, draw(network()), Half(chance=1.0), 3, Stream(1))
    assert found.arrived.tolist() == [[True, False, False, True, False]] * 3


def test_uploads_that_always_fail_are_repeated_forever():
    for access in (EqualSlots(), OptimalBands()):
        found = delivered(access, LOAD, draw(network()), Half(**REPEAT, chance=1.0), 1, Stream(1))
        assert np.isinf(found.seconds).all()
        assert not found.arrived.any()


@dataclass(frozen=True)
class Always(Failing):
    """The uploads of one client always fail, and those of the others never."""

    client: int = 2

    def probability(self, snr, draws):
        return np.broadcast_to((draws.network.numbers == self.client) * 1.0, snr.shape)


@pytest.mark.parametrize("name", ["slots", "ready"])
def test_an_upload_in_turns_that_always_fails_is_not_sent(name):
    """Client 2 is the first of its cell; the others end as if it had nothing to send."""
    draws = draw(network())
    found = delivered(ACCESSES[name], LOAD, draws, Always(**REPEAT), 2, Stream(1))
    silent = ACCESSES[name].serve(Load(2e7, 5e4, vectors=[1, 1, 0, 1, 1]), draws)
    others = [0, 1, 3, 4]
    np.testing.assert_allclose(found.seconds[:, others], silent.seconds[[0, 0]][:, others])
    np.testing.assert_allclose(found.joules, silent.joules[[0, 0]])
    assert found.arrived.tolist() == [[True, True, False, True, True]] * 2
    assert np.isinf(found.seconds[:, 2]).all()


@pytest.mark.parametrize("name", ["slots", "ready", "equal", "optimal"])
def test_an_upload_without_a_channel_never_arrives(name):
    whole = draw(network())
    h = whole.h * (np.arange(5) != 1)[:, None]
    found = delivered(
        ACCESSES[name], LOAD, ChannelDraw(whole.network, h), Half(**REPEAT), 3, Stream(1)
    )
    assert found.arrived.tolist() == [[True, False, True, True, True]] * 3


def test_decisions_before_a_round_know_the_margin():
    """Brute force over pairs: the soonest at the rates that are sent.

    Others are the soonest without the margin, or with the margin twice.
    """
    net = network((5,), snr_db=np.array([0.0, 4, 8, 12, 30]), cpu_hz=[9e9, 4e8, 1.6e8, 1.2e8, 1e8])
    draws, lossy = draw(net), FAILURES.find("outage")(csi_error=0.1, margin_db=6.0)

    def end(pair):
        part = draws.of(np.array(pair))
        return delivered(EqualBands(), LOAD, part, lossy, 1, Stream(1)).seconds.max()

    access = before_failures(EqualBands(), lossy)
    assert before_failures(EqualBands(), Half()) == EqualBands()
    best = min(combinations(range(5), 2), key=end)
    assert np.flatnonzero(access.soonest(LOAD, draws, np.array([2]))[0]).tolist() == [*best]
    assert np.flatnonzero(EqualBands().soonest(LOAD, draws, np.array([2]))[0]).tolist() != [*best]
    served = delivered(EqualBands(), LOAD, draws, lossy, 1, Stream(1))
    assert np.array_equal(access.seconds(LOAD, draws), served.seconds)
    assert np.array_equal(access.serve(LOAD, draws).seconds, served.seconds)
    assert access.coupled == EqualBands.coupled
    assert access.ranks_alone
    joint = before_failures(OptimalBands(), lossy)
    assert joint.coupled
    assert not joint.ranks_alone


def test_equal_shares_of_participants_fail_at_the_snr_in_their_bands():
    """As in a network of the participants alone; who stays out waits and spends nothing."""
    some, lone = np.array([0, 2, 3, 4]), Stream(7)
    draws, joins = draw(network()), np.tile(np.isin(np.arange(5), some), (5, 1))
    waterfall = FAILURES.find("waterfall")(waterfall_db=12.0, **REPEAT)
    found = delivered(AmongParticipants(EqualBands(), joins), LOAD, draws, waterfall, 5, lone)
    alone = delivered(EqualBands(), LOAD, draws.of(some), waterfall, 5, lone)
    assert alone.transmissions.max() > 1
    np.testing.assert_array_equal(found.transmissions[:, some], alone.transmissions)
    np.testing.assert_allclose(found.seconds[:, some], alone.seconds)
    np.testing.assert_allclose(found.joules[:, some], alone.joules)
    assert (found.seconds[:, 1] == 0).all()
    assert (found.joules[:, 1] == 0).all()


@pytest.mark.parametrize(("cutoff", "begun"), [(-1.5, 0), (0.5, 1), (1.0, 1), (2.5, 3), (3.0, 3)])
def test_uploads_that_begin_before_the_cut_off_are_counted_and_one_more(cutoff, begun):
    """One that always fails takes longer than the cut-off, also where it is a multiple."""
    draws, always = draw(network((1,), cpu_hz=1e9)), Half(**REPEAT, chance=1.0)
    training = 0.5  # seconds
    once = EqualBands().serve(Load(5e8, 5e4), draws).seconds[0, 0] - training
    end = training + cutoff * once * (1 - 1e-9)
    found = delivered(EqualBands(), Load(5e8, 5e4), draws, always, 2, Stream(5), end)
    assert (found.transmissions == begun + 1).all()
    assert (found.seconds > end).all()


def test_clients_that_stay_out_deliver_nothing():
    joins = np.tile(np.isin(np.arange(5), [0, 2, 3]), (4, 1))
    access, seldom = AmongParticipants(EqualBands(), joins), Half(**LOST, chance=1e-9)
    found = delivered(access, LOAD, draw(network()), seldom, 4, Stream(7))
    assert np.array_equal(found.arrived, joins)


@pytest.mark.parametrize("access", [FixedRate(1e6, wait="mean"), EnergyWithinDeadline(3.0)])
def test_repeats_take_the_airtime_once_more(access):
    """In links that clients do not wait for, and in bands that an access has decided on."""
    draws = draw(network())
    once = access.serve(LOAD, draws)
    found = delivered(access, LOAD, draws, Half(**REPEAT), 30, Stream(5))
    assert found.transmissions.max() > 1
    np.testing.assert_allclose(found.airtime_seconds, found.transmissions * once.airtime_seconds)


def test_clients_that_a_deadline_leaves_out_never_send():
    """The others repeat, in the bands that the access has decided on."""
    net = network((3, 2), cpu_hz=[1e9, 1e9, 1e7, 1e9, 1e9])  # 2 s of local steps
    access = EnergyWithinDeadline(1.0, late="lost")
    found = delivered(access, LOAD, draw(net), Half(**REPEAT), 20, Stream(5))
    assert (found.transmissions[:, 2] == 0).all()
    assert not found.arrived[:, 2].any()
    others = [0, 1, 3, 4]
    assert found.arrived[:, others].all()
    assert found.transmissions[:, others].min() == 1
    assert found.transmissions[:, others].max() > 1
