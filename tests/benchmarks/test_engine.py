"""Training benchmark with few clients: its tables, and equal work of all methods."""

import json
from functools import partial
from pathlib import Path

import pytest
import torch
from torch.nn import functional as F

from benchmarks import engine, gpu, memory, resnet18, rounded, workloads
from benchmarks.executors import FAST, GENERAL, PLAIN, build, variants
from benchmarks.suite import bench
from benchmarks.timing import AT_SGEMM
from wirelessfl.cli import main
from wirelessfl.models import ResNet18
from wirelessfl.models.submodels import ParamSpec
from wirelessfl.training.module_executors import VmapExecutor
from wirelessfl.training.objective import Objective


@pytest.fixture
def no_data(monkeypatch):
    nowhere = type("Place", (), {"folder": Path("/nowhere")})
    monkeypatch.setattr(workloads, "find_place", lambda *_: nowhere)


@pytest.mark.thorough
def test_tables(no_data, monkeypatch, known_times, take_turns):
    """Medians, ranges, ratios and the sgemm floor match the fake timings."""
    few = {name: way._replace(workers=1) for name, way in variants().items() if name != FAST}
    few[FAST] = variants()[FAST]._replace(workers=2)
    monkeypatch.setattr(engine, "variants", lambda: few)  # workers take seconds to start
    monkeypatch.setattr(workloads, "SAMPLES", 100)
    for name in ("job_of", "plain_loop"):  # only the untimed first calls train: one step each
        monkeypatch.setattr(engine, name, partial(getattr(workloads, name), steps=1))
    monkeypatch.setattr(engine, "rounded_table", lambda *_: [])
    tables = engine.engine_bench(repeats=3, clients=2, scaling=(2,), memory=False)
    titles = ["machine", "W1", "W2", "W1 with more clients", "submodels on W1"]
    assert [title.split(":")[0] for title in tables] == titles
    begun, rate = 18, 2 * 2048**3  # three sgemm rates, best of six timings each; the best takes 1 s
    assert tables["machine"][1]["value"] == f"{rate / 1e9:.0f} GFLOP/s"
    ways = [PLAIN, *few]
    for name, work in workloads.workloads().items():
        ((title, rows),) = [(t, rows) for t, rows in tables.items() if t.startswith(f"{name}:")]
        assert "2 clients, random data" in title
        assert [row["method"] for row in rows] == [*ways, AT_SGEMM]
        times, begun = take_turns(ways, 3, begun), begun + 3 * len(ways)
        floor = rows[-1]["seconds"]
        assert floor == pytest.approx(work.flop * 2 / 60 / rate)
        assert rows[-1]["percent_of_sgemm_rate"] == 100
        assert rows[-1]["ratio"] == pytest.approx(times[PLAIN][1] / floor)
        for row in rows[:-1]:
            first, middle, last = times[row["method"]]
            assert row["seconds"] == middle
            assert row["range"] == f"{first} - {last}"
            assert row["ratio"] == pytest.approx(times[PLAIN][1] / middle)
            assert row["percent_of_sgemm_rate"] == pytest.approx(100 * floor / middle)
            assert (row["chunk"] is None) == (row["method"] == PLAIN)
            assert row["chunk"] is None or row["chunk"] >= 1
            assert (row["startup_seconds"] is not None) == (row["method"] == FAST)
            assert row["peak_mb"] is None
    scaled = tables["W1 with more clients"]
    assert [(row["method"], row["clients"]) for row in scaled] == [
        (GENERAL, 2),
        (FAST, 2),
    ]
    for row in scaled:  # not interleaved: three consecutive timings each
        assert row["seconds"] == begun + 2
        assert row["ms_per_client"] == 1e3 * row["seconds"] / 2
        begun += 3
    rows = tables["submodels on W1"]
    assert [row["parameters"] for row in rows] == [
        238_510, 150 * 795 + 10, 75 * 795 + 10, 38 * 795 + 10,
    ]  # fmt: skip
    times = take_turns([row["algorithm"] for row in rows], 3, begun)
    assert [row["seconds"] for row in rows] == [middle for _, middle, _ in times.values()]
    assert [row["ratio_to_hfedavg"] for row in rows] == [
        pytest.approx(row["seconds"] / rows[0]["seconds"]) for row in rows
    ]


