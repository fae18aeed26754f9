"""Runs on a GPU agree with those on a CPU: executors, uplinks, algorithms, schedules, resume.

On the CPU the same tests run with recorded programs, which a GPU replays as CUDA graphs.
"""

import pytest
import torch

import wirelessfl
from wirelessfl.data import Dataset
from wirelessfl.models import FCNN, CifarCNN, LeNet5

TOLERANCE = 1e-4
DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)]
SMALL = {"clients": 6, "local_steps": 3, "rounds": 3, "batch_size": 8, "lr": 0.05, "chunk": 4}


@pytest.fixture(params=DEVICES)
def device(request):
    if request.param == "cuda" and not torch.cuda.is_available():
        pytest.skip("this machine has no GPU")
    return request.param


def images(shape, classes=4):
    generator = torch.Generator().manual_seed(3)
    centres = torch.randn(classes, *shape, generator=generator)
    labels = torch.arange(120) % classes
    x = (centres[labels] + torch.randn(120, *shape, generator=generator)).clamp(-3, 3) / 3
    return Dataset("images", x[:96], labels[:96], x[96:], labels[96:], classes)


def ends(config, device, algorithm, data, model=None, **flags):
    """The finished run."""
    made = config(algorithm, **(SMALL | flags), device=device)
    return wirelessfl.run(made, data=data, model=None if model is None else model())


def assert_close(first, second, flips=0.0):
    """Parameters agree to 1e-4 of their largest value, seconds and MiB exactly.

    ``flips`` is the fraction of elements that may differ more, because an element at a threshold
    was rounded, or chosen, differently.
    """
    assert first.params.keys() == second.params.keys()
    for name, value in first.params.items():
        other = second.params[name].cpu()
        scale = max(float(value.abs().max()), 1.0)
        apart = (value.cpu() - other).abs() > TOLERANCE * scale
        assert float(apart.float().mean()) <= flips, name
    for row, other in zip(first.rows, second.rows, strict=True):
        for field in ("sim_seconds", "uplink_mib"):
            assert row[field] == other[field]


def fcnn():
    torch.manual_seed(1)
    return FCNN((12,), 4, hidden=(9, 8))


def lenet5():
    torch.manual_seed(1)
    return LeNet5((1, 28, 28), 4)


def cifar_cnn():
    torch.manual_seed(1)
    return CifarCNN((3, 32, 32), 4)


MODELS = {
    "fcnn": (fcnn, None),
    "lenet5": (lenet5, (1, 28, 28)),
    "cifar-cnn": (cifar_cnn, (3, 32, 32)),
}
EXECUTORS = [
    {"executor": "loop"},
    {"executor": "vmap", "replay": "off"},
    {"executor": "vmap", "replay": "on"},
    {"executor": "stacked", "replay": "off"},
    {"executor": "stacked", "replay": "on"},
]


def _names(flags):
    return "-".join(map(str, flags.values()))


CASES = [
    pytest.param("cuda", name, flags, marks=pytest.mark.gpu, id=f"cuda-{name}-{_names(flags)}")
    for name in MODELS
    for flags in EXECUTORS
]
CASES += [pytest.param("cpu", "lenet5", EXECUTORS[-1], id="cpu")]


@pytest.mark.thorough(every=8)
@pytest.mark.parametrize(("device", "name", "flags"), CASES, indirect=["device"])
def test_executors(config, toy, device, name, flags):
    """Every executor, with and without recorded steps, agrees with the loop on the CPU."""
    model, shape = MODELS[name]
    data = toy if shape is None else images(shape)
    size = {"local_steps": 2, "rounds": 2} if name == "cifar-cnn" else {}
    reference = ends(config, "cpu", "fedavg", data, model, executor="loop", **size)
    assert_close(reference, ends(config, device, "fedavg", data, model, **flags, **size))


ALGORITHMS = {
    "hist": {"cells": 3},
    "hist, optimized masks": {"cells": 3, "mask_sizes": "optimized"},
    "hist, scaled submodels": {"cells": 3, "submodel_scale": "width"},
    "hist, scaffold": {"cells": 3, "local": "scaffold"},
    "ra-fed": {"capacities": (1.0, 0.5), "submodel_scale": "width"},
    "ram-fed": {"capacities": (1.0, 0.5, 0.25)},
    "fadamgc": {"clients_per_round": 4, "tracking_clients": 2, "lr": 0.01},
    "fa-nt": {"clients_per_round": 4, "tracking_clients": 2, "lr": 0.01},
    "scaffold-m": {"clients_per_round": 4},
    "fedams": {},
    "moon": {},
    "fedprox": {"mu": 0.1},
}


