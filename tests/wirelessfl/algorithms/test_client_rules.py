"""Client and server update rules on quadratics, compared with algebra and torch.optim."""

import copy

import numpy as np
import pytest
import torch

from wirelessfl.algorithms import find_algorithm
from wirelessfl.algorithms.fa_nt import FANT
from wirelessfl.algorithms.fadamgc import FAdamGC, LocalAdam
from wirelessfl.algorithms.fedacg import FedACG
from wirelessfl.algorithms.fedadam import FedAdagrad, FedAdam, FedAMS, FedYogi
from wirelessfl.algorithms.fedavg import FedAvg
from wirelessfl.algorithms.fedprox import FedProx
from wirelessfl.algorithms.momentum import FedAvgM, ScaffoldM
from wirelessfl.algorithms.scaffold import Scaffold
from wirelessfl.algorithms.step_sizes import Decay, with_step_size
from wirelessfl.config import Config
from wirelessfl.training.cohort import Cohort
from wirelessfl.training.rules import Received, plain_sgd

CLIENTS, SIZE, STEPS = 5, 3, 4
DICE = torch.Generator().manual_seed(4)
CURVATURE = 0.5 + 2 * torch.rand(CLIENTS, SIZE, generator=DICE, dtype=torch.float64)
MINIMUM = torch.randn(CLIENTS, SIZE, generator=DICE, dtype=torch.float64)
OPTIMUM = (CURVATURE * MINIMUM).sum(0) / CURVATURE.sum(0)


def federate(algorithm, rounds, who=None, steps=STEPS, shares=None):
    """Run rounds of ``algorithm`` in float64, where client i has the loss a_i/2 (x - b_i)^2.

    ``who(t)`` returns the clients of round t and which of them track; all by default. ``shares(t)``
    is the factor of the step size in round t; 1 by default. Returns the model after each round, the
    client states and the server state.
    """
    rule = algorithm
    start = torch.zeros(SIZE, dtype=torch.float64)
    server = {name: value[None] for name, value in algorithm.initial(start).items()}
    own = {n: torch.zeros(CLIENTS, SIZE, dtype=torch.float64) for n in algorithm.client_state}
    turns, path = np.zeros(CLIENTS), []
    for t in range(rounds):
        algorithm = with_step_size(rule, shares(t)) if shares else rule
        clients, tracks = who(t) if who else (np.arange(CLIENTS), np.ones(CLIENTS, bool))
        outgoing = algorithm.outgoing(server)
        assert outgoing.keys() == set(algorithm.sends)
        sent = {name: value.expand(len(clients), -1) for name, value in outgoing.items()}
        mine = {name: value[clients] for name, value in own.items()}
        fresh = torch.from_numpy(turns[clients] == 0)[:, None]
        cohort = Cohort(sent, steps, mine, torch.from_numpy(tracks)[:, None], fresh)
        params, state = cohort.start.clone(), algorithm.begin(cohort)
        for _ in range(steps):
            grads = CURVATURE[clients] * (params - MINIMUM[clients])
            params, state = algorithm.step(params, grads, state, cohort)
        for name, value in algorithm.keep(params, state, cohort).items():
            own[name][clients] = value
        payloads = algorithm.send(params, state, cohort)
        turns[clients] += 1
        mean, share = {}, {}
        for payload in algorithm.payloads:
            sends = tracks if payload.senders == "tracking" else np.ones(len(clients), bool)
            mean[payload.name] = payloads[payload.name][torch.from_numpy(sends)].mean(0)[None]
            share[payload.name] = torch.tensor([[sends.sum() / CLIENTS]])
        node = np.zeros(len(clients), dtype=int)
        received = Received(mean, {}, clients, node, local_steps=steps, share=share)
        server = algorithm.merge(server, received)
        path.append(server["params"][0].clone())
    return path, own, server


def error(path):
    return float((path[-1] - OPTIMUM).abs().max())


def test_fedavg_converges_to_its_biased_fixed_point():
    """K steps from x give x_i = b_i + r_i (x - b_i), where r_i = (1 - lr a_i)^K."""
    pull = 1 - (1 - 0.1 * CURVATURE) ** STEPS
    biased = (pull * MINIMUM).sum(0) / pull.sum(0)
    path, _, _ = federate(FedAvg(lr=0.1), 200)
    assert torch.allclose(path[-1], biased, atol=1e-12)
    assert float((biased - OPTIMUM).abs().max()) > 0.02


