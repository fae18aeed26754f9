"""The number of torch's CPU threads changes for the calling thread only."""

from concurrent.futures import ThreadPoolExecutor

import torch

from solvers.torch_threads import torch_threads


def in_new_thread():
    with ThreadPoolExecutor(1) as new:
        return new.submit(torch.get_num_threads).result()


def test_other_threads_keep_their_number():
    usual = torch.get_num_threads()
    with ThreadPoolExecutor(1) as other:
        other.submit(torch.set_num_threads, usual + 1).result()
        assert in_new_thread() == usual + 1  # torch sets the number of new threads, too
        with torch_threads(usual + 2):
            with torch_threads(usual + 3):
                assert torch.get_num_threads() == usual + 3
            assert torch.get_num_threads() == usual + 2
            assert other.submit(torch.get_num_threads).result() == usual + 1
            assert in_new_thread() == usual + 1
        other.submit(torch.set_num_threads, usual).result()
    assert torch.get_num_threads() == in_new_thread() == usual
