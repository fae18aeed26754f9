"""Uploads that share a band: end times and joules equal those of a fluid-flow reference."""

import math
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from channels import Network, Rician
from channels.streams import Stream
from tests.wirelessfl.engine.schedules.buffered import Silent, traffic_of
from wirelessfl.air.compression import Quantisation
from wirelessfl.air.delays import Wireless
from wirelessfl.air.traffic import Traffic
from wirelessfl.air.uplinks.ofdma import Ofdma
from wirelessfl.air.uplinks.tdma import Tdma
from wirelessfl.engine.assignment import RandomAssignment
from wirelessfl.engine.events import Give, Lost, Merge, Returned
from wirelessfl.engine.schedules import Clock
from wirelessfl.engine.tasks.requests import Requests
from wirelessfl.engine.tasks.round_times import TaskRoundSettings
from wirelessfl.engine.tasks.task_rounds import TaskRounds
from wirelessfl.models.submodels import ParamSpec
from wirelessfl.training.steps import StepCounts

BAND_HZ, DOWN_BPS = 2e6, 4e7
STEPS, ELEMENTS, DOWN_ELEMENTS = (5, 3), (400_000, 250_000), (300_000, 500_000)
WHOLE = np.ones((2, 4))
PARTS = np.array([[1.0, 0.5, 0.3, 0.7], [0.4, 1.0, 0.2, 0.6]])
"""[tasks, clients], fraction of a task's model parameters that a client trains."""
SNR_DB = np.array([3.0, 8.0, 0.0, 12.0])
PATH_GAIN_DB = np.array([-4.0, 2.0, 1.0, -9.0])
CPU_HZ = np.array([1.0e9, 1.4e9, 0.8e9, 2.0e9])
WATT = np.array([0.1, 0.2, 0.15, 0.05])
KAPPA = np.array([1e-28, 2e-28, 1.5e-28, 1e-28])
STEP_SECONDS = (np.array([0.2, 0.24, 0.3, 0.36]), np.array([0.5, 0.1, 0.4, 0.2]))


def made(uplink):
    """Latency model of two tasks on four clients, and the channel gains of their uploads.

    The gains are redrawn here from the same stream.
    """
    network = Network.from_snr(
        [0] * 4,
        cpu_hz=CPU_HZ,
        snr_db=SNR_DB,
        bandwidth_hz=BAND_HZ,
        path_gain_db=PATH_GAIN_DB,
        transmit_power_w=WATT,
        switched_capacitance=KAPPA,
    )
    stream = Stream(8)
    traffic = [traffic_of(*both) for both in zip(ELEMENTS, DOWN_ELEMENTS, strict=True)]
    steps = [StepCounts(count) for count in STEPS]
    delays = Wireless(network, UPLINKS[uplink], steps, STEP_SECONDS, traffic, DOWN_BPS, stream)
    return delays, network.draw_gains(stream, 0, 1024)


def snr_of(client, gain):
    """Received SNR; ``SNR_DB`` is that at 0.1 W."""
    return 10 ** ((SNR_DB[client] + PATH_GAIN_DB[client]) / 10) * WATT[client] / 0.1 * gain


UPLINKS = {"tdma": Tdma(), "ready": Tdma(order="ready"), "ofdma": Ofdma()}


def rate_of(uplink, snr, sharers, place):
    """Shannon rate in bit/s and duty cycle of the upload that started as number ``place``."""
    if uplink == "tdma":
        return BAND_HZ * math.log2(1 + snr) / sharers, 1 / sharers
    if uplink == "ready":
        return (0.0, 0.0) if place else (BAND_HZ * math.log2(1 + snr), 1.0)
    return BAND_HZ / sharers * math.log2(1 + sharers * snr), 1.0


def train_seconds(task, client):
    return 32 * DOWN_ELEMENTS[task] / DOWN_BPS + STEPS[task] * STEP_SECONDS[task][client]


