"""The number of torch's CPU threads changes for the calling thread only."""

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest
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


LATE = """
import threading, torch
from solvers.torch_threads import torch_threads

def count():
    threading.main_thread().join()
    with torch_threads(5):
        print(torch.get_num_threads())

threading.Thread(target=count).start()
"""


@pytest.mark.thorough
def test_threads_may_outlive_the_main_thread():
    ran = subprocess.run([sys.executable, "-c", LATE], capture_output=True, text=True, check=True)
    assert (ran.stdout, ran.stderr) == ("5\n", "")
