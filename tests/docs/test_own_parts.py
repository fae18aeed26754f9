"""The pages on own parts: their examples run, and their tables list what the interfaces have."""

import inspect
import re
import shlex
import subprocess
import sys
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Protocol

import numpy as np
import pytest
import torch
from torch.nn import functional as F

import wirelessfl
from channels import Network, Stream, Umi
from tests.docs.pages import GUIDES, blocks
from wirelessfl import extend
from wirelessfl.algorithms import Algorithm
from wirelessfl.algorithms.assigners import Assigner
from wirelessfl.base.registry import Choice
from wirelessfl.data import Dataset
from wirelessfl.models import FCNN
from wirelessfl.models.shapes import Declared

COMMANDS = {
    "own-algorithm": 3,
    "own-optimiser": 1,
    "own-assigner": 1,
    "own-loss-metric": 2,
    "own-model": 1,
    "own-data": 2,
    "own-channel": 3,
    "own-uplink": 2,
    "payloads": 5,
    "own-schedule": 2,
    "own-selection": 3,
    "own-failures": 1,
    "own-solver": 0,
    "checking": 0,
}
"""Number of commands of each page."""


def files_of(*pages):
    """The files of pages, by name."""
    found = [block for page in pages for block in blocks(GUIDES / f"{page}.md")]
    return {file: code for _, file, code in found if file}


@pytest.mark.thorough
@pytest.mark.parametrize("page", COMMANDS)
def test_the_examples_run(tmp_path, monkeypatch, launcher, page):
    """The examples run with the files of all pages in the current folder, as for a user."""
    monkeypatch.chdir(tmp_path)
    for file, code in files_of(*COMMANDS).items():
        Path(file).write_text(code)
    commands = 0
    small = ["--rounds", "1", "--local-steps", "1", "--threads", "1"]
    started = []
    for language, file, code in blocks(GUIDES / f"{page}.md"):
        if language == "python" and not file:
            Path("example.py").write_text(code)
            started.append(launcher.start(script=tmp_path / "example.py"))
            assert started[-1].wait() == 0, started[-1].communicate()[1]
        for line in () if language or file else code.replace("\\\n", " ").splitlines():
            words = shlex.split(line)
            assert words.pop(0) == "wirelessfl"
            more = [*small, "--out", f"run{commands}"] if words[0] == "run" else []
            if more and not {"--network", "--channel"} & {*words}:  # which have their clients
                more += ["--clients", "4"]
            # As with the installed command, Python does not add the current folder to its path.
            started.append(launcher.start(*words, *more, safe_path=True))
            commands += 1
    assert commands == COMMANDS[page]
    for process in started:
        assert process.wait() == 0, process.communicate()[1]


def test_the_files_are_in_good_style(tmp_path):
    for file, code in files_of(*COMMANDS).items():
        if file.endswith(".py"):
            (tmp_path / file).write_text(code)
    ruff = [sys.executable, "-m", "ruff", "check", "--select", "E,F,I,D1", "--line-length", "100"]
    subprocess.run([*ruff, "."], cwd=tmp_path, check=True)


def table_below(page, heading=""):
    """Name, arguments and default of each row of the tables below a heading of a page."""
    text = (GUIDES / f"{page}.md").read_text(encoding="utf-8")
    section = re.split("\n##+ ", text.partition(f"{heading}\n")[2])[0] if heading else text
    return re.findall(r"^\| `(\w+)(\(.*?\))?` \| (.*?) \|", section, re.MULTILINE)


def test_the_attributes_of_modules_are_those_of_the_table():
    """The table lists all optional attributes of models with their defaults."""
    defaults = {name: default.strip("`") for name, _, default in table_below("own-model")}
    assert defaults == {f.name: repr(f.default) for f in fields(Declared)}


OF_CHOICES = {*dir(Choice), "name", "title"}
"""Members of all choices."""
BUDGET = 15
"""Largest number of members of a contract, besides settings."""