class Parted(Silent):
    """A model of which each client trains a fraction."""

    def __init__(self, parts):
        self.parts = parts

    def share(self, client):
        return float(self.parts[client])

    def shares(self, clients):
        return self.parts[clients]


def fluid(uplink, jobs, gains, stops=(), first=0, parts=WHOLE):
    """Reference simulation of training and uploads, with a queue at each client.

    Args:
        jobs: number -> (task, client), in order of issue, all at 0 s.
        gains: channel gains by number.
        stops: list of (seconds, task): a task ends after these seconds.
        first: number of finished uploads after which a task ends; 0 for no limit.
        parts: [tasks, clients], fraction of the model that a client trains.

    Returns:
        End times by number, and joules by client.
    """
    stops, queues, ends = sorted(stops), {}, {}
    for number, (_, client) in jobs.items():
        queues.setdefault(client, []).append(number)
    training, sending = {}, {}  # number -> [begin, end]; number -> [bits left, seconds on air]
    now, joules, most = 0.0, np.zeros(4), 0

    def compute_joules(number, seconds=math.inf):
        """Joules of local training within ``seconds`` of the start of a request's download."""
        task, client = jobs[number]
        part = parts[task][client]
        down = part * 32 * DOWN_ELEMENTS[task] / DOWN_BPS
        busy = min(max(seconds - down, 0.0), part * STEPS[task] * STEP_SECONDS[task][client])
        work = busy * CPU_HZ[client]  # cycles
        return KAPPA[client] * CPU_HZ[client] ** 2 * work

    def send_joules(number):
        return WATT[jobs[number][1]] * sending[number][1]

    def stop(task):
        for client, own in queues.items():
            for n in [n for n in own if jobs[n][0] == task]:
                own.remove(n)
                if n in sending:
                    joules[client] += compute_joules(n) + send_joules(n)
                    del sending[n]
                elif n in training:
                    begin, _ = training.pop(n)
                    joules[client] += compute_joules(n, now - begin)

    while True:
        for own in queues.values():
            if own and own[0] not in training and own[0] not in sending:
                task, client = jobs[own[0]]
                length = parts[task][client] * train_seconds(task, client)
                training[own[0]] = [now, now + length]
        most = max(most, len(sending))
        rates = {
            n: rate_of(uplink, snr_of(jobs[n][1], gains[n]), len(sending), place)
            for place, n in enumerate(sending)
        }
        times = [end for _, end in training.values()]
        times += [now + sending[n][0] / bps for n, (bps, _) in rates.items() if bps]
        times += [at for at, _ in stops[:1]]
        if not times:
            assert most >= 2, "no two uploads shared the band"
            return ends, joules
        until = min(times)
        for n, (bps, duty) in rates.items():
            sending[n][0] -= bps * (until - now)
            sending[n][1] += duty * (until - now)
        now = until
        if stops and stops[0][0] == now:
            stop(stops.pop(0)[1])
        for n in [n for n in sending if sending[n][0] <= 1e-6]:
            ends[n] = now
            joules[jobs[n][1]] += compute_joules(n) + send_joules(n)
            del sending[n]
            queues[jobs[n][1]].remove(n)
            if sum(jobs[other][0] == jobs[n][0] for other in ends) == first:
                stop(jobs[n][0])
        for n in [n for n, (_, end) in training.items() if end <= now]:
            del training[n]
            task, client = jobs[n]
            sending[n] = [32.0 * parts[task][client] * ELEMENTS[task], 0.0]


