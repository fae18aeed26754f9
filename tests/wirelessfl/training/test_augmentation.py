"""Augmented batches depend on seed, client and step alone, in every executor and regime."""

import pickle
import re
from dataclasses import replace

import numpy as np
import pytest
import torch

import wirelessfl
from channels.streams import Stream
from tests.executors import EXECUTORS
from tests.wirelessfl.training.jobs import job_for, training_data, updates
from wirelessfl.base.errors import ConfigError, TrainingError
from wirelessfl.config import Config
from wirelessfl.models import FCNN
from wirelessfl.results.archive import effective
from wirelessfl.runs.build import build
from wirelessfl.training.batches import Augmentation
from wirelessfl.training.stacked import StackedExecutor
from wirelessfl.training.workers.workers_executor import why_no_workers


def noisy(x, generator):
    """Samples with reversed features, one in two, and noise; it also changes its argument."""
    turned = torch.rand(len(x), generator=generator, device=x.device) < 0.5
    x += 0.3 * torch.randn(x.shape, generator=generator, device=x.device)
    return torch.where(turned[:, None], x.flip(-1), x)


class Recorded:
    """A function that keeps the batches that ``noisy`` returns, by seed."""

    def __init__(self):
        self.batches = {}

    def __call__(self, x, generator):
        seed = generator.initial_seed()
        assert seed not in self.batches, "a batch is augmented once"
        found = noisy(x, generator)
        self.batches[seed] = found.clone()
        return found


@pytest.mark.parametrize("name", [name for name in EXECUTORS if "recorded" not in name])
def test_executors_train_on_the_same_augmented_batches(name):
    """To the bit those of a plain loop over clients and steps, without padding.

    The updates are those of plain SGD on these batches.
    """
    recorded = Recorded()
    data = training_data((12,), [20, 7, 33])
    source = replace(data.source, augmentation=Augmentation.of(recorded))
    data = replace(data, source=source)
    torch.manual_seed(1)
    module = FCNN((12,), 4, hidden=(6,))
    objective, job = job_for(module, data, steps=3)
    job = replace(job, first_steps=np.array([0, 2, 5]))
    found = updates(EXECUTORS[name](objective, data), job)
    before, wanted = data.inputs.clone(), {}
    batches = job.batches(source)
    for client in range(3):
        flat = objective.spec.from_module(module)
        for step in range(3):
            rows = batches.index[client, step][batches.weight[client, step] > 0]
            stream = Stream(2).child("client", client, "augment")
            seed = stream.key(int(job.first_steps[client]) + step) >> 1
            x = noisy(data.inputs[rows], torch.Generator().manual_seed(seed))
            wanted[seed] = x
            leaf = flat.clone().requires_grad_()
            logits = torch.func.functional_call(module, objective.spec.views(leaf), (x,))
            loss = torch.nn.functional.cross_entropy(logits, data.labels[rows])
            flat = flat - 0.1 * torch.autograd.grad(loss, leaf)[0]
        change = flat - objective.spec.from_module(module)
        assert torch.allclose(found[client], change, atol=1e-6)
    assert recorded.batches.keys() == wanted.keys()
    for seed, x in wanted.items():
        assert torch.equal(recorded.batches[seed], x)
    assert torch.equal(data.inputs, before), "the samples themselves do not change"


STEPS = {"local_steps": 3}
REGIMES = {
    "epochs": {"algorithm": "scaffold", "local_epochs": 0.4},
    "sessions": STEPS | {"algorithm": "fedavg", "sessions": 2, "rounds": 2},
    "buffered": STEPS | {"algorithm": "fedbuff", "requests": 3, "buffer": 2, "rounds": 4},
    "cells": STEPS | {"algorithm": "hist", "cells": 2, "edge_rounds": 2, "executor": "loop"},
}


@pytest.mark.parametrize("regime", REGIMES)
def test_runs_in_every_regime_are_augmented(regime, toy, tmp_path):
    """They differ from runs without augmentation, except for the start and the price."""

    def settings(name):
        shared = {"clients": 6, "batch_size": 8, "split": "iid", "rounds": 3, "eval_every": 1}
        return Config.from_flags(**(shared | REGIMES[regime]), out=tmp_path / name)

    whole = wirelessfl.run(settings("whole"), data=toy, augment=noisy)
    plain = wirelessfl.run(settings("plain"), data=toy)
    assert plain.rows[0]["loss"] == whole.rows[0]["loss"]
    assert plain.rows[-1]["loss"] != whole.rows[-1]["loss"]
    assert plain.rows[-1]["sim_seconds"] == whole.rows[-1]["sim_seconds"]