def test_fedprox_converges_to_its_fixed_point():
    """K steps from x give x_i = x + (1 - r_i) a_i / (a_i + mu) (b_i - x).

    Here r_i = (1 - lr (a_i + mu))^K.
    """
    mu = 0.7
    pull = (1 - (1 - 0.1 * (CURVATURE + mu)) ** STEPS) * CURVATURE / (CURVATURE + mu)
    path, _, _ = federate(FedProx(lr=0.1, mu=mu), 300)
    assert torch.allclose(path[-1], (pull * MINIMUM).sum(0) / pull.sum(0), atol=1e-12)


@pytest.mark.parametrize("server_lr", [1.0, 0.6])
def test_fedacg_equals_a_reference_loop(server_lr):
    """FedACG equals a reference loop; the evaluated model is w, not the look-ahead model."""
    ahead, beta = 0.85, 0.3
    path, _, server = federate(
        FedACG(lr=0.05, acceleration=ahead, beta=beta, server_lr=server_lr), 4
    )
    w, m = torch.zeros(SIZE, dtype=torch.float64), torch.zeros(SIZE, dtype=torch.float64)
    for t in range(4):
        start = w + ahead * m
        changes = []
        for client in range(CLIENTS):
            x = start.clone()
            for _ in range(STEPS):
                own = CURVATURE[client] * (x - MINIMUM[client])
                x = x - 0.05 * (own + beta * (x - start))
            changes.append(x - start)
        m = ahead * m + server_lr * sum(changes) / CLIENTS
        w = w + m
        assert torch.allclose(path[t], w, atol=1e-12)
    assert torch.allclose(server["momentum"][0], m, atol=1e-12)


def test_fedacg_without_acceleration_and_proximal_term_is_fedavg():
    for settings in ({}, {"momentum": 0.5}, {"server_lr": 0.7}):
        plain, _, _ = federate(FedAvg(lr=0.1, **settings), 20)
        same, _, _ = federate(FedACG(lr=0.1, acceleration=0.0, beta=0.0, **settings), 20)
        assert torch.equal(torch.stack(plain), torch.stack(same))


def with_torch(client, x, **options):
    """Model after K steps of torch.optim.SGD on a client's loss."""
    x = x.clone().requires_grad_()
    optimizer = torch.optim.SGD([x], **options)
    for _ in range(STEPS):
        optimizer.zero_grad()
        (CURVATURE[client] / 2 * (x - MINIMUM[client]) ** 2).sum().backward()
        optimizer.step()
    return x.detach()


def test_client_momentum_equals_torch_sgd():
    """The client's velocity starts from 0 in every round."""
    path, _, _ = federate(FedAvg(lr=0.1, momentum=0.9), 5)
    x = torch.zeros(SIZE, dtype=torch.float64)
    for after in path:
        own = [with_torch(client, x, lr=0.1, momentum=0.9) for client in range(CLIENTS)]
        x = torch.stack(own).mean(0)
        assert torch.allclose(after, x, atol=1e-12)


def test_momentum_uses_corrected_gradients():
    """FedProx's velocity includes the proximal term; SCAFFOLD's c_i is a mean of raw gradients."""
    path, _, _ = federate(FedProx(lr=0.1, mu=0.7, momentum=0.5), 1)
    x, v = torch.zeros(CLIENTS, SIZE, dtype=torch.float64), 0.0
    for _ in range(STEPS):
        v = 0.5 * v + CURVATURE * (x - MINIMUM) + 0.7 * x
        x = x - 0.1 * v
    assert torch.allclose(path[0], x.mean(0), atol=1e-12)
    path, own, _ = federate(Scaffold(lr=0.05, momentum=0.5), 2)
    x, c = torch.zeros(SIZE, dtype=torch.float64), torch.zeros(CLIENTS, SIZE, dtype=torch.float64)
    for after in path:
        y, v, raw = x.expand(CLIENTS, -1), 0.0, 0.0
        for _ in range(STEPS):
            gradient = CURVATURE * (y - MINIMUM)
            raw = raw + gradient
            v = 0.5 * v + gradient + c.mean(0) - c
            y = y - 0.05 * v
        x, c = y.mean(0), raw / STEPS
        assert torch.allclose(after, x, atol=1e-12)
    assert torch.allclose(own["tracking"], c, atol=1e-12)


