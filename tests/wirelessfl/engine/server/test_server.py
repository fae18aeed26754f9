"""The server's merges, weights, present clients and restoration; rounds and tasks agree."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import wirelessfl
from channels import Network
from channels.streams import Stream
from wirelessfl.air.participants import BLOCK, ConsecutiveClients, PresentClients
from wirelessfl.air.uplinks import UPLINKS
from wirelessfl.algorithms.algorithm import ServerMemory, stored_vectors
from wirelessfl.algorithms.fedavg import FedAvg
from wirelessfl.algorithms.scaffold import Scaffold
from wirelessfl.config import Config
from wirelessfl.engine.server.client_states import InMemory
from wirelessfl.engine.server.merge import NodeMerge
from wirelessfl.engine.server.server import Server
from wirelessfl.engine.server.weights import Weights
from wirelessfl.models.submodels import ParamSpec, Submodels
from wirelessfl.runs.build import build
from wirelessfl.training.rules import Payload
from wirelessfl.training.workers.shards import Shards

SPEC = ParamSpec({"w": (3,)})
START = torch.tensor([1.0, -2.0, 0.5])
SAMPLES = np.array([10.0, 30.0, 20.0, 20.0, 40.0])
NODE_OF = np.array([0, 0, 1, 1, 1])


@dataclass(frozen=True)
class Remembering(ServerMemory, FedAvg):
    """Adds the mean of the senders' previous payloads to the update, and counts merges."""

    name = "remembering"
    remembers: ClassVar[tuple[str, ...]] = ("last",)
    payloads: ClassVar[tuple[Payload, ...]] = (Payload("update", each=True, unit="lr"),)

    def initial(self, params):
        return {"params": params, "count": torch.zeros(3)}

    def remember(self, received):
        return {"last": received.each["update"]}

    def merge(self, server, received):
        back = received.mean_of(received.remembered["last"])
        return {
            "params": server["params"] + received.mean["update"] + back,
            "count": server["count"] + 1,
        }


def server_of(algorithm, *, samples=SAMPLES, node_of=NODE_OF, uplink="tdma"):
    weights = Weights(node_of, samples)
    states = InMemory(stored_vectors(algorithm), SPEC.size)
    return Server(algorithm, UPLINKS.find(uplink)(), weights, states, START.clone())


def merge_of(server, clients, **more):
    whole, rule = Submodels.whole(SPEC, server.weights.nodes), server.algorithm
    return NodeMerge.of(server, whole, np.array(clients), rule, 4, Stream(3), **more)


def merged(server, clients, updates, **more):
    """Merge one upload at the server; return received payloads and the nodes' next state."""
    merge = merge_of(server, clients, **more)
    reception, whole = merge.open("now"), merge.submodels
    reception.add(slice(0, len(clients)), {"update": updates})
    nodes = server.at_nodes(whole)
    reception.finish(Shards(), ["update"], nodes["params"])
    received = merge.received(reception)
    after = server.merge(server.algorithm, nodes, received)
    server.combine(after, whole, server.weights.at_nodes(np.array(clients)))
    return received, after


def test_merge_receives_weights_share_steps_and_staleness():
    """Three of five clients in two cells upload, while one client is absent."""
    server = server_of(FedAvg())
    server.leave(4)
    updates = torch.tensor([[4.0, 0, 0], [0, 4.0, 0], [1.0, 1.0, 1.0]])
    stale = np.array([2, 0, 1])
    received, after = merged(server, [0, 1, 2], updates, staleness=stale)
    assert received.local_steps == 4
    assert received.weights == [0.25, 0.75, 1.0]
    assert received.staleness.tolist() == [2, 0, 1]
    assert received.share["update"].flatten().tolist() == [1.0, 0.5]
    assert received.mean["update"].tolist() == [[1, 3, 0], [1, 1, 1]]
    assert after["params"].tolist() == [[2, 1, 0.5], [2, -1, 1.5]]
    mean = (40 * torch.tensor([2, 1, 0.5]) + 20 * torch.tensor([2, -1, 1.5])) / 60
    torch.testing.assert_close(server.cloud["params"], mean)
    assert server.version == 1


def test_memory_of_senders_is_returned_with_the_next_upload():
    """Memory is zero at first, then the sender's last payload; trial rounds do not change it."""
    server = server_of(Remembering(), samples=None)
    ones = torch.ones(2, 3)
    merged(server, [0, 2], ones)
    assert server.states.get("last", 0).tolist() == [1, 1, 1]
    assert server.states.get("last", 1) is None
    twin = server.branch()
    merged(twin, [0, 2], 7 * ones)
    assert server.states.get("last", 0).tolist() == [1, 1, 1]
    assert (server.version, twin.version) == (1, 2)
    _, after = merged(server, [0, 1], 2 * ones)
    # Node 0: the mean of client 0's memory and of zero, plus the mean of the new updates.
    torch.testing.assert_close(after["params"][0], START + 1 + 2 + 0.5)
    assert server.nodes["count"].tolist() == [[2.0] * 3] * 2


