"""Rounded products of local training: what they compute, where they do not act, what is refused."""

from dataclasses import replace

import pytest
import torch
from torch import nn
from torch.nn import functional as F

import wirelessfl
from tests.executors import ANY_MODULE, EXECUTORS
from tests.wirelessfl.training.jobs import job_for, plain_loop, training_data, updates
from tests.wirelessfl.training.test_engine import CHAINS, MODELS
from wirelessfl.base.errors import ConfigError
from wirelessfl.base.torch_state import running
from wirelessfl.models import FCNN
from wirelessfl.training.evaluation import evaluate
from wirelessfl.training.module_executors import LoopExecutor
from wirelessfl.training.objective import Objective
from wirelessfl.training.precision import INSTRUCTIONS, check_precision, reduced, tf32
from wirelessfl.training.stacked import StackedExecutor
from wirelessfl.training.step_costs import default_chunk

CPU = torch.device("cpu")
BF16 = 2.0**-8
"""Largest relative error of a number that is rounded to bfloat16."""


@pytest.fixture
def processor(monkeypatch):
    """Function that gives the CPU exactly these instructions."""

    def have(*names):
        for name, test in INSTRUCTIONS.items():
            monkeypatch.setattr(torch.cpu, test, lambda has=name in names: has, raising=False)

    return have


def gap(value, expected):
    return float((value - expected).norm() / expected.norm())


@pytest.mark.thorough(every=8)
@pytest.mark.parametrize("name", MODELS)
def test_every_executor_rounds(name):
    """Updates differ from those of a plain loop by no more than roundings and flipped ReLUs."""
    torch.manual_seed(0)
    make, shape = MODELS[name]
    module = make()
    data = training_data(shape, [20, 5, 50, 16, 33], batch_size=8)
    task, job = job_for(module, data, lr=0.01, steps=2)
    exact = plain_loop(module, data, job, lr=0.01)
    rounded = replace(task, precision="bf16")
    for path, make_executor in EXECUTORS.items() if name in CHAINS else ANY_MODULE.items():
        update = updates(make_executor(rounded, data), job)
        assert update.dtype == torch.float32
        assert 0.1 * BF16 < gap(update, exact) < 20 * BF16, path


@pytest.mark.parametrize("path", ["stacked 5", "vmap 5", "vmap 1", "vmap 2, flat", "loop"])
def test_products_are_those_of_rounded_factors(path):
    """A step of a linear layer, of float64 products of rounded factors, within a rounding.

    The update is not rounded, and the bias, whose gradient is a sum and no product, hardly.
    """
    torch.manual_seed(0)
    module = nn.Sequential(nn.Linear(9, 4))
    data = training_data((9,), [16])
    task, job = job_for(module, data, lr=0.01, steps=1)
    x, y = data.inputs[job.batches(data.source).index[0, 0]], data.labels
    y = y[job.batches(data.source).index[0, 0]]

    def rounded(value):
        return value.bfloat16().double()

    weight, bias = (rounded(p.detach()) for p in module.parameters())
    logits = rounded(rounded(x) @ weight.T + bias)
    slope = rounded((logits.softmax(-1) - F.one_hot(y, 4)) / 16)
    expected = -0.01 * torch.cat([(slope.T @ rounded(x)).flatten(), slope.sum(0)])
    update = updates(EXECUTORS[path](replace(task, precision="bf16"), data), job)[0].double()
    assert torch.allclose(update, expected, rtol=BF16, atol=2e-4 * BF16)
    exact = updates(EXECUTORS[path](task, data), job)[0].double()
    assert not torch.allclose(exact, expected, rtol=BF16, atol=2e-4 * BF16)


def test_only_training_is_rounded(config, toy, processor):
    """Parameters are not rounded, and a row has the loss of the parameters in float32."""
    processor("AVX512-BF16")
    start = FCNN((12,), 4)
    runs = [
        wirelessfl.run(config("fedavg", precision=precision), data=toy, model=start)
        for precision in ("float32", "bf16")
    ]
    exact, rounded = (torch.cat([p.flatten() for p in run.params.values()]) for run in runs)
    assert 0.01 * BF16 < gap(rounded, exact) < 10 * BF16
    assert gap(rounded.bfloat16().float(), rounded) > 0.1 * BF16
    model = runs[1].model(module=FCNN((12,), 4))
    with torch.no_grad():
        loss = F.cross_entropy(model.eval()(toy.test_inputs), toy.test_labels)
    assert runs[1].rows[-1]["loss"] == pytest.approx(float(loss), rel=1e-5)


