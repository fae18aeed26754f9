"""Client states in memory and on disk: storage, truncation and rewriting."""

import numpy as np
import pytest
import torch

import wirelessfl
from tests.wirelessfl.small import model
from wirelessfl.base.errors import ConfigError
from wirelessfl.engine.server.client_states import InMemory, OnDisk, make_states
from wirelessfl.models import FCNN
from wirelessfl.models.submodels import ParamSpec, Submodels
from wirelessfl.runs.build import build


def stores(folder, names=("drift",), size=4):
    disk = OnDisk(names, size)
    disk.attach(folder)
    return InMemory(names, size), disk


def test_put_get_and_zero_states(tmp_path):
    for store in stores(tmp_path):
        assert store.get("drift", 3) is None
        store.put("drift", 3, torch.zeros(4))
        assert store.get("drift", 3) is None
        value = torch.arange(4.0)
        store.put("drift", 3, value)
        value += 1
        assert store.get("drift", 3).tolist() == [0, 1, 2, 3], "a copy"
        store.put("drift", 3, torch.zeros(4))
        assert store.get("drift", 3).tolist() == [0, 0, 0, 0], "zeros replace a stored state"
    assert (tmp_path / "clients-0.log").stat().st_size == 2 * 16


def test_submodels_change_only_their_coordinates(tmp_path):
    spec = ParamSpec({"w": (3,)})
    places = np.array([[0, 2, -1], [1, 3, 4]])
    submodels = Submodels(spec, np.array([2, 3]), places, 5)
    like = torch.zeros(1)
    for store in stores(tmp_path, size=5):
        store.put("drift", 2, torch.tensor([1.0, 2, 3, 4, 5]))
        clients, node = np.array([2, 4]), np.array([0, 1])
        gathered = store.gather(store.names, submodels, clients, node, like)["drift"]
        assert gathered.tolist() == [[1, 3, 0], [0, 0, 0]], "padding and new clients are zero"
        store.scatter(submodels, clients, node, {"drift": torch.tensor([[7.0, 8, 9], [1, 2, 3]])})
        assert store.get("drift", 2).tolist() == [7, 2, 8, 4, 5]
        assert store.get("drift", 4).tolist() == [0, 1, 0, 2, 3]


def test_restore_truncates_the_log_to_the_checkpoint(tmp_path):
    _, store = stores(tmp_path)
    store.put("drift", 1, torch.ones(4))
    saved = {name: value.clone() for name, value in store.tensors().items()}
    store.put("drift", 1, torch.full((4,), 2.0))
    store.put("drift", 5, torch.full((4,), 3.0))
    _, again = stores(tmp_path)
    again.restore(saved)
    assert again.get("drift", 1).tolist() == [1, 1, 1, 1]
    assert again.get("drift", 5) is None
    assert (tmp_path / "clients-0.log").stat().st_size == 16
    (tmp_path / "clients-0.log").write_bytes(b"1234")
    with pytest.raises(ConfigError, match="has 4 bytes, and the checkpoint needs 16"):
        again.restore(saved)


def test_states_that_a_checkpoint_lacks_are_zero(tmp_path):
    """A checkpoint of a version with fewer states restores those that it has."""
    for before, again in zip(stores(tmp_path), stores(tmp_path, ("drift", "second")), strict=True):
        before.put("drift", 1, torch.ones(4))
        saved = {name: value.clone() for name, value in before.tensors().items()}
        again.put("second", 1, torch.ones(4))
        again.restore(saved)
        assert again.get("drift", 1).tolist() == [1, 1, 1, 1]
        assert again.get("second", 1) is None