def asked(delays, jobs, stops=(), parts=WHOLE):
    """Simulate the jobs with ``Requests``.

    Returns end times by number, the clients' energy, and the bits of returned models by task.
    """
    clock, ends = Clock(), {}
    requests = Requests(
        clock, delays, 4, Stream(1), tasks=2, choose=lambda number: jobs[number][1],
        traffic=[traffic_of(1)] * 2,
    )  # fmt: skip
    for task, _ in jobs.values():
        requests.ask(task, 0, Parted(parts[task]).share)
    for at, task in stops:
        clock.at(at, SimpleNamespace(stopped=task))
    while (what := clock.next()) is not None:
        event = requests.happened(what)
        if isinstance(event, Returned):
            ends[event.request] = clock.now
        elif event is not None:
            requests.cancel(event.stopped)
    assert not requests.out
    return ends, requests.ledger.spent, requests.ledger.up


def check_spent(spent, joules):
    """Check the energy of each client and of all."""
    assert spent.each == pytest.approx(joules)
    assert spent.total == pytest.approx(joules.sum())


JOBS = {
    "three clients": {0: (0, 0), 1: (0, 1), 2: (0, 2)},
    "queues behind a request of task 1": {
        0: (1, 0), 1: (0, 1), 2: (0, 0), 3: (0, 2), 4: (0, 0), 5: (1, 2), 6: (0, 0),
    },
    "four clients, two tasks, two queued": {
        0: (0, 0), 1: (1, 1), 2: (0, 2), 3: (1, 3), 4: (1, 0), 5: (0, 1),
    },
}  # fmt: skip


@pytest.mark.parametrize("jobs", JOBS.values(), ids=JOBS.keys())
@pytest.mark.parametrize("uplink", UPLINKS)
@pytest.mark.parametrize("parts", [WHOLE, PARTS], ids=["whole", "parts"])
def test_uploads_of_requests_share_the_band(uplink, jobs, parts):
    """End times and joules equal the reference's, for full models and submodels."""
    delays, gains = made(uplink)
    ends, joules = fluid(uplink, jobs, gains, parts=parts)
    assert len(ends) == len(jobs)
    found, spent, returned = asked(delays, jobs, parts=parts)
    assert found == pytest.approx(ends)
    check_spent(spent, joules)
    for task, models in enumerate(returned):
        clients = [client for own, client in jobs.values() if own == task]
        assert models == pytest.approx(32 * parts[task][clients].sum())


@pytest.mark.thorough(every=8)
@pytest.mark.parametrize("at", [1.3, 1.8, 2.4, 3.5])
@pytest.mark.parametrize("jobs", JOBS.values(), ids=JOBS.keys())
@pytest.mark.parametrize("uplink", UPLINKS)
def test_cancelled_uploads_leave_the_band_to_the_others(uplink, jobs, at):
    """Task 1 ends while its requests train, upload, or wait in queues."""
    delays, gains = made(uplink)
    ends, joules = fluid(uplink, jobs, gains, [(at, 1)], parts=PARTS)
    assert {number for number, (task, _) in jobs.items() if task == 0} <= ends.keys()
    found, spent, _ = asked(delays, jobs, [(at, 1)], parts=PARTS)
    assert found == pytest.approx(ends)
    check_spent(spent, joules)


def test_clients_use_energy_until_they_drop_out():
    """Every client drops out after its drawn fraction of the request's duration."""
    delays, _ = made("tdma")
    clock, lost = Clock(), []
    requests = Requests(clock, delays, 4, Stream(1), drop_out=1.0, choose=lambda number: number)
    for _ in range(4):
        requests.ask(0, 0)
    while (what := clock.next()) is not None:
        event = requests.happened(what)
        assert event == Lost(0)
        lost.append(clock.now)
    shares = Stream(1).child("drop-outs").generator(0).random(1024)[:4]
    seconds = [share * train_seconds(0, client) for client, share in enumerate(shares)]
    assert lost == pytest.approx(sorted(seconds))
    computed = np.maximum(seconds - np.full(4, 32 * DOWN_ELEMENTS[0] / DOWN_BPS), 0.0)
    assert (computed > 0).any()
    check_spent(requests.ledger.spent, KAPPA * CPU_HZ**3 * computed)