class AtTheCloud(Scaffold):
    """SCAFFOLD with one tracking term for all nodes."""

    node_state = False


@pytest.mark.parametrize("samples", [SAMPLES, None])
@pytest.mark.parametrize("kind", [Scaffold, AtTheCloud])
def test_means_of_client_states_are_recomputed_over_the_present_clients(kind, samples):
    """Client 1 is absent, and client 3 has no state yet: its term is 0."""
    server, own = server_of(kind(), samples=samples), torch.rand(5, 3)
    own[3] = 0
    for client in (0, 1, 2, 4):
        server.states.put("tracking", client, own[client])
    server.leave(1)
    server.begin(START)
    weights = np.ones(5) if samples is None else samples
    groups = [[0, 2, 3, 4]] if kind is AtTheCloud else [[0], [2, 3, 4]]
    expected = [np.average(own[who].numpy(), axis=0, weights=weights[who]) for who in groups]
    found = server.cloud if kind is AtTheCloud else server.nodes
    torch.testing.assert_close(
        found["tracking"].reshape(-1, 3), torch.from_numpy(np.stack(expected)).float()
    )


@pytest.mark.parametrize(("kept", "returned"), [(["params"], r"\['params'\]"), (None, "None")])
def test_a_merge_that_drops_state_raises(kept, returned):
    class Forgetful(Remembering):
        def merge(self, server, received):
            return kept and {name: server[name] for name in kept}

    server = server_of(Forgetful())
    message = rf"its merge gets the server state \['count', 'params'\] and returns {returned}"
    with pytest.raises(wirelessfl.ConfigError, match=message):
        merged(server, [0], torch.ones(1, 3))
    assert server.version == 0


def test_a_restored_server_equals_the_original():
    """The states of cloud and nodes, the present clients, memory and version are restored."""
    one, two = server_of(Remembering()), server_of(Remembering())
    one.leave(3)
    merged(one, [0, 2], torch.rand(2, 3))
    tensors = one.tensors()
    assert all(name.startswith("server.") for name in tensors)
    two.restore({**tensors, "steps_done": torch.zeros(5)})
    update = torch.rand(3, 3)
    results = [merged(server, [0, 1, 2], update)[1] for server in (one, two)]
    for name, value in results[0].items():
        assert torch.equal(value, results[1][name])
    assert torch.equal(one.cloud["params"], two.cloud["params"])
    assert (two.version, two.present.mask.tolist()) == (2, [True, True, True, False, True])


def test_aircomp_needs_simultaneous_uploads():
    """An upload without a channel draw, i.e. at different times, raises an error."""
    server = server_of(FedAvg(), uplink="aircomp")
    merge = merge_of(server, [0, 1])
    with pytest.raises(wirelessfl.ConfigError, match="each client uploads at a different time"):
        merge.open("now")
    draw = Network.from_snr(NODE_OF, cpu_hz=1e9, snr_db=20).draw(Stream(1))
    assert merge.open("now", draw=draw).draw is draw


@pytest.mark.parametrize("first", [0, 3])
def test_rounds_and_tasks_give_the_same_model(config, toy, tmp_path, first):
    """FedAvg with the same clients, in rounds and as a task, gives bit-identical models."""
    settings = config("fedavg", rounds=3)
    setup = build(settings, data=toy)
    common = {
        name: getattr(settings.training, name) for name in ("local_steps", "batch_size", "rounds")
    }
    task = Config.from_flags(
        "sync-st",
        **common,
        lr=0.1,
        clients=6,
        step_seconds=0.1,
        chunk=4,
        threads=1,
        first=first,
        out=tmp_path / "task",
    )
    tasks = build(task, data=toy)
    learner, training = tasks.learners[0], setup.learner
    assert torch.equal(learner.server.cloud["params"], training.server.cloud["params"])
    for number in range(3):
        plan = setup.planner.plan(number)
        if first:
            plan = plan.without(np.arange(first, 6))
        before = training.server.cloud["params"]
        training.learn(plan, training.server.cloud)
        learner.train_round(plan.clients)
        assert torch.equal(learner.server.cloud["params"], training.server.cloud["params"])
        assert not torch.equal(before, training.server.cloud["params"])
    assert learner.server.version == training.server.version == 3


