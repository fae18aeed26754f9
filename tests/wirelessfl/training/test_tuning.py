"""The chunk size is chosen by timing on CPUs, and by memory on GPUs."""

from types import SimpleNamespace

import pytest
import torch
from torch import nn

from wirelessfl.models import FCNN, LeNet5, ResNet18
from wirelessfl.runs.build.executors import GPU_CHUNK, _gpu_chunk
from wirelessfl.training.module_executors import LoopExecutor, VmapExecutor
from wirelessfl.training.objective import Objective
from wirelessfl.training.step_costs import (
    TENSOR_COPIES,
    candidates,
    estimated_sample_bytes,
    estimated_step_seconds,
    fastest_chunk,
)


def test_chunk_sizes_to_try_are_bounded_by_memory_and_clients():
    assert candidates(1, 1000) == [1]
    assert candidates(7, 1000) == [1, 6, 7]
    assert candidates(60, 1000) == [1, 6, 10, 20, 60]
    assert candidates(100_000, 1000) == [1, 6, 10, 20, 60, 200]
    assert candidates(100_000, 238_510) == [1, 6]  # at most 8.4 MB of parameters
    assert candidates(100_000, 10**6) == [1]
    assert candidates(100_000, 10**9) == [1]


@pytest.mark.parametrize(
    ("seconds_per_client", "expected"),
    [
        ({5: 4.0, 10: 2.0, 20: 1.0, 60: 2.0}, 20),
        ({5: 1.0, 10: 0.95, 20: 0.95, 60: 0.95}, 5),  # gain too small
        ({5: 1.0, 20: 2.0, 60: 0.1, 200: 0.1}, 5),  # a slower size ends the search
    ],
)
def test_the_fastest_chunk_is_chosen(monkeypatch, seconds_per_client, expected):
    """A simulated clock advances by the known time of each chunk size."""
    clock = [0.0]
    monkeypatch.setattr("wirelessfl.training.step_costs.time.perf_counter", lambda: clock[0])

    class Known:
        def __init__(self, chunk):
            self.chunk = chunk

        def train(self, clients):
            clock[0] += seconds_per_client[self.chunk] * clients
            return iter(())

    assert fastest_chunk(Known, lambda clients: clients, sorted(seconds_per_client)) == expected


def test_the_memory_of_a_sample_is_estimated():
    """Stored tensors and the windows of convolutions count; parameters do not."""
    x = torch.randn(4, 3, 6, 6)
    linear = Objective.of(nn.Sequential(nn.Flatten(), nn.Linear(108, 5)))
    assert estimated_sample_bytes(linear, x) == TENSOR_COPIES * 4 * 108
    convolution = nn.Sequential(nn.Conv2d(3, 2, 3), nn.Flatten(), nn.Linear(32, 5))
    windows = 16 * 27
    size = TENSOR_COPIES * 4 * (108 + windows + 32)
    assert estimated_sample_bytes(Objective.of(convolution), x) == size
    assert convolution.training


def test_clients_on_a_gpu_fill_its_memory(monkeypatch):
    """With long convolutions under vmap they train one by one."""
    device, memory = torch.device("cuda"), SimpleNamespace(total_memory=0)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda device: memory)

    def chunk(module, shape, gigabytes, kind=VmapExecutor):
        memory.total_memory = int(gigabytes * 1e9)
        objective, x = Objective.of(module), torch.randn(4, *shape)
        data = SimpleNamespace(first=lambda count: (x[:count], None))
        data.source = SimpleNamespace(batch_size=50)
        seconds = estimated_step_seconds(objective, x, 50)
        trained = SimpleNamespace(objective=objective, data=data, step_seconds=seconds)
        return _gpu_chunk(trained, kind, device)

    assert chunk(FCNN((784,), 10, hidden=(300,)), (784,), 80) == GPU_CHUNK
    lenet5 = LeNet5((1, 28, 28), 10)
    assert [chunk(lenet5, (1, 28, 28), size) for size in (80, 8, 0.01)] == [GPU_CHUNK, 115, 1]
    assert chunk(lenet5, (1, 28, 28), 80, LoopExecutor) == 1
    assert chunk(ResNet18((3, 32, 32), 10), (3, 32, 32), 1000) == 1