@pytest.mark.parametrize(
    ("base", "page", "heading", "elsewhere"),
    [
        (Algorithm, "own-algorithm-methods", "# Contract of an algorithm", {*OF_CHOICES, "lr"}),
        (extend.ServerMemory, "own-algorithm-methods", "### ServerMemory", {*dir(Algorithm)}),
        (
            extend.HFedAvg,
            "own-algorithm-methods",
            "### HFedAvg",
            {*OF_CHOICES, "local", "cloud_lr"},
        ),
        (Assigner, "own-assigner", "## Contract", OF_CHOICES),
        (extend.SubmodelSizes, "own-assigner", "## SubmodelSizes", set()),
        (extend.ClientContext, "own-assigner", "## ClientContext", {*dir(Protocol)}),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_the_contract_is_that_of_the_table(base, page, heading, elsewhere):
    """The table lists all public names with arguments, and which are required."""
    rows = table_below(page, heading)
    names = [name for name, _, _ in rows]
    assert len(names) == len(set(names))
    declared = {f.name for f in fields(base)} if is_dataclass(base) else set()
    public = {name for name in {*dir(base), *declared} if not name.startswith("_")}
    assert set(names) == public - elsewhere
    assert len(names) <= BUDGET
    for name, arguments, _ in rows:
        member = inspect.getattr_static(base, name, None)
        if inspect.isfunction(member):
            first, *others = inspect.signature(member).parameters
            assert (first, arguments) == ("self", f"({', '.join(others)})"), name
        else:
            assert not arguments, name
    required = {name for name, _, default in rows if default == "required"}
    assert required == getattr(base, "__abstractmethods__", set()) - elsewhere


RECORDS = {
    ("own-algorithm", "### Cohort"): (extend.Cohort, {"start"}),
    ("own-algorithm", "### Payload"): (extend.Payload, set()),
    ("own-algorithm", "### Received"): (extend.Received, set()),
    ("own-selection", "## Candidates"): (
        extend.Candidates,
        {"draw", "history", "snr_hz", "load", "losses", "smallest", "where"},
    ),
    ("own-uplink", "### Load"): (extend.Load, {"bits", "ready_seconds", "compute_joules"}),
    ("own-uplink", "### Service"): (extend.Service, set()),
    ("own-uplink", "### Transmission"): (extend.Transmission, {"weights_of"}),
}
"""Record of each table of fields, and its properties and methods in the table."""


@pytest.mark.parametrize(("page", "heading"), RECORDS)
def test_the_fields_of_records_are_those_of_the_tables(page, heading):
    """Public fields, in any order; arguments only of methods."""
    record, more = RECORDS[page, heading]
    rows = table_below(page, heading)
    assert {name for name, *_ in rows} == {f.name for f in fields(record)} | more
    for name, arguments, _ in rows:
        member = inspect.getattr_static(record, name, None)
        method = inspect.isfunction(member)
        parameters = [*inspect.signature(member).parameters][1:] if method else []
        assert arguments == (f"({', '.join(parameters)})" if method else ""), name


def test_the_documented_algorithms_reduce_to_fedavg(tmp_path, monkeypatch):
    """MyFedAvg, and FedProx with mu = 0, equal FedAvg; FedProx with mu > 0 does not."""
    monkeypatch.syspath_prepend(tmp_path)
    for file, code in files_of("own-algorithm").items():
        if file.startswith("my_fed"):
            (tmp_path / file.replace("my_", "docs_")).write_text(code)
    params = []
    for name, flags in (
        ("fedavg", {}),
        ("docs_fedavg:MyFedAvg", {}),
        ("docs_fedprox:FedProx", {"mu": 0.0}),
        ("docs_fedprox:FedProx", {"mu": 30.0}),
    ):
        config = wirelessfl.Config.from_flags(
            name,
            **flags,
            clients=4,
            rounds=2,
            local_steps=10,
            threads=1,
            out=tmp_path / str(len(params)),
        )
        params.append(wirelessfl.run(config).params["layers.1.weight"])
    for same in params[1:3]:
        assert torch.allclose(params[0], same, atol=1e-6)  # FedAvg fuses its steps
    assert not torch.allclose(params[0], params[3], atol=1e-4)


@pytest.mark.parametrize("name", ["Decayed", "Clipped", "AdamWClients"])
def test_the_documented_optimisers_equal_those_of_torch(tmp_path, monkeypatch, name):
    """Five full-batch steps of one client, compared with torch.optim."""
    monkeypatch.syspath_prepend(tmp_path)
    code = files_of("own-optimiser")["my_optimisers.py"]
    (tmp_path / "docs_optimisers.py").write_text(code)
    torch.manual_seed(0)  # AdamW magnifies the rounding of gradients near 0
    x, module = torch.randn(20, 6), FCNN((6,), 3, hidden=(4,))
    y = torch.arange(20) % 3
    flags = {
        "Decayed": {"decay": 0.5},
        "Clipped": {"max_norm": 0.05},
        "AdamWClients": {"decay": 0.5},
    }
    params = [value.detach().clone().requires_grad_() for value in module.parameters()]
    if name == "AdamWClients":
        optimiser = torch.optim.AdamW(params, lr=0.1, weight_decay=0.5)
    else:
        optimiser = torch.optim.SGD(params, lr=0.1, weight_decay=0.5 * (name == "Decayed"))
    names = [key for key, _ in module.named_parameters()]
    for _ in range(5):
        optimiser.zero_grad()
        outputs = torch.func.functional_call(module, dict(zip(names, params, strict=True)), (x,))
        F.cross_entropy(outputs, y).backward()
        if name == "Clipped":
            torch.nn.utils.clip_grad_norm_(params, 0.05)
        optimiser.step()
    config = wirelessfl.Config.from_flags(
        f"docs_optimisers:{name}", **flags[name], lr=0.1, clients=1, rounds=1, local_steps=5,
        batch_size=20, split="iid", threads=1, out=tmp_path / "run",
    )  # fmt: skip
    data = Dataset("points", x, y, x, y)
    found = wirelessfl.run(config, data=data, model=module).params
    for key, value in zip(names, params, strict=True):
        assert torch.allclose(found[key], value, atol=1e-5), key


@pytest.mark.parametrize("algorithm", ["fedavg", "ra-fed"])
def test_the_documented_precoder_without_saturation_inverts_all_channels(
    tmp_path, monkeypatch, algorithm
):
    """With one antenna it is convention "physical"; saturated clients make the error smaller."""
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "docs_precoder.py").write_text(files_of("own-uplink")["my_precoder.py"])
    rows = []
    for uplink, flags in (
        ("aircomp", {"convention": "physical"}),
        ("docs_precoder:Saturated", {"saturated": 0.0}),
        ("docs_precoder:Saturated", {"saturated": 0.5}),
    ):
        widths = {"capacities": (1.0, 0.5)} if algorithm == "ra-fed" else {}
        config = wirelessfl.Config.from_flags(
            algorithm, uplink=uplink, **flags, **widths, clients=8, rounds=1, local_steps=2,
            antennas=1, snr_db=0.0, threads=1, out=tmp_path / str(len(rows)),
        )  # fmt: skip
        rows.append(wirelessfl.run(config).rows[-1])
    built_in, inverting, saturated = (row["air_error_predicted"] for row in rows)
    assert np.isclose(inverting, built_in, rtol=1e-9)
    assert saturated < inverting
    for row in rows:
        assert np.isclose(row["air_error"], row["air_error_predicted"], rtol=0.1)


def test_the_documented_assigner_covers_both_ends(tmp_path, monkeypatch):
    """With half of the neurons, two clients cover all; with one, half of them are not trained."""
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "docs_ends.py").write_text(files_of("own-assigner")["my_ends.py"])
    uncovered = {}
    for clients in (1, 2):
        config = wirelessfl.Config.from_flags(
            "fedavg", assigner="docs_ends:Ends", capacities=(0.5,), model="mlp", clients=clients,
            rounds=1, local_steps=1, split="iid", threads=1, out=tmp_path / str(clients),
        )  # fmt: skip
        row = wirelessfl.run(config).rows[-1]
        uncovered[clients] = row["uncovered"]
    assert 0 < uncovered[2] < uncovered[1] < 1