@st.composite
def cases(draw):
    """Weights, samples per client, present clients, participants, and which of those send."""
    sizes = draw(st.lists(st.integers(1, 4), min_size=1, max_size=4))
    node_of = np.repeat(np.arange(len(sizes)), sizes)
    count = len(node_of)
    samples = draw(st.lists(st.integers(1, 50), min_size=count, max_size=count))
    weighted = draw(st.booleans())
    there, part, sends = (np.array(draw(st.lists(st.booleans(), min_size=count, max_size=count)))
                          for _ in range(3))  # fmt: skip
    clients = np.flatnonzero(there & part)
    weights = Weights(node_of, np.array(samples, dtype=float) if weighted else None)
    return weights, samples if weighted else [1] * count, there, clients, sends[clients]


@given(cases())
def test_weights_are_sums_over_clients(case):
    """Checks weights within nodes, weights of nodes, and the share of participants and senders."""
    weights, each, there, clients, sends = case
    nodes = [np.flatnonzero(weights.node_of == node) for node in range(weights.nodes)]
    in_means = dict(zip(clients.tolist(), weights.in_means(clients), strict=True))
    present = weights.sums(np.flatnonzero(there))
    share, part_share = (weights.share(some, present) for some in (clients, clients[sends]))
    sending = {client for client, does in zip(clients.tolist(), sends, strict=True) if does}
    for node, members in enumerate(nodes):
        here = [client for client in members.tolist() if client in in_means]
        total = sum(each[client] for client in here)
        whole = sum(each[client] for client in members.tolist() if there[client])
        assert [in_means[client] for client in here] == [each[client] / total for client in here]
        expected = float(total > 0) if weights.samples is None else total
        assert weights.at_nodes(clients)[node] == expected
        assert share[node] == pytest.approx(total / whole if whole else 0)
        some = sum(each[client] for client in here if client in sending)
        assert part_share[node] == pytest.approx(some / whole if whole else 0)


def test_a_client_may_occur_twice():
    """Two updates of a client in one merge both count."""
    weights = Weights(np.zeros(4, dtype=int), np.array([1.0, 2.0, 3.0, 4.0]))
    clients = np.array([1, 3, 1])
    assert weights.in_means(clients).tolist() == [0.25, 0.5, 0.25]
    assert weights.share(clients, weights.sums(np.arange(4))).tolist() == [0.8]


CLIENTS = 3 * BLOCK + 100
BOUNDS = [0, 1, BLOCK - 1, BLOCK, 2 * BLOCK + 7, CLIENTS - 1, CLIENTS]


def check_ranks(found, members):
    """Ranks and numbers are those of the sorted list of clients."""
    assert found.below(BOUNDS).tolist() == [int((members < bound).sum()) for bound in BOUNDS]
    ranks = np.arange(len(members))
    for some in (ranks, ranks[:0], ranks[::97], ranks[-1:]):
        assert np.array_equal(found.at(some), members[some])


@pytest.mark.parametrize("share", [0.0, 0.01, 0.6, 1.0])
def test_ranks_after_departures(share):
    draw = Stream(3, ("present",)).generator()
    mask = draw.random(CLIENTS) < share
    mask[BLOCK : 2 * BLOCK] &= share == 1.0  # a block without clients
    given, present = mask.copy(), PresentClients(mask)
    for _ in range(3):
        members = np.flatnonzero(mask)
        check_ranks(present, members)
        assert len(present) == len(members)
        assert all((client in present) == mask[client] for client in range(CLIENTS))
        for client in (-1, 0, BLOCK - 1, BLOCK, CLIENTS - 1):
            assert list(present.after(client)) == members[members > client].tolist()
        assert np.array_equal(present.mask, mask)
        gone = draw.choice(members, len(members) // 3, replace=False)
        mask = mask.copy()
        mask[gone] = False
        for client in gone.tolist():
            present.remove(client)
    assert given[gone].all(), "the argument does not change"
    with pytest.raises(ValueError, match="read-only"):
        present.mask[0] = True


@pytest.mark.parametrize(("first", "count"), [(0, 5), (BLOCK - 3, 2000), (CLIENTS - 4, 4)])
def test_consecutive_clients_are_ranked_like_any_set(first, count):
    check_ranks(ConsecutiveClients(first, count), np.arange(first, first + count))


@pytest.mark.parametrize("weighted", [False, True])
def test_sums_over_chosen_clients_do_not_depend_on_blocks(weighted, monkeypatch):
    monkeypatch.setattr("wirelessfl.engine.server.weights.BLOCK", 7)
    draw = Stream(4).generator()
    samples = draw.integers(1, 50, 40).astype(float) if weighted else None
    weights, chosen = Weights(np.repeat([0, 1, 2], [9, 30, 1]), samples), draw.random(40) < 0.5
    chosen[-1] = False
    expected = weights.sums(np.flatnonzero(chosen))
    assert expected[2] == 0
    assert np.array_equal(weights.sums_where(chosen), expected)