@pytest.mark.thorough(every=8)
@pytest.mark.parametrize("name", ALGORITHMS)
def test_algorithms(config, toy, device, name):
    """States, submodels, corrections and penalties agree with the CPU without recorded steps."""
    algorithm, flags = name.partition(",")[0], ALGORITHMS[name]
    reference = ends(config, "cpu", algorithm, toy, fcnn, replay="off", **flags)
    assert_close(reference, ends(config, device, algorithm, toy, fcnn, replay="on", **flags))
    if device != "cpu":
        assert_close(reference, ends(config, device, algorithm, toy, fcnn, replay="off", **flags))


UPLINKS = {
    "tdma": {"uplink": "tdma"},
    "ofdma": {"uplink": "ofdma"},
    "fixed": {"uplink": "fixed"},
    "aircomp": {"uplink": "aircomp", "snr_db": 10.0},
    "aircomp, physical": {"uplink": "aircomp", "snr_db": 10.0, "convention": "physical"},
    "quantisation": {"downlink_compression": "quantisation", "downlink_compression_bits": 6},
    "top-k": {"downlink_compression": "top-k"},
    "sent signs": {"uplink_compression": "sign", "error_feedback": True},
    "sent bits": {"uplink_compression": "quantisation", "uplink_compression_bits": 2},
}


@pytest.mark.gpu
@pytest.mark.parametrize("device", ["cuda"], indirect=True)
@pytest.mark.parametrize("name", UPLINKS)
def test_uplinks(config, toy, device, name):
    """Noise, rounding and dropped elements are those of the CPU."""
    cells = {} if name == "fixed" else {"cells": 3}
    algorithm = "hist" if cells else "fedavg"
    reference = ends(config, "cpu", algorithm, toy, fcnn, **cells, **UPLINKS[name])
    found = ends(config, device, algorithm, toy, fcnn, **cells, **UPLINKS[name])
    assert_close(reference, found, flips=0.02 if name in ("quantisation", "top-k") else 0.0)


REGIMES = {
    "rounds": ("hist", {"cells": 3, "dropout": 0.2, "hidden": (9,), "model": "fcnn"}),
    "requests": ("fedast", {"requests": 4, "buffer": 2, "rounds": 8, "eval_every": 2}),
    "cells": ("hfedavg", {"cells": 3, "schedule": "buffered", "buffer": 2}),
    "sessions": ("fedavg", {"sessions": 2, "split": "iid", "warm_start": "proposed"}),
}


@pytest.mark.thorough(every=8)
@pytest.mark.parametrize("name", REGIMES)
def test_schedules_and_resume(config, toy, device, halt_at, name):
    """Runs that were interrupted and resumed agree with uninterrupted ones on the CPU."""
    algorithm, flags = REGIMES[name]
    flags = SMALL | flags
    reference = wirelessfl.run(config(algorithm, **flags, device="cpu"), data=toy)
    made = config(algorithm, **flags, device=device, checkpoint_seconds=0)
    with pytest.raises(KeyboardInterrupt):
        wirelessfl.run(made, data=toy, on_row=halt_at(2))
    resumed = wirelessfl.resume(made.run.out, data=toy)
    assert_close(reference, resumed)


@pytest.mark.gpu
def test_a_gpu_replays_cuda_graphs():
    """The steps of a chunk run as a graph, which is recorded once and gives the loop's updates."""
    if not torch.cuda.is_available():
        pytest.skip("this machine has no GPU")
    from benchmarks.workloads import client_data, job_of, trained, workloads
    from wirelessfl.training.objective import Objective
    from wirelessfl.training.stacked import StackedExecutor

    x, y = torch.randn(240, 1, 28, 28), torch.arange(240) % 10
    device = torch.device("cuda")
    module = workloads()["W1"].module.to(device)
    objective, data = Objective.of(module), client_data(x.to(device), y.to(device), 4)
    executor = StackedExecutor(objective, data, 4, recorded=True)
    first = trained(executor, job_of(objective, 4))
    second = trained(executor, job_of(objective, 4))
    assert len(executor._recordings) == 1
    assert next(iter(executor._recordings.values()))._graph is not None
    assert torch.equal(first, second)
