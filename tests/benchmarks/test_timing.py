"""Timing: interleaved calls after a warm-up, rates, and numbers of threads."""

import pytest
import torch

from benchmarks import timing


def test_calls_are_interleaved_after_one_warm_up_each(known_times, take_turns):
    done = []
    calls = {name: lambda n=name: done.append(n) for name in "ab"}
    assert timing.interleaved(calls, 3) == take_turns("ab", 3) == {"a": [1, 3, 5], "b": [2, 4, 6]}
    assert done == ["a", "b"]


def test_timed_calls_are_executed():
    done = []
    assert timing.interleaved({"a": lambda: done.append(1)}, 4)["a"][0] > 0
    assert len(done) == 5


def test_rates_are_work_over_the_best_time(known_times):
    assert timing.sgemm_rate(size=8) == 2 * 8**3 / 1
    assert timing.sgemm_rate(size=8) == 2 * 8**3 / 7
    assert timing.copy_rate(torch.device("cpu"), megabytes=2) == pytest.approx(2 * 2e6 / 13)


def test_the_thread_count_is_restored_even_after_an_error():
    threads = torch.get_num_threads()

    def fail():
        assert torch.get_num_threads() == threads + 1
        raise KeyError

    with pytest.raises(KeyError):
        timing.with_threads(threads + 1, fail)
    assert torch.get_num_threads() == threads
    assert timing.with_threads(1, torch.get_num_threads) == 1