@pytest.mark.parametrize("first", [0, 1])
@pytest.mark.parametrize("uplink", UPLINKS)
def test_uploads_of_a_round_share_the_band(uplink, first):
    """Rounds of two tasks with two clients each equal the reference.

    With k = 1, each task stops one of its clients. Uplink counts include only awaited updates,
    downlink counts the models of all clients.
    """
    delays, gains = made(uplink)
    clock = Clock()
    handler = TaskRounds(
        [Parted(parts) for parts in PARTS],
        clock,
        delays,
        RandomAssignment(Stream(1)),
        TaskRoundSettings(4, 4, (2, 2), first),
        Stream(2),
    )
    spent, up, down = np.zeros(4), np.zeros(2), np.zeros(2)
    for number in (0, 1, 2):
        times = (plan := handler.plan(number)).times
        clients = [client for own in plan.chosen for client in own.tolist()]
        jobs = {i: (i // 2, client) for i, client in enumerate(clients)}
        ends, joules = fluid(uplink, jobs, gains[4 * number :], first=first, parts=PARTS)
        found = np.concatenate(times.seconds)
        awaited = {i: found[i] for i in np.flatnonzero(np.isfinite(found)).tolist()}
        assert awaited == pytest.approx(ends)
        assert times.length == pytest.approx(max(ends.values()))
        check_spent(times.spent, joules[clients])
        spent += joules
        handler.carry_out(Give(number))
        handler.settle()
        clock.next()
        handler.carry_out(Merge(number))
        check_spent(handler.ledger.spent, spent)
        for task in (0, 1):
            down[task] += PARTS[task][clients[2 * task : 2 * task + 2]].sum()
            up[task] += sum(PARTS[task][jobs[i][1]] for i in ends if jobs[i][0] == task)
        assert handler.ledger.down == pytest.approx((32 * down).tolist())
        assert handler.ledger.up == pytest.approx((32 * up).tolist())


def test_uploads_keep_the_direction_of_their_client():
    """With correlated antennas, a Rician channel has the client's angle in every upload."""
    air = {"antennas": 8, "fading": Rician(10.0), "antenna_correlation": 0.9}
    network = Network.from_snr([0] * 3, cpu_hz=1e9, snr_db=0.0, **air)
    traffic, stream = [traffic_of(10)], Stream(8)
    delays = Wireless(network, Tdma(), [StepCounts(1)], [np.ones(3)], traffic, None, stream)
    numbers = range(40)
    found = [[delays.received_snr(client, number) for client in range(3)] for number in numbers]
    np.testing.assert_allclose(found, network.draws(stream, numbers).gain, rtol=1e-6)


def test_downloads_of_submodels_take_the_bits_that_are_counted():
    """Scales and indices of a compressed download do not shrink with the submodel."""
    network = Network.from_snr([0] * 2, cpu_hz=1e9, snr_db=0.0)
    spec = ParamSpec({"w": (300,), "b": (6,)})
    traffic = Traffic(1, 1, spec, down=Quantisation(2))
    steps, seconds = [StepCounts(5)], [np.full(2, 0.1)]
    delays = Wireless(network, Tdma(), steps, seconds, [traffic], 100.0, Stream(8))
    for share, bits in ((1.0, 2 * 306 + 64), (0.25, 2 * 76 + 64)):
        took = share * delays.seconds(0, 1, 0) + delays.more_seconds(0, 1, share)
        assert took == pytest.approx(bits / 100 + share * 0.5)
        watts = network.switched_capacitance[1] * 1e27
        assert delays.compute_joules(0, 1, took, share) == pytest.approx(watts * share * 0.5)
    alone = delays.mean_seconds(0, np.array([1]), np.array([0.25]))
    without = replace(delays, downlink_bps=None).mean_seconds(0, np.array([1]), np.array([0.25]))
    assert alone - without == pytest.approx((2 * 76 + 64) / 100)
