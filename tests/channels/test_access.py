"""Each access against a plain Python loop over the clients of each cell."""

import itertools
import math
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from channels import (
    Access,
    ChannelDraw,
    EqualBands,
    EqualSlots,
    FixedRate,
    Load,
    Network,
    ReadyOrder,
    Simultaneous,
    Stream,
)

SECONDS, SUBCARRIER = 1e-4, 1e4
MBPS = 2e6


@dataclass
class Job:
    """What client i does in one block, in plain numbers."""

    ready: float
    bits: float
    training: float  # joules
    watts: float
    band: float
    snr: float  # received, over the whole band
    vectors: float
    elements: float
    jointly: float

    def rate(self, share=1.0):
        return share * self.band * math.log1p(self.snr / share) / math.log(2)

    def alone(self, share=1.0):
        """Seconds of an upload with a share of the band."""
        if not self.bits:
            return 0.0
        rate = self.rate(share)
        return self.bits / rate if rate else math.inf


def jobs_of(load, draw):
    """One list of jobs per cell, for each combination of leading axes."""
    network, fields = draw.network, {}
    shape = np.broadcast_shapes(draw.gain.shape, load.cycles.shape, load.elements.shape)
    for name in ("cycles", "elements", "vectors", "jointly", "start_seconds", "pilot_symbols"):
        fields[name] = np.broadcast_to(getattr(load, name), shape)
    gain = np.broadcast_to(draw.gain, shape)
    for at in np.ndindex(shape[:-1]):
        cells = [[] for _ in range(network.cells)]
        turns = [0.0] * network.cells
        for i in range(network.clients):
            turns[network.cell_of[i]] += float(fields["pilot_symbols"][at][i])
        for i in range(network.clients):
            one = {name: float(values[at][i]) for name, values in fields.items()}
            hz, cell = float(network.cpu_hz[i]), network.cell_of[i]
            kappa, band = float(network.switched_capacitance[i]), float(network.bandwidth_hz[cell])
            watts = float(network.transmit_power_w[i])
            cells[cell].append(
                Job(
                    ready=one["start_seconds"] + turns[cell] / band + one["cycles"] / hz,
                    bits=load.bits_per_element * one["vectors"] * one["elements"],
                    training=kappa * hz * hz * one["cycles"] + watts * one["pilot_symbols"] / band,
                    watts=watts,
                    band=band,
                    snr=10 ** (float(network.snr_db[i]) / 10) * float(gain[at][i]),
                    vectors=one["vectors"],
                    elements=one["elements"],
                    jointly=one["jointly"],
                )
            )
        yield at, cells


def finite(seconds):
    return seconds if seconds < np.inf else 0.0


def equal_slots(jobs):
    """A client whose upload would never end does not send."""
    return [
        (job.ready + len(jobs) * job.alone(), job.training + job.watts * finite(job.alone()))
        for job in jobs
    ]


def equal_bands(jobs):
    took = [job.alone(1 / len(jobs)) for job in jobs]
    return [
        (job.ready + seconds, job.training + job.watts * finite(seconds))
        for job, seconds in zip(jobs, took, strict=True)
    ]


def in_order(jobs, order):
    """End of each upload if the clients send one by one in this order."""
    now, ends = 0.0, [0.0] * len(jobs)
    for i in order:
        now = ends[i] = max(now, jobs[i].ready) + jobs[i].alone()
    return ends


def ready_order(jobs):
    """Clients without bits or without a channel do not take part."""
    found = []
    sends = [i for i, job in enumerate(jobs) if 0 < job.alone() < math.inf]
    ends = in_order(jobs, sorted(sends, key=lambda i: (jobs[i].ready, i)))
    for i, job in enumerate(jobs):
        took = job.alone()
        sent = job.watts * took if took < math.inf else 0.0
        found.append((ends[i] if i in sends else job.ready + took, job.training + sent))
    return found


def fixed_mean(jobs):
    mean = sum(job.vectors for job in jobs) / len(jobs) if jobs else 0.0
    return [(job.ready + 32 * mean * job.elements / MBPS, job.training) for job in jobs]


def fixed_slowest(jobs):
    return [(job.ready + 32 * job.vectors * job.elements / MBPS, job.training) for job in jobs]


def simultaneous(jobs):
    found = []
    for job in jobs:
        each = SECONDS / (job.band / SUBCARRIER) / 2
        sent = 0.3 * job.watts * job.vectors * job.elements * each
        found.append((job.ready + job.vectors * job.jointly * each, job.training + sent))
    return found