@pytest.mark.parametrize("name", ["hfedavg", "hist"])
def test_algorithms_with_cells_have_the_settings_of_the_inner_one(name):
    algorithm = Config.from_flags(name, momentum=0.9).algorithm
    assert algorithm.local == FedAvg(momentum=0.9)
    assert (algorithm.momentum, algorithm.lr) == (0.9, FedAvg().lr)
    assert not hasattr(algorithm, "beta2")
    assert copy.copy(algorithm) == algorithm
    assert Config.from_flags(name, local="fadamgc", beta2=0.5).algorithm.local.beta2 == 0.5


def test_plain_sgd_is_true_only_for_plain_steps():
    for algorithm, plain in (
        (FedAvg(), True),
        (FedAvg(momentum=0.1), False),
        (FedAdam(), True),
        (FedProx(), False),
        (FedACG(acceleration=0.5, beta=0.0), True),
        (FedACG(beta=0.0, momentum=0.1), False),
        (FedACG(beta=0.1), False),
        (Scaffold(), False),
        (LocalAdam(), False),
    ):
        assert plain_sgd(algorithm) is plain, algorithm


def test_tracking_algorithms_reach_the_optimum_of_the_mean_loss():
    for algorithm in (Scaffold(lr=0.1), ScaffoldM(lr=0.1, beta=0.5)):
        path, own, server = federate(algorithm, 400)
        assert error(path) < 1e-12
        assert torch.allclose(own["tracking"], CURVATURE * (OPTIMUM - MINIMUM), atol=1e-10)
        assert torch.allclose(server["tracking"][0], own["tracking"].mean(0), atol=1e-12)


@pytest.mark.thorough
def test_fadamgc_reaches_the_optimum_and_local_adam_does_not():
    """FAdamGC converges if vhat is carried over; if vhat is reset, a small error remains."""
    carried, _, _ = federate(FAdamGC(lr=0.05, vhat="carried"), 600)
    reset, _, _ = federate(FAdamGC(lr=0.05), 600)
    local, _, _ = federate(LocalAdam(lr=0.05, vhat="carried"), 600)
    naive, _, _ = federate(FANT(lr=0.05, vhat="carried"), 600)
    assert error(carried) < 1e-13
    assert 1e-6 < error(reset) < 0.02
    assert error(local) > 0.1
    assert abs(error(local) - error(local[:-100])) < 1e-6, "local Adam has converged"
    assert error(naive) > 0.1


def test_momentum_alone_keeps_the_bias_of_fedavg():
    """At the fixed point, d is the mean step, but clients still step towards their own minima."""
    assert error(federate(FedAvgM(lr=0.1), 500)[0]) > 1e-3
    plain, _, _ = federate(FedAvg(lr=0.1), 50)
    same, _, _ = federate(FedAvgM(lr=0.1, beta=1.0), 50)
    assert torch.equal(torch.stack(plain), torch.stack(same))


def test_momentum_is_the_mean_step_of_the_last_round():
    """The first two rounds equal a hand calculation with d = (x_0 - x_1) / (K lr)."""
    path, _, server = federate(FedAvgM(lr=0.05, beta=0.3), 1)
    d = -path[0] / (STEPS * 0.05)
    assert torch.allclose(server["momentum"][0], d, atol=1e-12)
    x = path[0].expand(CLIENTS, -1).clone()
    for _ in range(STEPS):
        x = x - 0.05 * (0.3 * CURVATURE * (x - MINIMUM) + 0.7 * d)
    assert torch.allclose(federate(FedAvgM(lr=0.05, beta=0.3), 2)[0][1], x.mean(0), atol=1e-12)


class Untracked(FAdamGC):
    """FAdamGC with y and y_i fixed at zero."""

    name = "untracked"

    def keep(self, params, state, cohort):
        kept = super().keep(params, state, cohort)
        return {**kept, "tracking": torch.zeros_like(kept["tracking"])}

    def send(self, params, state, cohort):
        sent = super().send(params, state, cohort)
        return {**sent, "tracking": torch.zeros_like(sent["tracking"])}


@pytest.mark.parametrize("beta2", [0.0, 0.99])
@pytest.mark.parametrize("vhat", ["reset", "carried"])
def test_fadamgc_without_tracking_is_local_adam_bit_for_bit(beta2, vhat):
    settings = {"lr": 0.01, "beta2": beta2, "vhat": vhat, "server_lr": 0.7}
    one, kept, _ = federate(Untracked(**settings), 30)
    two, other, _ = federate(LocalAdam(**settings), 30)
    assert torch.equal(torch.stack(one), torch.stack(two))
    assert torch.equal(kept["second"], other["second"])