def test_the_documented_feddyn_equals_a_loop(tmp_path, monkeypatch):
    """Three rounds of two of three clients with full batches, compared with Algorithm 1."""
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "docs_feddyn.py").write_text(files_of("own-algorithm")["my_feddyn.py"])
    x, y = torch.randn(30, 4, dtype=torch.float64), torch.arange(30) % 3
    module = torch.nn.Linear(4, 3).double()
    start = torch.cat([value.detach().flatten() for value in module.parameters()])
    lr, alpha, steps = 0.1, 0.3, 4

    def gradient(params, rows):
        params = params.clone().requires_grad_()
        loss = F.cross_entropy(x[rows] @ params[:12].view(3, 4).T + params[12:], y[rows])
        return torch.autograd.grad(loss, params)[0]

    parts = [torch.arange(i, 30, 3) for i in range(3)]
    duals, h, model = torch.zeros(3, 15).double(), torch.zeros(15).double(), start
    for clients in ((0, 1), (0, 2), (0, 1)):  # round-robin
        changes = []
        for client in clients:
            params = model.clone()
            for _ in range(steps):
                corrected = gradient(params, parts[client]) - duals[client]
                params = params - lr * (corrected + alpha * (params - model))
            changes.append(params - model)
            duals[client] -= alpha * changes[-1]
        h = h - alpha * sum(changes) / 3
        model = model + sum(changes) / 2 - h / alpha

    config = wirelessfl.Config.from_flags(
        "docs_feddyn:FedDyn", alpha=alpha, lr=lr, clients_per_round=2, rounds=3, local_steps=steps,
        batch_size=10, select="round-robin", threads=1, out=tmp_path / "run",
    )  # fmt: skip
    data = Dataset("points", x.float(), y, x.float(), y)
    found = wirelessfl.run(config, data=data, model=module.float(), split=parts).params
    flat = torch.cat([value.flatten() for value in found.values()])
    assert torch.allclose(flat, model.float(), atol=1e-5)