AIR = Simultaneous(
    power=0.3, elements_per_symbol=2, subcarrier_hz=SUBCARRIER, symbol_seconds=SECONDS
)
CASES = {
    "equal slots": (EqualSlots(), equal_slots),
    "equal bands": (EqualBands(), equal_bands),
    "ready order": (ReadyOrder(), ready_order),
    "fixed rate, mean": (FixedRate(MBPS, "mean"), fixed_mean),
    "fixed rate, slowest": (FixedRate(MBPS), fixed_slowest),
    "simultaneous": (AIR, simultaneous),
}
each_case = pytest.mark.parametrize(("access", "loop"), CASES.values(), ids=CASES)


@st.composite
def problems(draw):
    """A load with some empty uploads and a draw with some zero channels and empty cells."""
    sizes = draw(st.lists(st.integers(1, 4), min_size=1, max_size=3))
    clients, rng = sum(sizes), np.random.default_rng(draw(st.integers(0, 2**32)))
    network = Network(
        np.repeat(np.arange(len(sizes)), sizes),
        cpu_hz=10 ** rng.uniform(8, 10, clients),
        gain_db=rng.uniform(-120, -80, clients),
        transmit_power_w=rng.uniform(0.01, 1, clients),
        bandwidth_hz=10 ** rng.uniform(5, 7, len(sizes)),
        noise_figure_db=5.0,
        antennas=2,
    )
    blocks = draw(st.sampled_from([(), (2,), (2, 1)]))
    channels = rng.standard_normal((*blocks, clients, 4)).view(complex)
    channels *= (rng.random((*blocks, clients, 1)) < 0.9) | draw(st.booleans())
    made = ChannelDraw(network, channels)
    some = np.flatnonzero(rng.random(clients) < 0.7) if draw(st.booleans()) else network.numbers
    made = made.of(some)
    shapes = {(): [(), (3,)], (2,): [(), (2,), (3, 1), (3, 2)], (2, 1): [(), (1, 3)]}
    leading = draw(st.sampled_from(shapes[blocks]))
    shape = (*leading, len(some))
    elements = rng.integers(0, 5000, shape) * (rng.random(shape) < 0.8)
    load = Load(
        rng.choice([0.0, 1e6, 1e9], shape),
        elements,
        vectors=rng.choice([0, 0.5, 1, 2], shape[draw(st.sampled_from([0, -1])) :]),
        jointly=elements + rng.integers(0, 99, shape),
        start_seconds=rng.choice([0, 0.5], shape[-1:]),
        pilot_symbols=rng.choice([0, 1000], shape[-1:]),
    )
    return load, made


@pytest.mark.thorough(every=8)
@each_case
@given(problem=problems())
def test_seconds_and_joules_are_those_of_a_loop(access, loop, problem):
    load, draw = problem
    served = access.serve(load, draw)
    wanted = np.empty((2, *served.seconds.shape))
    for at, cells in jobs_of(load, draw):
        clients = [pair for jobs in cells for pair in loop(jobs)]
        wanted[(slice(None), *at)] = np.reshape(clients, (-1, 2)).T
    assert served.joules.shape == served.arrived.shape == served.seconds.shape
    np.testing.assert_allclose(served.seconds, wanted[0], rtol=1e-9)
    np.testing.assert_allclose(served.joules, wanted[1], rtol=1e-9)
    assert (served.arrived == np.isfinite(wanted[0])).all()


@given(problems())
def test_no_order_of_sending_ends_earlier(problem):
    """Brute force over all orders of the clients that can send."""
    load, draw = problem
    served = ReadyOrder().serve(load, draw)
    for at, cells in jobs_of(load, draw):
        first = 0
        for jobs in cells:
            mine = slice(first, first + len(jobs))
            first += len(jobs)
            sends = [i for i, job in enumerate(jobs) if 0 < job.alone() < math.inf]
            if not sends:
                continue
            orders = itertools.permutations(sends)
            best = min(max(in_order(jobs, order)) for order in orders)
            assert served.seconds[at][mine][sends].max() == pytest.approx(best, rel=1e-9)
            places = served.decision.order[at][mine]
            assert sorted(places) == list(range(len(jobs)))
            ready = [jobs[i].ready for i in np.argsort(places)]
            assert ready == sorted(ready)


def test_ready_order_in_numbers():
    """Client 2 is ready first; ties go to the lower index; the other cell does not wait."""
    network = Network.from_snr([0, 0, 0, 1], cpu_hz=1e9, snr_db=0.0, bandwidth_hz=1e3)
    draw = ChannelDraw(network, np.ones((4, 1)))  # 1000 bit/s
    load = Load([2e9, 2e9, 1e9, 0], 125 / 4)  # 1000 bits
    served = ReadyOrder().serve(load, draw)
    assert served.seconds == pytest.approx([3, 4, 2, 1])
    assert served.decision.order.tolist() == [1, 2, 0, 0]
    late = ReadyOrder().serve(Load([2e9, 9e9, 1e9, 0], 125 / 4), draw)
    assert late.seconds == pytest.approx([3, 10, 2, 1])  # the band is idle before client 1