def test_a_sum_over_uses_of_a_tensor_is_not_rounded():
    """A weight that is used 300 times has a gradient of 300 equal parts."""

    class Repeated(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(torch.ones(1, 1))

        def forward(self, x):
            return F.pad(sum(F.linear(x, self.weight).float() for _ in range(300)), (0, 3))

    data = training_data((1,), [4])
    task, job = job_for(Repeated(), data, lr=1.0, steps=1)
    exact = updates(LoopExecutor(task, data), job)
    rounded = updates(LoopExecutor(replace(task, precision="bf16"), data), job)
    assert gap(rounded, exact) < 4 * BF16


class Seen(nn.Module):
    """A linear layer that notes the precision in which torch computes its products."""

    def __init__(self):
        super().__init__()
        self.layer, self.seen = nn.Linear(9, 4), []

    def forward(self, x):
        cudnn = torch.backends.cudnn.allow_tf32
        self.seen.append((self.training, torch.get_float32_matmul_precision(), cudnn))
        return self.layer(x)


def test_tf32_is_on_in_training_alone():
    module = Seen()
    data = training_data((9,), [16])
    task, job = job_for(module, data, steps=1)
    executor = LoopExecutor(replace(task, precision="tf32"), data)
    with running:
        updates(executor, job)
        evaluate(task, job.servers["params"][0], data.inputs, data.labels)
    assert {*module.seen} == {(True, "high", True), (False, "highest", False)}


def test_tf32_refuses_another_run_of_the_process():
    """Torch has one setting for all threads."""
    refused = pytest.raises(ConfigError, match="another run in this process")
    with running, running, refused, tf32("tf32"):
        pytest.fail("it entered")
    with running, running, tf32("bf16"):
        assert torch.get_float32_matmul_precision() == "highest"


@pytest.mark.parametrize(
    ("names", "bf16"),
    [((), None), (("AMX",), "AMX"), (("AMX", "AVX512-BF16"), "AMX and AVX512-BF16")],
)
def test_a_cpu_has_bf16_if_it_has_its_products(names, bf16, processor):
    processor(*names)
    assert reduced(CPU) == ({"bf16": bf16} if bf16 else {})


def test_an_old_version_of_torch_finds_nothing(monkeypatch):
    for test in INSTRUCTIONS.values():
        monkeypatch.delattr(torch.cpu, test, raising=False)
    assert reduced(CPU) == {}


@pytest.mark.parametrize(("capability", "refused"), [((7, 5), True), ((8, 0), False)])
def test_a_gpu_needs_a_compute_capability(capability, refused, monkeypatch):
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda _: capability)
    for precision in ("tf32", "bf16"):
        if not refused:
            check_precision(precision, torch.device("cuda"))
            continue
        with pytest.raises(ConfigError, match=f'^precision="{precision}" .* 8.0 or newer'):
            check_precision(precision, torch.device("cuda"))


@pytest.mark.parametrize(("precision", "remedy"), [("tf32", ""), ("bf16", "AMX or AVX512-BF16")])
def test_a_run_is_refused_where_the_cpu_lacks_the_precision(
    precision, remedy, config, toy, processor
):
    processor()
    with pytest.raises(ConfigError, match=rf'^precision="{precision}" .*{remedy}.*"float32".$'):
        wirelessfl.run(config("fedavg", precision=precision), data=toy)


def test_a_model_that_cannot_be_rounded_is_refused(config, toy, processor):
    class Inner(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(12, 4)

        def forward(self, x):
            values = self.layer(x.flatten(1))
            return values.view(torch.int32).view(torch.float32) + 0 * values

    processor("AVX512-BF16")
    with pytest.raises(ConfigError, match="conflicts with model Inner, which cannot be"):
        wirelessfl.run(config("fedavg", precision="bf16"), data=toy, model=Inner())


def test_chunks_have_room_for_rounded_copies():
    """Half as many clients, whose parameters and rounded copies take as many bytes."""
    wide = Objective.of(nn.Linear(1 << 18, 1, bias=False))
    sizes = [
        default_chunk(StackedExecutor, replace(wide, precision=precision), 60, 50, 1e-4)
        for precision in ("float32", "bf16")
    ]
    assert sizes == [8, 4]