def test_rounded_products_are_timed_against_float32(monkeypatch, known_times, take_turns):
    """The median of each method relative to its own in float32; nothing without the products."""
    alone = {name: way._replace(workers=1) for name, way in variants().items()}
    monkeypatch.setattr(rounded, "variants", lambda: alone)  # workers take seconds to start
    monkeypatch.setattr(rounded, "job_of", partial(workloads.job_of, steps=1))
    x, y = torch.rand(100, 1, 28, 28), torch.arange(100) % 10
    monkeypatch.setattr(rounded, "reduced", lambda _: {})
    assert rounded.rounded_table(x, y, 2, 3) == []
    monkeypatch.setattr(rounded, "reduced", lambda _: {"bf16": "AMX"})
    rows, begun = rounded.rounded_table(x, y, 2, 3), 0
    keys = [(row["method"], row["precision"]) for row in rows]
    assert keys == [(m, p) for m in rounded.METHODS for p in rounded.PRECISIONS] * 2
    for part in (rows[:4], rows[4:]):
        times = take_turns(keys[:4], 3, begun)
        begun += 12
        for row in part:
            exact, median = times[row["method"], "float32"][1], row["seconds"]
            assert median == times[row["method"], row["precision"]][1]
            assert row["ratio_to_float32"] == exact / median


def test_flop_counts():
    """A step counts three forward passes, of 2 FLOP per sample and use of a weight.

    W1 uses each weight once per sample.
    """
    steps = workloads.CLIENTS * workloads.STEPS * workloads.BATCH
    first, second = workloads.workloads().values()
    assert first.flop == pytest.approx(3 * 2 * steps * (784 * 300 + 300 * 10), rel=1e-3)
    conv = 24 * 24 * 6 * 25 + 8 * 8 * 16 * 150
    dense = 256 * 120 + 120 * 84 + 84 * 10
    assert second.flop == pytest.approx(3 * 2 * steps * (conv + dense), rel=1e-3)


@pytest.mark.thorough(every=8)
@pytest.mark.parametrize("name", ["W1", "W2"])
def test_all_methods_end_at_the_parameters_of_a_plain_loop(name):
    """Executors match a reference loop on the same batches; the plain loop draws other ones."""
    work = workloads.workloads()[name]
    objective = Objective.of(work.module)
    x, y = torch.rand(500, 1, 28, 28), torch.arange(500) % 10
    data, job = workloads.client_data(x, y, 2), workloads.job_of(objective, 2, steps=5)
    batches = job.batches(data.source)
    expected = torch.zeros(objective.spec.size)
    start = objective.spec.from_module(work.module)
    for client in range(2):
        flat = start.clone()
        for rows in batches.index[client]:
            leaf = flat.clone().requires_grad_()
            logits = torch.func.functional_call(work.module, objective.spec.views(leaf), (x[rows],))
            F.cross_entropy(logits, y[rows]).backward()
            flat = flat - workloads.LR * leaf.grad
        expected += flat - start
    assert float(expected.abs().max()) > 1e-3
    for variant in variants().values():
        executor = build(variant, objective, data)
        try:
            assert torch.allclose(workloads.trained(executor, job)[0], expected, atol=1e-5), variant
        finally:
            executor.close()
    plain = workloads.plain_loop(work.module, data, steps=5) - start
    assert (plain - expected / 2).norm() < 0.5 * plain.norm()  # the same samples in another order


def test_every_variant_runs_with_its_number_of_threads(no_data, monkeypatch):
    """Threads belong to the variant, not to the machine."""
    seen = []

    def recorded(executor, job):
        seen.append(torch.get_num_threads())
        return workloads.trained(executor, job)

    few = {name: way for name, way in variants().items() if way.workers == 1}
    monkeypatch.setattr(engine, "variants", lambda: few)
    monkeypatch.setattr(engine, "trained", recorded)
    for name in ("job_of", "plain_loop"):
        monkeypatch.setattr(engine, name, partial(getattr(workloads, name), steps=1))
    monkeypatch.setattr(workloads, "SAMPLES", 100)
    measurement = engine.Measurement(*workloads.load_samples(None)[:2], 1, None, False)
    engine._workload_table(measurement, workloads.workloads()["W1"], 2, 1e9)
    runs = len(seen) // len(few)
    assert seen == [way.threads for way in few.values()] * runs
    assert max(seen) > 1