def test_a_client_that_cannot_send_does_not_block_others():
    network = Network.from_snr([0, 0, 0], cpu_hz=1e9, snr_db=0.0, bandwidth_hz=1e3)
    draw = ChannelDraw(network, np.array([[0], [1], [1]]))
    load = Load([0, 1e9, 2e9], [125 / 4, 125 / 4, 0], start_seconds=[0, 0, -0.0])
    served = ReadyOrder().serve(load, draw)
    assert served.seconds == pytest.approx([math.inf, 2, 2])
    assert served.arrived.tolist() == [False, True, True]
    assert np.isfinite(served.joules).all()


def test_clients_without_bits_neither_wait_nor_delay_others():
    """Client 0 sends from 1 to 2 s; 1 and 3 only train, until 1.5 s and as the last, until 5 s."""
    network = Network.from_snr([0, 0, 0, 0], cpu_hz=1e9, snr_db=0.0, bandwidth_hz=1e3)
    draw = ChannelDraw(network, np.ones((4, 1)))
    load = Load([1e9, 1.5e9, 2.5e9, 5e9], np.array([125, 0, 125, 0]) / 4)
    served = ReadyOrder().serve(load, draw)
    assert served.seconds == pytest.approx([2, 1.5, 3.5, 5])
    assert served.decision.order.tolist() == [0, 1, 2, 3]
    assert served.airtime_seconds == pytest.approx([1, 0, 1, 0])
    for count, chosen in ((1, [1]), (2, [0, 1]), (3, [0, 1, 2]), (4, [0, 1, 2, 3])):
        found = ReadyOrder().soonest(load, draw, np.array([count]))
        assert np.flatnonzero(found).tolist() == chosen


@pytest.mark.parametrize("wait", ["mean", "slowest"])
def test_links_are_busy_for_their_own_vectors(wait):
    """Whatever the others wait for: 32 bits x vectors x 1000 elements at 1 Mbit/s."""
    network = Network.from_snr([0, 0, 1], cpu_hz=1e9, snr_db=0.0)
    draw = ChannelDraw(network, np.ones((2, 3, 1)))
    served = FixedRate(1e6, wait).serve(Load(0.0, 1e3, vectors=[1.0, 3.0, 2.0]), draw)
    waits = [0.064, 0.064, 0.064] if wait == "mean" else [0.032, 0.096, 0.064]
    assert served.seconds == pytest.approx(np.tile(waits, (2, 1)))
    assert served.airtime_seconds == pytest.approx(np.tile([0.032, 0.096, 0.064], (2, 1)))


@each_case
def test_no_bits_take_no_time_at_rate_0(access, loop):
    """Trained updates arrive, and one with bits does not, unless the link is wired or analog."""
    network = Network.from_snr([0, 0], cpu_hz=1e9, snr_db=0.0)
    draw = ChannelDraw(network, np.zeros((2, 1)))
    served = access.serve(Load(1e9, [0, 5]), draw)
    assert served.seconds[0] == 1
    assert served.joules[0] == pytest.approx(network.switched_capacitance[0] * 1e27)
    needs_channel = isinstance(access, EqualBands | EqualSlots | ReadyOrder)
    assert served.arrived.tolist() == [True, not needs_channel]


@pytest.mark.thorough(every=8)
@each_case
@pytest.mark.parametrize("clients", [[0, 4], []])
def test_axes_of_sizes_and_blocks(access, loop, clients):
    """Sizes [sizes, 1, clients] and blocks [blocks, clients] give [sizes, blocks, clients].

    Each entry equals what its size gives in its block. Cell 1 is empty.
    """
    network = Network.from_snr([0, 0, 1, 2, 2], cpu_hz=1e9, snr_db=[0, 10, 20, 5, 3])
    draws = network.draws(Stream(1), range(3), clients)
    sizes = np.arange(4)[:, None, None] * np.ones(len(clients)) * 100
    served = access.serve(Load(1e6, sizes), draws)
    assert served.seconds.shape == served.joules.shape == (4, 3, len(clients))
    for size, block in np.ndindex(4, 3):
        one = access.serve(Load(1e6, sizes[size, 0]), network.draw(Stream(1), block, clients))
        assert (served.seconds[size, block] == one.seconds).all()
        assert (served.joules[size, block] == one.joules).all()


@each_case
@pytest.mark.parametrize(
    "fields",
    [
        {"cycles": np.ones((2, 3)) * 1e6},
        {"elements": np.ones((2, 3)) * 100},
        {"vectors": np.ones((2, 3)), "elements": 9},
        {"jointly": np.ones((2, 3)), "elements": 1},
        {"start_seconds": np.ones((2, 1)), "elements": 9},
    ],
    ids=lambda fields: next(iter(fields)),
)
def test_one_field_may_have_leading_axes(access, loop, fields):
    network = Network.from_snr([0, 0, 1], cpu_hz=1e9, snr_db=10.0)
    served = access.serve(Load(**fields), network.draw(Stream(1)))
    wide = "jointly" not in fields or isinstance(access, Simultaneous)
    shape = (2, 3) if wide else (3,)
    assert served.seconds.shape == served.joules.shape == served.arrived.shape == shape


