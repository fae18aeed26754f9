"""Work in threads of one process equals the same work one after the other, and changes no state."""

import random
import sys
import threading
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import wirelessfl
from tests.quick import fewer_steps
from tests.wirelessfl.conftest import without_wall
from tests.wirelessfl.designs.known import FEW, Known
from wirelessfl.base.errors import ConfigError

SEEDS = (0, 1)
SMALL: dict[str, Any] = {"clients": 4, "local_steps": 2, "rounds": 2, "batch_size": 8, "lr": 0.1}
CELLS: dict[str, Any] = {"cells": 2, "edge_rounds": 2}


@pytest.fixture(scope="module", autouse=True)
def quick():
    """Every run traces its own models, which other tests do once."""
    with fewer_steps():
        yield


class Residual(nn.Module):
    """A model that is no chain of layers; with dropout, only the loop executor trains it."""

    def __init__(self, seed=0, dropout=0.0):
        super().__init__()
        widths = {"first": (12, 9), "hidden": (9, 9), "last": (9, 4)}
        for name, width in widths.items():  # without numbers of the global generator
            self.add_module(name, nn.utils.skip_init(nn.Linear, *width))
        self.dropout = nn.Dropout(dropout) if dropout else nn.Identity()
        generator = torch.Generator().manual_seed(seed)
        for parameter in self.parameters():
            nn.init.normal_(parameter, std=0.3, generator=generator)

    def forward(self, x):
        x = self.first(x).relu()
        return self.last(x + self.dropout(self.hidden(x)).relu())


def settings(seed, algorithm="fedavg", out=None, **flags):
    return wirelessfl.Config.from_flags(algorithm, **(SMALL | flags), seed=seed, out=out)


def plain(result):
    return without_wall(result.rows), {n: v.numpy().tobytes() for n, v in result.params.items()}


def resumed(config, toy):
    """A run that ends after its second row and is resumed."""

    def stop(row):
        if row["round"] == 1:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        wirelessfl.run(config, data=toy, on_row=stop)
    return plain(wirelessfl.resume(config.run.out, data=toy))


def work(toy) -> dict[str, Callable[[int, Any], Any]]:
    """Functions of a seed and a new folder, by name."""
    shared = Residual()
    around = [nn.Sequential(shared), nn.Sequential(shared, nn.Tanh())]

    def run(seed, out, model=None, **flags):
        return plain(wirelessfl.run(settings(seed, out=out, **flags), data=toy, model=model))

    def designed(seed, out):
        config = settings(seed, "hfedavg", cells=2, hidden=(6,))
        found = wirelessfl.design(config, target=0.5, curve=Known(), root=out, **FEW)
        return found.objective, found.bound, repr(found.value.choice)

    def pilots(seed, out):
        config = settings(seed, "hfedavg", **CELLS)
        few = {"local_steps": [1, 2], "edge_rounds": [1, 2], "count": 3, "steps": 4}
        return list(map(plain, wirelessfl.pilot(config, root=out, data=toy, **few).results))

    return {
        "loop": lambda seed, out: run(seed, out, Residual(seed, 0.5), executor="loop"),
        "vmap": lambda seed, out: run(seed, out, Residual(seed)),
        "recorded": lambda seed, out: run(seed, out, Residual(seed), replay="on"),
        "stacked": run,
        "masks": lambda seed, out: run(seed, out, algorithm="hist", uplink="aircomp", **CELLS),
        "one module": lambda seed, out: run(seed, out, shared),
        "shared modules": lambda seed, out: run(seed, out, around[seed], local_steps=20),
        "resume": lambda seed, out: resumed(
            settings(seed, out=out, executor="loop", checkpoint_seconds=0), toy
        ),
        "price": lambda seed, out: wirelessfl.price(settings(seed, "hist", **CELLS)).rows,
        "pilot": pilots,
        "design": designed,
    }