def test_the_old_log_is_removed_after_the_next_checkpoint(tmp_path):
    """A run killed between writing the new log and its checkpoint can use the old log."""
    names = ("drift", "second")
    _, store = stores(tmp_path, names)
    for value in range(1, 6):
        for client in (0, 3):
            for name in names:
                store.put(name, client, torch.full((4,), float(value + client)))
        if value == 1:
            before = {name: value.clone() for name, value in store.tensors().items()}
    assert (tmp_path / "clients-0.log").stat().st_size == 20 * 16
    after = {name: value.clone() for name, value in store.tensors().items()}
    assert (tmp_path / "clients-1.log").stat().st_size == 4 * 16
    old = OnDisk(names, 4)
    old.attach(tmp_path)
    (tmp_path / "kept").write_bytes((tmp_path / "clients-1.log").read_bytes())
    old.restore(before)  # the latest checkpoint when the process was killed
    assert old.get("second", 3).tolist() == [4, 4, 4, 4]
    assert not (tmp_path / "clients-1.log").exists()
    (tmp_path / "kept").rename(tmp_path / "clients-1.log")
    new = OnDisk(names, 4)
    new.attach(tmp_path)
    new.restore(after)
    assert not (tmp_path / "clients-0.log").exists()
    assert new.get("second", 3).tolist() == [8, 8, 8, 8]
    assert new.get("drift", 0).tolist() == [5, 5, 5, 5]
    store.saved()
    assert store.get("drift", 0).tolist() == [5, 5, 5, 5]


def test_auto_chooses_memory_or_disk_by_size():
    large = 100_000, 100_000
    assert make_states("auto", ("a", "b"), 44_426, 100, 1).kind == "memory"
    assert make_states("auto", ("a", "b"), *large, 1).kind == "disk"
    assert make_states("auto", (), *large, 1).kind == "memory"
    assert make_states("auto", ("a",), *large, 2).kind == "memory", "each process stores all states"
    assert make_states("memory", ("a",), *large, 1).kind == "memory"
    with pytest.raises(ConfigError, match="client_states='disk' conflicts with 2 processes"):
        make_states("disk", ("a",), 10, 10, 2)


FLAGS = {"clients": 9, "clients_per_round": 4, "tracking_clients": 2, "lr": 0.01}


def test_memory_and_disk_give_the_same_run(config, toy, same):
    runs = [
        wirelessfl.run(
            config("fadamgc", **FLAGS, rounds=8, client_states=kind, checkpoint_seconds=0),
            data=toy,
            model=model(),
        )
        for kind in ("memory", "disk")
    ]
    same(*runs)
    assert not list(runs[0].directory.glob("clients-*.log"))
    (log,) = runs[1].directory.glob("clients-*.log")
    size = 4 * sum(value.numel() for value in runs[1].params.values())
    assert log.stat().st_size <= 4 * size * 9 * 2 * 2, "outdated records are removed"


def test_storage_grows_with_the_clients_that_trained(toy, config, tmp_path):
    """Two states of 1e5 parameters for 1e5 clients need 80 GB; only 4 clients are stored."""
    data = wirelessfl.data.Dataset(
        "many", *(t.repeat(500, *[1] * (t.ndim - 1)) for t in (toy.train_inputs, toy.train_labels)),
        toy.test_inputs, toy.test_labels, 4,
    )  # fmt: skip
    torch.manual_seed(0)
    large = FCNN((12,), 4, hidden=(5880,))
    settings = config(
        "fadamgc", clients=100_000, clients_per_round=4, rounds=1, split="iid",
        local_steps=1, lr=0.01, antennas=1,
    )  # fmt: skip
    setup = build(settings, data=data, model=large)
    assert setup.config.run.client_states == "disk"
    assert setup.model.objective.spec.size == pytest.approx(1e5, rel=1e-2)
    training = setup.learner
    training.server.states.attach(tmp_path)
    training.learn(setup.planner.plan(0), training.server.cloud)
    stored = (tmp_path / "clients-0.log").stat().st_size
    assert stored == 4 * 2 * 4 * setup.model.objective.spec.size
    tensors = training.tensors()
    assert sum(t.numel() * t.element_size() for t in tensors.values()) < 10e6