def test_local_adam_is_amsgrad_written_out():
    """Two rounds of one client, without bias correction.

    In each round m starts at 0, and v and vhat start at v_i (vhat="reset").
    """
    path, own, _ = federate(
        LocalAdam(lr=0.1, beta1=0.8, beta2=0.5, eps=1e-3),
        2,
        lambda t: (np.array([2]), np.ones(1, bool)),
    )
    x, v = torch.zeros(SIZE, dtype=torch.float64), torch.zeros(SIZE, dtype=torch.float64)
    for t in range(2):
        m, vhat = torch.zeros_like(x), v
        for _ in range(STEPS):
            g = CURVATURE[2] * (x - MINIMUM[2])
            m, v = 0.8 * m + 0.2 * g, 0.5 * v + 0.5 * g**2
            vhat = torch.maximum(vhat, v)
            x = x - 0.1 * m / (vhat.sqrt() + 1e-3)
        assert torch.allclose(path[t], x, atol=1e-12)
    assert torch.allclose(own["second"][2], v, atol=1e-12)
    assert not own["second"][0].any(), "a client that never trained keeps zeros"


@pytest.mark.parametrize("server_lr", [1.0, 0.6, 1.3])
def test_the_two_forms_of_fa_nt_agree(server_lr):
    """With full participation, both forms give the same models.

    For eta_g != 1, this requires the corrected (114).
    """
    two, _, _ = federate(FANT(lr=0.01, server_lr=server_lr), 40)
    one, _, _ = federate(FANT(lr=0.01, server_lr=server_lr, variables="one"), 40)
    assert torch.allclose(torch.stack(one), torch.stack(two), atol=1e-10)
    assert FANT(variables="one").payloads == FedAvg().payloads
    assert FANT(variables="one").sends == ("params",)
    untracked, _, _ = federate(LocalAdam(lr=0.01, server_lr=server_lr), 40)
    assert float((untracked[-1] - two[-1]).abs().max()) > 1e-3


@pytest.mark.parametrize("server_lr", [1.0, 0.6])
def test_the_two_forms_of_fa_nt_agree_for_decaying_steps(server_lr):
    """The change of the model is divided by the step size of the round in which it was made."""
    decay = Decay(40, 0.1, 0.9)
    two, _, _ = federate(FANT(lr=0.01, server_lr=server_lr), 40, shares=decay)
    one, _, _ = federate(FANT(lr=0.01, server_lr=server_lr, variables="one"), 40, shares=decay)
    assert torch.allclose(torch.stack(one), torch.stack(two), atol=1e-10)


def test_fa_nt_continues_without_the_stored_step_size():
    """At a constant step size, a client without it takes the same bits; older states lack it."""
    rule = FANT(lr=0.01, server_lr=0.7, variables="one")
    kept = {name: torch.rand(2, SIZE, generator=DICE) for name in rule.client_state}
    kept["reach"] = torch.full((2, SIZE), STEPS * rule.lr)
    fresh = torch.zeros(2, 1, dtype=torch.bool)
    server = {"params": torch.rand(2, SIZE, generator=DICE)}
    moved = (kept["seen"] - server["params"]) / (0.7 * (STEPS * rule.lr))
    for reach in (kept["reach"], torch.zeros(2, SIZE)):
        cohort = Cohort(server, STEPS, kept | {"reach": reach}, fresh=fresh)
        assert torch.equal(rule.begin(cohort)["correction"], kept["correction"] + moved)


def turns(t):
    """Three random clients for round t, and which of them track (one or two)."""
    dice = np.random.default_rng(t)
    clients = np.sort(dice.permutation(CLIENTS)[:3])
    return clients, np.array([True, t % 2 == 0, False])


@pytest.mark.parametrize("name", ["fadamgc", "scaffold", "scaffold-m", "fa-nt"])
def test_the_servers_tracking_term_is_the_mean_over_all_clients(name):
    """For any participants and trackers, y = (1/n) sum y_i, since all terms start at 0."""
    _, own, server = federate(find_algorithm(name)(lr=0.01), 25, turns)
    assert torch.allclose(server["tracking"][0], own["tracking"].mean(0), atol=1e-12)
    assert own["tracking"].any()