def test_equal_bands_say_what_they_decide():
    network = Network.from_snr([0, 0, 1], cpu_hz=1e9, snr_db=10.0, bandwidth_hz=[1e6, 3e6])
    served = EqualBands().serve(Load(elements=9), network.draws(Stream(1), [0, 1]))
    assert served.decision.bands_hz.tolist() == [[5e5, 5e5, 3e6]] * 2


@pytest.mark.parametrize("access", [EqualSlots(), EqualBands(), FixedRate(MBPS)])
def test_rates_are_those_of_rounds_in_which_all_upload(access):
    """Bits over rate are the seconds of the upload, and power times duty are its joules."""
    network = Network.from_snr([0] * 4, cpu_hz=1e9, snr_db=[0, 5, 10, 20], antennas=2)
    draw = network.draw(Stream(1))
    load = Load(elements=[100, 200, 300, 400])
    served = access.serve(load, draw)
    assert access.asynchronous
    rates = access.rates(draw.snr * draw.gain, float(network.bandwidth_hz[0]))
    assert load.bits / rates.bps == pytest.approx(served.seconds, rel=1e-12)
    watts = network.transmit_power_w * rates.duty
    assert served.joules == pytest.approx(served.seconds * watts, rel=1e-12)


def test_rates_in_order_of_readiness():
    """Clients that start in turn finish in turn, as in a round; only the sender uses energy."""
    network = Network.from_snr([0] * 3, cpu_hz=1e9, snr_db=[0, 10, 20])
    draw, load = network.draw(Stream(1)), Load(elements=[1e4, 2e4, 3e4])
    access, band = ReadyOrder(), float(network.bandwidth_hz[0])
    served = access.serve(load, draw)
    left, now, snr = list(load.bits), 0.0, draw.snr * draw.gain
    for done in range(3):
        rates = access.rates(snr[done:], band)
        assert rates.duty.tolist() == [1, 0, 0][: 3 - done]
        assert rates.bps[1:].tolist() == [0] * (2 - done)
        took = left[done] / rates.bps[0]
        now += took
        assert served.seconds[done] == pytest.approx(now, rel=1e-12)
        assert served.joules[done] == pytest.approx(0.1 * took, rel=1e-12)


def test_rates_without_uploads_are_empty():
    for access in (EqualSlots(), EqualBands(), FixedRate(1e6), ReadyOrder()):
        rates = access.rates(np.empty(0), 1e6)
        assert rates.bps.shape == rates.duty.shape == (0,)


def test_simultaneous_uploads_have_no_rates():
    assert not AIR.asynchronous
    with pytest.raises(NotImplementedError, match=r"^Simultaneous serves whole rounds only"):
        AIR.rates(np.ones(2), 1e6)


def test_power_over_the_air_may_differ_between_clients():
    """A client sends its mean fraction of its own maximum while it sends."""
    network = Network.from_snr([0, 0], cpu_hz=1e9, snr_db=0, transmit_power_w=[0.1, 0.4])
    draws, load = network.draws(Stream(1), [0, 1]), Load(elements=[100, 50], jointly=120)
    full = Simultaneous().serve(load, draws)
    each = (1e-3 / 14) / (9e6 / 15e3)
    assert full.seconds == pytest.approx(np.full((2, 2), 120 * each))
    assert full.joules == pytest.approx(np.array([[0.1 * 100, 0.4 * 50]] * 2) * each)
    power = np.array([[1, 0.5], [0.25, 0.0]])
    part = Simultaneous(power).serve(load, draws)
    assert part.joules == pytest.approx(full.joules * power)
    assert (part.seconds == full.seconds).all()


def test_powers_of_other_clients_are_refused():
    draw = Network.from_snr([0, 0], cpu_hz=1e9, snr_db=0).draw(Stream(1))
    with pytest.raises(ValueError, match=r"^power has shape \(3,\), and the draw has 2 clients"):
        Simultaneous(np.ones(3)).serve(Load(elements=1), draw)


def test_an_access_needs_only_serve():
    class Own(Access):
        def serve(self, load, draw):
            return EqualSlots().serve(load, draw)

    network = Network.from_snr([0], cpu_hz=1e9, snr_db=0)
    draw = network.draw(Stream(1))
    assert Own().serve(Load(1e9), draw).seconds.tolist() == [1]
    assert not Own().asynchronous
    with pytest.raises(NotImplementedError, match="Own serves whole rounds only"):
        Own().rates(np.ones(1), 1e6)