def test_the_plain_loop_takes_all_steps_on_few_samples():
    """The plain loop takes all steps, in several passes, if clients have only 60 samples."""
    module = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(784, 10))
    x, y = torch.rand(120, 1, 28, 28), torch.arange(120) % 10
    data, calls = workloads.client_data(x, y, 2), []
    module.register_forward_hook(lambda *_: calls.append(1))
    workloads.plain_loop(module, data)
    assert len(calls) == 2 * workloads.STEPS


def test_submodels_are_those_of_hist():
    """The cells' submodels partition the hidden neurons, as in HIST."""
    objective = Objective.of(workloads.workloads()["W1"].module)
    job = workloads.submodel_job(objective, 8, 4)
    assert isinstance(job.spec, ParamSpec)
    assert job.servers["params"].shape == (4, 75 * 795 + 10)
    assert job.node.tolist() == [0, 0, 1, 1, 2, 2, 3, 3]
    start = objective.spec.views(objective.spec.from_module(objective.module))["layers.1.weight"]
    rows = torch.cat([job.spec.views(p)["layers.1.weight"] for p in job.servers["params"]])
    assert torch.equal(rows.sort(0).values, start.sort(0).values)


PEAK = """
import os, time
import numpy as np
from benchmarks import memory

kept = np.ones(20_000_000)

def work():
    mine = np.ones(10_000_000)  # 80 MB
    end = time.monotonic() + 0.6  # dozens of samples even on a busy machine
    while time.monotonic() < end:
        kept.sum()
    return mine

print(memory.peak_added(work, [os.getpid()]))
"""


@pytest.mark.thorough
@pytest.mark.skipif(not Path("/proc/self/smaps_rollup").exists(), reason="no /proc")
def test_peaks_count_only_memory_added_by_the_call(tmp_path, launcher):
    """The peak is the memory that the call adds to what was allocated before.

    It is measured in a separate process, because idle pages may be reclaimed during the call.
    """
    (tmp_path / "script.py").write_text(PEAK)
    shown, _ = launcher.start(script=tmp_path / "script.py").communicate()
    assert 70e6 < int(shown) < 110e6
    parameters = 4 * 238_510 / 1e6  # one client's parameters, which its worker modifies
    assert parameters < memory.peak_mb("W1", FAST, 2) < 200


@pytest.mark.thorough
def test_the_gpu_table_runs_on_a_cpu(known_times):
    """The GPU table, computed on the CPU, has the expected bandwidths.

    A row's bandwidth is the minimum traffic of a round, in bytes, divided by the median time.
    """
    x, y = torch.rand(2000, 1, 28, 28), torch.arange(2000) % 10
    tables = gpu.gpu_tables(x, y, 2, 3, torch.device("cpu"))
    bandwidth, begun = 2 * 256e6, 5  # 256 MB read and written; the best of five takes 1 s
    for (title, rows), work in zip(tables.items(), workloads.workloads().values(), strict=True):
        assert title == f"{work.name} on cpu, copies at {bandwidth / 1e9:.0f} GB/s"
        assert [row["method"] for row in rows] == [
            "plain loop", "vmap, recorded", "stacked, recorded",
        ]  # fmt: skip
        size = sum(parameter.numel() for parameter in work.module.parameters())
        moved = 4 * 2 * workloads.STEPS * (3 * size + workloads.BATCH * 784)
        for row in rows:
            assert row["seconds"] == begun + 2
            assert row["ratio"] == pytest.approx(rows[0]["seconds"] / row["seconds"])
            assert row["percent_of_bandwidth"] == pytest.approx(
                100 * moved / row["seconds"] / bandwidth
            )
            begun += 3