def test_the_documented_network_agrees_with_itself(tmp_path, monkeypatch):
    """Its SNR is that of the power, gains, band and noise that the example states."""
    monkeypatch.chdir(tmp_path)
    (code,) = (
        code
        for language, file, code in blocks(GUIDES / "own-channel.md")
        if language == "python" and not file and "gain_db=-path_loss_db" in code
    )
    made = {}
    exec(code.partition("config = ")[0], made)
    network = made["network"]
    assert isinstance(network, Network)
    loss_db = 128.1 + 37.6 * np.log10(made["metres"] / 1000)
    noise_dbm = -174 + 10 * np.log10(9e6) + 5
    assert np.allclose(network.mean_snr_db, 10 - loss_db - noise_dbm, atol=0.01)
    draw = network.draw(Stream(1))
    gain_per_noise = 10 ** (-loss_db / 10) * draw.gain / 10 ** ((-174 + 5 - 30) / 10)
    assert np.allclose(draw.gain_per_noise, gain_per_noise, rtol=0.01)


def test_the_documented_positions_are_metres_to_the_nearest_station():
    """Each client's distance is the smallest to any station, and its gain that of Umi."""
    (code,) = (code for _, _, code in blocks(GUIDES / "own-channel.md") if "Positions(" in code)
    made = {}
    exec(code.partition("print(")[0], made)
    placement = made["network"].placement
    clients = made["clients"][made["order"]]
    to_stations = np.linalg.norm(clients[:, None] - made["stations"], axis=-1)
    assert np.allclose(placement.distance_m, to_stations.min(1))
    loss_db = Umi(carrier_ghz=3.5).loss_db(placement.distance_m, placement.line_of_sight)
    assert np.allclose(made["network"].gain_db, -loss_db - placement.shadowing_db)