def test_only_tracking_clients_change_their_tracking_term():
    who = np.arange(3), np.array([True, False, False])
    _, own, _ = federate(FAdamGC(lr=0.01), 1, lambda t: who)
    assert own["tracking"][0].any()
    assert not own["tracking"][1:].any()
    assert own["second"][:3].all(), "all clients that train keep their moments"
    assert not own["second"][3:].any()


def pseudo_gradients(algorithm, rounds):
    """Run ``algorithm``; return the model and the mean change D of each round."""
    path, _, _ = federate(algorithm, rounds)
    starts = [torch.zeros(SIZE, dtype=torch.float64), *path[:-1]]
    pull = 1 - (1 - algorithm.lr * CURVATURE) ** STEPS
    return path, [(pull * (MINIMUM - x)).mean(0) for x in starts]


def follow(optimizer, x, changes, prepare=lambda t: None):
    """Models of a torch optimizer that receives -D of each round as its gradient."""
    path = []
    for t, change in enumerate(changes, start=1):
        prepare(t)
        x.grad = -change
        optimizer.step()
        path.append(x.detach().clone())
    return torch.stack(path)


def test_fedadam_against_torch():
    """FedAdam equals torch.optim.Adam with v_0 = eps^2 and without bias correction."""
    algorithm = FedAdam(lr=0.05, server_lr=0.1, eps=1e-2)
    path, changes = pseudo_gradients(algorithm, 30)
    x = torch.zeros(SIZE, dtype=torch.float64, requires_grad=True)
    adam = torch.optim.Adam([x], lr=0.1, betas=(0.9, 0.99))
    zeros = torch.zeros(SIZE, dtype=torch.float64)
    adam.state[x] = {
        "step": torch.tensor(0.0),
        "exp_avg": zeros,
        "exp_avg_sq": torch.full_like(zeros, 1e-4),
    }

    def prepare(t):
        root = (1 - 0.99**t) ** 0.5
        adam.param_groups[0] |= {"lr": 0.1 * (1 - 0.9**t) / root, "eps": 1e-2 / root}

    assert torch.allclose(torch.stack(path), follow(adam, x, changes, prepare), atol=1e-12)


def test_fedams_against_torchs_amsgrad():
    algorithm = FedAMS(lr=0.05, server_lr=0.01, eps=1e-14)
    path, changes = pseudo_gradients(algorithm, 30)
    x = torch.zeros(SIZE, dtype=torch.float64, requires_grad=True)
    adam = torch.optim.Adam([x], betas=(0.9, 0.99), eps=0.0, amsgrad=True)

    def prepare(t):
        adam.param_groups[0]["lr"] = 0.01 * (1 - 0.9**t) / (1 - 0.99**t) ** 0.5

    assert torch.allclose(torch.stack(path), follow(adam, x, changes, prepare), atol=1e-12)


def test_fedams_never_divides_by_less_than_eps():
    path, changes = pseudo_gradients(FedAMS(lr=0.05, server_lr=0.01, eps=4.0), 1)
    assert torch.allclose(path[0], 0.01 * 0.1 * changes[0] / 2.0, atol=1e-12)


def test_fedadagrad_against_torch():
    algorithm = FedAdagrad(lr=0.05, server_lr=0.1, eps=1e-2)
    path, changes = pseudo_gradients(algorithm, 30)
    x = torch.zeros(SIZE, dtype=torch.float64, requires_grad=True)
    adagrad = torch.optim.Adagrad([x], lr=0.1, initial_accumulator_value=1e-4, eps=1e-2)
    assert torch.allclose(torch.stack(path), follow(adagrad, x, changes), atol=1e-12)


def test_fedyogi_equals_a_reference_loop():
    algorithm = FedYogi(lr=0.05, server_lr=0.1, eps=1e-2)
    path, changes = pseudo_gradients(algorithm, 30)
    x, m = torch.zeros(SIZE, dtype=torch.float64), torch.zeros(SIZE, dtype=torch.float64)
    v = torch.full_like(x, 1e-4)
    for t, change in enumerate(changes):
        m = 0.9 * m + 0.1 * change
        v = v - 0.01 * change**2 * torch.sign(v - change**2)
        x = x + 0.1 * m / (v.sqrt() + 1e-2)
        assert torch.allclose(path[t], x, atol=1e-12)
    adam, _ = pseudo_gradients(FedAdam(lr=0.05, server_lr=0.1, eps=1e-2), 30)
    assert not torch.allclose(adam[-1], path[-1], atol=1e-6)
