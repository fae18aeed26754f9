"""Every built-in algorithm treats each client on its own and ignores the padding of submodels."""

import numpy as np
import pytest
import torch

from wirelessfl.algorithms import algorithm_classes, find_algorithm, rule_of
from wirelessfl.algorithms.algorithm import ServerMemory, stored_vectors
from wirelessfl.training.cohort import Cohort
from wirelessfl.training.rules import Received

CLIENTS, SIZE, STEPS = 3, 24, 2


def cohort_and_gradients(rule, size=SIZE):
    """Random tensors of a few clients; elements from ``SIZE`` on are padding, which is 0."""
    source = torch.Generator().manual_seed(5)

    def normal(*shape):
        values = torch.randn(*shape, SIZE, generator=source)
        return torch.nn.functional.pad(values, (0, size - SIZE))

    server = {name: value[None] for name, value in rule.initial(normal()).items()}
    sent = {name: value.expand(CLIENTS, -1) for name, value in rule.outgoing(server).items()}
    kept = {name: normal(CLIENTS).square() for name in rule.client_state}
    flags = torch.ones(CLIENTS, 1, dtype=torch.bool)
    cohort = Cohort(sent, STEPS, kept, flags, ~flags, rule.penalties)
    return server, cohort, [normal(CLIENTS) for _ in range(STEPS)]


def trained(rule, cohort, grads):
    """The payloads and the client state after the local steps."""
    params, state = cohort.start.clone(), dict(rule.begin(cohort))
    for gradient in grads:
        params, state = rule.step(params, gradient.clone(), state, cohort)
    kept = {name: value.clone() for name, value in rule.keep(params, state, cohort).items()}
    return rule.send(params, state, cohort), kept


def merged(rule, server, sent):
    number, size = sent[rule.payloads[0].name].shape
    received = Received(
        {name: value.mean(0, keepdim=True) for name, value in sent.items()},
        {p.name: sent[p.name] for p in rule.payloads if p.each},
        np.arange(number),
        np.zeros(number, dtype=np.int64),
        local_steps=STEPS,
        share={name: torch.ones(1, 1) for name in sent},
        weights=[1 / number] * number,
        remembered={name: torch.zeros(number, size) for name in stored_vectors(rule)},
    )
    if isinstance(rule, ServerMemory):
        rule.remember(received)
    return rule.merge(dict(server), received)


each_rule = pytest.mark.parametrize("name", sorted(algorithm_classes()))


@each_rule
def test_a_client_does_not_depend_on_those_that_train_with_it(name):
    rule = rule_of(find_algorithm(name)())
    _, cohort, grads = cohort_and_gradients(rule)
    together = trained(rule, cohort, grads)
    for client in range(CLIENTS):
        row = slice(client, client + 1)
        alone = Cohort(
            {name: value[row] for name, value in cohort.server.items()},
            STEPS,
            {name: value[row] for name, value in cohort.kept.items()},
            cohort.tracks[row],
            cohort.fresh[row],
            cohort.penalties,
        )
        for tensors, one in zip(
            together, trained(rule, alone, [g[row] for g in grads]), strict=True
        ):
            assert tensors.keys() == one.keys()
            for key in one:
                torch.testing.assert_close(tensors[key][row], one[key], rtol=0, atol=1e-5)


@each_rule
def test_padding_of_a_submodel_changes_nothing(name):
    rule = rule_of(find_algorithm(name)())
    results = []
    for size in (SIZE, SIZE + 8):
        server, cohort, grads = cohort_and_gradients(rule, size)
        sent, kept = trained(rule, cohort, grads)
        results.append((sent, kept, merged(rule, server, sent)))
    for tight, padded in zip(*results, strict=True):
        assert tight.keys() == padded.keys()
        for key in tight:
            torch.testing.assert_close(tight[key], padded[key][..., :SIZE], rtol=0, atol=1e-5)