def test_the_function_is_an_object_or_a_setting(config, toy, same, tmp_path):
    """Both train alike; the setting resumes by itself, the object must be given again."""
    given = config("fedavg", rounds=2)
    named = config("fedavg", rounds=2, augment=f"{__name__}:noisy")
    one = wirelessfl.run(given, data=toy, augment=noisy)
    two = wirelessfl.run(named, data=toy)
    same(one, two)
    assert one.config.given.augment == one.settings["augment"] == "noisy"
    assert effective(one.config)["given"] == {"augment": "noisy"}
    assert f'augment = "{__name__}:noisy"' in (named.run.out / "config.toml").read_text()
    same(wirelessfl.resume(named.run.out, data=toy, trust=True), two)
    halted = config("fedavg", rounds=2, checkpoint_seconds=0)
    with pytest.raises(ZeroDivisionError):
        wirelessfl.run(halted, data=toy, augment=noisy, on_row=lambda row: 1 / (1 - row["round"]))
    with pytest.raises(ConfigError, match=r"give augment=\.\.\. again"):
        wirelessfl.resume(halted.run.out, data=toy)
    with pytest.raises(ConfigError, match=r"the code or a value of augment=\.\.\. has changed"):
        wirelessfl.resume(halted.run.out, data=toy, augment=lambda x, generator: x)


def test_workers_get_the_function():
    """An executor trains alike after it is sent; a function that cannot be sent is named."""
    data = training_data((12,), [20, 7])
    module = FCNN((12,), 4, hidden=(6,))

    def executor(function):
        source = replace(data.source, augmentation=Augmentation.of(function))
        objective, job = job_for(module, replace(data, source=source), steps=2)
        return StackedExecutor(objective, replace(data, source=source), 2), job

    here, job = executor(noisy)
    assert why_no_workers(here, 2, 1) is None
    there = pickle.loads(pickle.dumps(here))
    assert torch.equal(updates(there, job), updates(here, job))
    reason = why_no_workers(executor(lambda x, generator: x)[0], 2, 1)
    assert re.match("augment cannot be sent .*: define it in a module file", reason)


def test_a_price_does_not_depend_on_it():
    flags = {"clients": 4, "rounds": 1, "local_steps": 2}
    plain, augmented = (
        wirelessfl.price(Config.from_flags("fedavg", **flags, **own)).rows
        for own in ({}, {"augment": f"{__name__}:noisy"})
    )
    assert plain == augmented


def of_torch(x, generator):
    return x + torch.randn(x.shape)


def of_numpy(x, generator):
    return x + np.random.uniform()  # noqa: NPY002


OWN = np.random.default_rng(1)


def of_its_own(x, generator):
    return x + OWN.uniform()


WRONG = {
    "a string": ("m:f", r"augment is 'm:f': give a function f\(x, generator\)"),
    "a class": (torch.nn.Identity, "augment is .*Identity.*: give a function"),
    "shape": (lambda x, g: x[:, 1:], r"returned torch.float32 \[8, 11\]: return .*\[8, 12\]"),
    "dtype": (lambda x, g: x.double(), r"returned torch.float64 \[8, 12\]: return"),
    "nothing": (lambda x, g: None, "returned None: return"),
    "not finite": (lambda x, g: x / 0, "not finite"),
    "fails": (lambda x: x, "augment '<lambda>': TypeError"),
    "module": (torch.nn.Identity(), r"'Identity': TypeError.* Give a function f\(x, generator\)"),
    "torch": (of_torch, "'of_torch' draws other random numbers than those of its generator"),
    "numpy": (of_numpy, "draw from the generator alone, e.g. torch.rand"),
    "its own generator": (of_its_own, "or keeps state"),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_functions_give_one_line(case, toy):
    function, message = WRONG[case]
    with pytest.raises((ConfigError, TrainingError), match=message) as caught:
        build(Config.from_flags("fedavg", clients=3), data=toy, augment=function)
    assert "\n" not in str(caught.value)


def test_wrong_paths_and_two_functions_are_refused(toy, tmp_path):
    for path, message in (
        ("noise", "augment is 'noise': give the import path"),
        ("math:nothing", "augment 'math:nothing'"),
        ("math:pi", r"augment 'math:pi' is 3.14\d+: give a function f\(x, generator\)"),
    ):
        with pytest.raises(ConfigError, match=message):
            Config.from_flags("fedavg", augment=path)
    named = {"augment": f"{__name__}:noisy"}
    with pytest.raises(ConfigError, match=re.escape("conflicts with augment=...")):
        build(Config.from_flags("fedavg", clients=3, **named), data=toy, augment=noisy)
    tasks = Config.from_flags("fedast", clients=3, task=["digits,name=a", "digits,name=b"])
    with pytest.raises(ConfigError, match=r"augment=\.\.\. conflicts with the tables of tasks"):
        build(tasks, augment=noisy)
    of_task = Config.from_flags("fedast", task=[f"digits,augment={named['augment']}"])
    assert next(iter(of_task.tasks.values())).data.augment == named["augment"]
    Config.from_flags("fedavg", out=tmp_path / "x", **named)
    file = tmp_path / "run.toml"
    file.write_text(f'[algorithm]\nname = "fedavg"\n[data]\naugment = "{named["augment"]}"\n')
    with pytest.raises(ConfigError, match=r"augment is .*importing it runs code"):
        Config.from_toml(file)
