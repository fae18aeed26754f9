"""Contexts, caches and properties that several threads use at the same time."""

import os
import signal
import sys
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest

from channels.concurrency import (
    SharedContext,
    cached_property,
    ignored_warnings,
    once,
    parsing,
    process_state,
)


@pytest.fixture
def meet():
    """Function in which two threads wait for each other."""
    return threading.Barrier(2, timeout=60).wait


def test_the_last_thread_leaves_a_shared_context():
    told = []

    @contextmanager
    def context():
        told.append("entered")
        yield
        told.append("left")

    shared = SharedContext(context)
    for _ in range(2):
        with ThreadPoolExecutor(1) as other:
            with shared:
                other.submit(shared.__enter__).result()
            assert told == ["entered"]
            other.submit(shared.__exit__, None, None, None).result()
        assert told == ["entered", "left"]
        told.clear()


def test_threads_that_ask_at_the_same_time_get_the_same_object(meet):
    @once
    def made(name):
        meet()
        return [name]

    with ThreadPoolExecutor(2) as pool:
        first, second = pool.map(made, ["a", "a"])
    assert first is second is made("a")


def test_properties_of_two_objects_are_computed_at_the_same_time(meet):
    class Thing:
        @cached_property
        def value(self):
            meet()
            return [self]

    things = [Thing(), Thing()]
    with ThreadPoolExecutor(2) as pool:
        values = list(pool.map(lambda thing: thing.value, things))
    assert values == [[thing] for thing in things]
    assert things[0].value is values[0]


def test_filters_of_warnings_return():
    before, interval = list(warnings.filters), sys.getswitchinterval()

    def ignore(_):
        for _ in range(20):
            with ignored_warnings("never", UserWarning):
                pass

    sys.setswitchinterval(1e-5)
    try:
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(ignore, range(4)))
    finally:
        sys.setswitchinterval(interval)
    assert warnings.filters == before


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_forked_processes_do_not_wait_for_threads_that_they_lack():
    held, over = threading.Event(), threading.Event()

    def hold():
        with process_state, parsing, ignored_warnings():
            held.set()
            over.wait(60)

    with ThreadPoolExecutor(1) as other:
        other.submit(hold)
        held.wait(60)
        child = os.fork()
        if not child:
            signal.alarm(10)  # ends the process if it waits
            with process_state, parsing, ignored_warnings():
                os._exit(0)
        over.set()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
