"""The chunk size is chosen by timing."""

import pytest

from wirelessfl.training.tuning import candidates, fastest_chunk


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
    monkeypatch.setattr("wirelessfl.training.tuning.time.perf_counter", lambda: clock[0])

    class Known:
        def __init__(self, chunk):
            self.chunk = chunk

        def train(self, clients):
            clock[0] += seconds_per_client[self.chunk] * clients
            return iter(())

    assert fastest_chunk(Known, lambda clients: clients, sorted(seconds_per_client)) == expected