def test_the_throughput_table_runs_on_a_cpu(monkeypatch, known_times):
    """Clients per second of each model and number of clients, in each precision."""
    monkeypatch.setattr(gpu, "job_of", partial(workloads.job_of, steps=1))
    monkeypatch.setattr(gpu, "reduced", lambda _: {"bf16": "AMX"})
    monkeypatch.setattr(gpu, "CLIENTS", 2)
    monkeypatch.setattr(gpu, "MANY", 4)
    x, y = torch.rand(100, 1, 28, 28), torch.arange(100) % 10
    rows = gpu.throughput_table(x, y, 1, torch.device("cpu"))
    cases = [("W1", 2), ("W1", 4), ("W2", 2), ("CIFAR CNN", 10), ("CIFAR CNN", 2)]
    for place, row in enumerate(rows):
        assert (row["model"], row["clients"]) == cases[place // 2]
        assert row["precision"] == ("float32", "bf16")[place % 2]
        assert row["milliseconds"] == 1e3 * (place + 1)
        assert row["clients_per_second"] == row["clients"] / (place + 1)
    assert len(rows) == 2 * len(cases)


@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has a GPU")
def test_the_benchmark_of_a_gpu_needs_one(capsys):
    assert main(["bench", "gpu"]) == 2
    assert "torch finds no GPU" in capsys.readouterr().err


def test_the_resnet_table_runs_on_a_cpu(known_times, take_turns):
    """The ResNet-18 benchmark runs on the CPU with a narrow model and few steps."""
    few = {"clients": 2, "steps": 2, "samples": 4, "width": 2}
    ((title, rows),) = resnet18.resnet18_table(torch.device("cpu"), 3, **few).items()
    assert "ResNet-18 on cpu" in title
    assert "2 clients, 2 steps of batch 4" in title
    chunks = [f"vmap, recorded, chunks of {chunk}" for chunk in (1, 2)]
    times = take_turns([resnet18.PLAIN, resnet18.AS_SET, *chunks], 3)
    assert [row["method"] for row in rows] == list(times)
    for row in rows:
        _, middle, _ = times[row["method"]]
        assert (row["seconds"], row["rounds_per_minute"]) == (middle, 60 / middle)
        assert row["ratio"] == pytest.approx(times[resnet18.PLAIN][1] / middle)


def test_the_resnet_loop_trains_like_the_engine():
    """The plain ResNet loop and the executor compute equal updates on equal batches."""
    torch.manual_seed(0)
    module = ResNet18((3, 32, 32), 10, width=2)
    x, y = torch.rand(8, 3, 32, 32), torch.arange(8)
    task, data = Objective.of(module), workloads.client_data(x, y, 2)
    job = workloads.job_of(task, 2, 3)
    drawn = job.batches(data.source)
    batches = [[(x[rows], y[rows]) for rows in client] for client in drawn.index]
    assert [len(own) for own in batches] == [3, 3]
    plain = resnet18.plain_round(module, batches)
    executor = VmapExecutor(task, data, 2, recorded=True)
    assert float(plain.abs().max()) > 1e-3
    assert torch.allclose(workloads.trained(executor, job)[0], plain, atol=1e-5)


def test_the_number_of_concurrent_clients_fits_in_memory(monkeypatch):
    """If a client's step needs 3 GB, 13 clients fit into half of 80 GB; the minimum is one."""
    known = {"memory_allocated": 10**9, "max_memory_allocated": 4 * 10**9}
    for name, value in known.items():
        monkeypatch.setattr(torch.cuda, name, lambda _, v=value: v)
    monkeypatch.setattr(torch.cuda, "reset_peak_memory_stats", lambda _: None)
    device, ran = torch.device("cuda"), []
    for free, clients, expected in ((80e9, 100, 13), (80e9, 10, 10), (4e9, 10, 1)):
        monkeypatch.setattr(torch.cuda, "mem_get_info", lambda _, f=free: (int(f), 10**11))
        assert resnet18._chunk(lambda: ran.append(1), device, clients) == expected
    assert len(ran) == 3


def test_json_and_quick(no_data, monkeypatch, capsys):
    """``--json`` prints all columns, and tables omit empty ones; ``--quick`` is noted in titles."""
    known = {"table": [{"method": "known", "seconds": 1.0, "empty": None}]}
    monkeypatch.setattr(engine, "engine_bench", lambda *_, **__: known)
    assert main(["bench", "engine", "--quick", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"table (quick run)": known["table"]}
    assert bench("engine", 1, None, as_json=False, quick=False) == 0
    shown = capsys.readouterr().out
    assert "known" in shown
    assert "empty" not in shown
    assert main(["bench", "--repeats", "0"]) == 2
    assert "repeats is 0" in capsys.readouterr().err
