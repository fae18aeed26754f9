"""Helpers to simulate requests with simultaneous transmissions, without training."""

import numpy as np

from channels import Load, Network
from channels.streams import Stream
from tests.wirelessfl.engine.schedules import buffered
from tests.wirelessfl.engine.schedules.buffered import Silent
from wirelessfl.air.uplinks.aircomp import AirComp
from wirelessfl.engine.schedules import BufferedScheduler, Clock, TaskPlan
from wirelessfl.engine.tasks.asynchronous import Asynchronous
from wirelessfl.engine.tasks.clients import busy_at_once
from wirelessfl.engine.tasks.handler import Records
from wirelessfl.engine.tasks.requests import Requests
from wirelessfl.engine.tasks.uploads import GroupUploads, Transmissions

BAND_HZ, SUBCARRIER_HZ, SYMBOL_SECONDS = 1e6, 1e4, 1e-3
SYMBOLS = BAND_HZ / SUBCARRIER_HZ  # sent in parallel
AIRCOMP = AirComp(subcarrier_hz=SUBCARRIER_HZ, symbol_seconds=SYMBOL_SECONDS, beamformer="random")
"""Over-the-air computation with beamformers that take no time to find."""


def network_of(clients):
    spread = np.arange(clients)
    return Network.from_snr(
        [0] * clients,
        cpu_hz=1e9 * (1 + 0.1 * spread),
        snr_db=10.0,
        bandwidth_hz=BAND_HZ,
        antennas=2,
        transmit_power_w=0.1 * (1 + spread),
        switched_capacitance=1e-28,
    )


def elements_for(seconds):
    """Number of elements sent in ``seconds``, with one element per subcarrier and symbol."""
    return round(seconds * SYMBOLS / SYMBOL_SECONDS)


def sent_watts(task, merge, senders, clients=5):
    """Power by client that the precoders of these senders use for a merge of a simulated run."""
    stream = Stream(7).child("task", task, "channel")
    draw = network_of(clients).draw(stream, merge, senders)
    watts = np.zeros(clients)
    watts[senders] = AIRCOMP.access.serve(Load(elements=1), draw).decision.powers_w
    return watts


class Listed(buffered.Listed):
    """Durations of local training, listed by request number. Training clients consume 1000 W."""

    def compute_joules(self, task, client, seconds, share=1.0):
        return 1000.0 * seconds


class Watched(Silent):
    """Records merges and their channel draws, and checks staleness and senders."""

    def __init__(self, air_seconds=0.0):
        super().__init__(elements_for(air_seconds))
        self.client, self.at_issue, self.merges = {}, {}, []

    def issue(self, request):
        self.client[request.number] = request.client
        self.at_issue[request.number] = len(self.merges)

    def merge_updates(self, requests, staleness, *, draw=None):
        assert [len(self.merges) - self.at_issue[n] for n in requests] == list(staleness)
        clients = [self.client[number] for number in requests]
        assert clients == sorted(set(clients)) == draw.network.numbers.tolist()
        self.merges.append((list(requests), draw))


def made(plans, delays, *, clients, models, **options):
    """Return the clock, schedule, handler and records of a new simulation."""
    names = ("busy_clients", "drop_out", "choose")
    of_requests = {name: options.pop(name) for name in names if name in options}
    clock, records = Clock(), Records()
    gathering = busy_at_once([p[0] for p in plans], clients, of_requests.get("busy_clients"))
    schedule = BufferedScheduler(
        [TaskPlan(*plan) for plan in plans],
        gathering=gathering,
        **{"report_every": None} | options,
    )
    streams = [Stream(7).child("task", number) for number in range(len(plans))]
    uploads = GroupUploads.of(network_of(clients), AIRCOMP, streams)
    transmissions = Transmissions(clock, uploads)
    requests = Requests(
        clock,
        delays,
        clients,
        Stream(3),
        tasks=len(plans),
        transmissions=transmissions,
        records=records,
        **of_requests,
    )
    return clock, schedule, Asynchronous(models, requests, records), records


def simulated(plans, delays, seconds, *, clients, models, events=(), check=None, **options):
    clock, schedule, handler, records = made(
        plans, delays, clients=clients, models=models, **options
    )
    buffered.simulate_until(seconds, clock, schedule, handler, check=check, events=events)
    return schedule, handler, records
