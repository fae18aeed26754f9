"""Concurrent runs of a sweep take the GPUs of a machine in turn."""

import threading
from multiprocessing import Pipe

import pytest
import torch

from wirelessfl.config import Config
from wirelessfl.runs import pools


@pytest.fixture
def used(monkeypatch):
    """GPUs that processes select; there are four."""
    numbers = []
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 4)
    monkeypatch.setattr(torch.cuda, "set_device", numbers.append)
    return numbers


def test_numbers_take_the_gpus_in_turn(used):
    for number in range(6):
        pools.use_gpu(Config.from_flags("fedavg"), number)
    assert used == [0, 1, 2, 3, 0, 1]
    pools.use_gpu(Config.from_flags("fedavg", device="cpu"), 3)
    assert len(used) == 6


@pytest.mark.parametrize("count", [0, 1])
def test_without_several_gpus_none_is_selected(used, monkeypatch, count):
    monkeypatch.setattr(torch.cuda, "device_count", lambda: count)
    pools.use_gpu(Config.from_flags("fedavg"), 1)
    assert used == []


class Process:
    """A child that has ended."""

    exitcode = 0

    def join(self):
        pass


def test_a_run_takes_the_gpu_of_the_run_that_has_ended(tmp_path, monkeypatch):
    """Run 0 is long, the others are short: they never share its slot, thus not its GPU."""
    started, workers = [], {}

    class Worker(pools._Worker):
        def __init__(self, slot):
            self.slot, self.busy, self.places = slot, False, []
            self.process = Process()
            self.pipe, self.theirs = Pipe()
            assert slot not in workers, "a slot has one process for all of its runs"
            workers[slot] = self

        def begin(self, place, *run):
            self.places.append(place)
            self.busy = True
            started.append((place, self.slot))
            if place > 0:
                self.theirs.send("")
            if place == 5:  # the last one
                workers[0].theirs.send("")

    monkeypatch.setattr(pools, "_Worker", Worker)
    ended = []
    folders = [tmp_path / str(place) for place in range(6)]
    with pools.Processes([None] * 6, folders, 2, lambda place, row: None, ended.append) as some:
        assert some.execute([*range(6)], {}) == []
    assert started == [(0, 0), (1, 1), (2, 1), (3, 1), (4, 1), (5, 1)]
    assert sorted(ended) == [*range(6)]


def test_a_trained_run_selects_the_gpu_of_its_slot(used, tmp_path, monkeypatch):
    """A priced one needs no GPU."""
    monkeypatch.setattr(pools, "end_with_parent", lambda: None)
    monkeypatch.setattr(pools.signal, "signal", lambda number, handler: None)
    monkeypatch.setattr(torch, "set_num_threads", lambda count: None)
    monkeypatch.setattr(pools, "why_failed", lambda *run: "")
    here, there = Pipe()
    process = threading.Thread(target=pools._serve, args=(there, 6))
    process.start()
    for source in (None, tmp_path):
        here.send((Config.from_flags("fedavg"), tmp_path, source, dict(pools.os.environ)))
        assert here.recv() == ""
    here.close()
    process.join()
    assert used == [2]
    pools._make_packed(Config.from_flags("fedavg"), "run", b"", 5)
    assert used == [2, 1]