def state():
    """What threads of a process share, and what belongs to this thread."""
    with ThreadPoolExecutor(1) as new:
        threads = new.submit(torch.get_num_threads).result()
    return {
        "torch's generator": torch.get_rng_state().numpy().tobytes(),
        "NumPy's generator": repr(np.random.get_state()),  # noqa: NPY002
        "Python's generator": random.getstate(),
        "threads": (torch.get_num_threads(), threads),
        "modes": (torch.is_grad_enabled(), torch.is_inference_mode_enabled()),
        "kernels": (torch.backends.mkldnn.enabled, torch.backends.mha.get_fastpath_enabled()),
        "precision": (torch.get_float32_matmul_precision(), torch.backends.cudnn.deterministic),
        "modules": (nn.Module.__call__, nn.Module.__getattr__),
        "warnings": list(map(str, warnings.filters)),
    }


@pytest.fixture(scope="module")
def done(toy, tmp_path_factory):
    """Results one after the other and in threads, and the state before and after the threads."""
    root, everything = tmp_path_factory.mktemp("threads"), work(toy)
    tasks = [(name, seed) for seed in SEEDS for name in everything]

    def of(place):
        def result(task):
            return everything[task[0]](task[1], root / f"{place}-{task[0]}-{task[1]}")

        return result

    before = dict(zip(tasks, map(of("alone"), tasks), strict=True))
    states = [state()]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-4)
    try:
        with ThreadPoolExecutor(5) as pool:
            after = dict(zip(tasks, pool.map(of("together"), tasks), strict=True))
    finally:
        sys.setswitchinterval(interval)
    return before, after, [*states, state()]


@pytest.mark.parametrize("name", work(None))
def test_results_in_threads_are_those_one_after_the_other(done, name):
    alone, together, _ = done
    for seed in SEEDS:
        assert together[name, seed] == alone[name, seed]
    assert alone[name, SEEDS[0]] != alone[name, SEEDS[1]]


@pytest.mark.parametrize("name", state())
def test_the_process_is_left_as_it_was(done, name):
    before, after = done[2]
    assert after[name] == before[name]


@pytest.mark.thorough(every=4)
@pytest.mark.parametrize(
    "mode",
    [torch.no_grad, torch.inference_mode, lambda: torch.autocast("cpu", torch.bfloat16)],
    ids=["no_grad", "inference_mode", "autocast"],
)
@pytest.mark.parametrize("name", ["resume", "one module", "stacked"])
def test_modes_around_a_run_do_not_matter(done, toy, tmp_path, mode, name):
    functions = work(toy)
    with mode():
        assert functions[name](0, tmp_path / "run") == done[0][name, 0]


@pytest.mark.parametrize("call", [wirelessfl.run, wirelessfl.price])
@pytest.mark.parametrize(
    ("kind", "other", "usual"),
    [("dtype", torch.float64, "torch.float32"), ("device", "meta", "'cpu'")],
)
def test_another_default_of_torch_is_refused(call, kind, other, usual):
    setter, usually = getattr(torch, f"set_default_{kind}"), getattr(torch, f"get_default_{kind}")()
    setter(other)
    try:
        with pytest.raises(ConfigError, match=rf"{other}, but .*set_default_{kind}\({usual}\)"):
            call(settings(0))
    finally:
        setter(None if kind == "device" else usually)


def test_training_overlaps(toy, tmp_path):
    """Two runs meet in the forward passes of their training, in the same local step."""
    barrier = threading.Barrier(2, timeout=60)

    def run(seed):
        model, waits = Residual(seed), []

        def meet(module, inputs):
            if waits and module.training:
                waits.clear()
                barrier.wait()

        model.first.register_forward_pre_hook(meet)
        config = settings(seed, out=tmp_path / str(seed))
        return wirelessfl.run(config, data=toy, model=model, on_row=waits.append)

    with ThreadPoolExecutor(2) as pool:
        assert [len(result.rows) for result in pool.map(run, SEEDS)] == [3, 3]
    assert not barrier.broken
