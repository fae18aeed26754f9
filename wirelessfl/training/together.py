"""Runs that train together: jobs of equal shapes, at most one of each run, train as one cohort.

Runs that train small models are bound by Python and, on a GPU, by launches of kernels. Each run is
in a thread of its own, but only one thread computes at a time, so that what runs share, such as
torch's settings, needs no more locks. When every run waits with a job, the jobs train.
"""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Callable, Hashable, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial
from types import FrameType

import torch

from wirelessfl.base.signals import ended_by, handled_by
from wirelessfl.training.executor import even_parts

Tensors = dict[str, torch.Tensor]
"""Tensors by name; the leading axis indexes clients."""


@dataclass(eq=False)
class _Job:
    """A run's job: its tensors [clients, ...], and how many clients train at once at most.

    ``train`` computes the results of such tensors, by clients; they are valid until its next call.
    """

    kind: Hashable
    inputs: Tensors
    train: Callable[[Tensors], Tensors]
    most: int
    group: Sequence[_Job] = ()
    """The jobs that train as one cohort, with this one; empty if it trains alone."""
    checked: bool = False
    """Whether a group of its kind and size has given the bits of single trainings."""
    results: Tensors | None = None

    @property
    def clients(self) -> int:
        return len(next(iter(self.inputs.values())))


class _Member:
    """A run in a thread, which computes only during its turn."""

    def __init__(self, execute: Callable[[], None]) -> None:
        self.job: _Job | None = None
        self.ended = False
        self._computes, self._waits = threading.Event(), threading.Event()
        target = contextvars.copy_context().run
        self._thread = threading.Thread(target=target, args=(self._run, execute), daemon=True)
        gpu = torch.cuda.is_initialized()  # type: ignore[no-untyped-call]
        self._gpu = torch.cuda.current_device() if gpu else None
        self._thread.start()

    def _run(self, execute: Callable[[], None]) -> None:
        self._computes.wait()
        try:
            if self._gpu is not None:  # each thread has its own current device
                torch.cuda.set_device(self._gpu)
            execute()
        finally:
            self.job, self.ended = None, True
            self._waits.set()

    def turn(self, on_error: Callable[[BaseException], None]) -> None:
        """Let the run compute until it waits with a job, or has ended.

        ``on_error`` gets what the caller's handlers of signals raise meanwhile.
        """
        self._waits.clear()
        self._computes.set()
        while not self._waits.is_set():
            try:
                self._waits.wait()
            except BaseException as error:
                on_error(error)
        if self.ended:
            self._thread.join()

    def wait(self, job: _Job) -> None:
        """End the turn, in the thread of the run."""
        self.job = job
        self._computes.clear()
        self._waits.set()
        self._computes.wait()


class Meeting:
    """Runs of one configuration with different seeds, which train together.

    The first time that a number of jobs of one kind train as one cohort, each job is also trained
    alone: sums may be rounded otherwise in other memory or in a larger product. If a bit differs,
    such jobs train alone from then on. A run therefore equals a single run, bit for bit.

    Attributes:
        ending: a signal, or the error of a callback, which ends all runs.
        cohorts: number of groups of jobs that were trained as one cohort.
        differing: kinds and numbers of jobs that train alone.
    """

    def __init__(self) -> None:
        self.ending: BaseException | None = None
        self.cohorts = 0
        self.differing: set[tuple[Hashable, int]] = set()
        self._checked: set[tuple[Hashable, int]] = set()
        self._at_once = False
        self._member: _Member | None = None

    def hold(self, runs: Sequence[Callable[[], None]]) -> None:
        """Execute runs until all have ended.

        Raises:
            BaseException: ``ending``, or what a run has raised, which ends the others.
        """
        with handled_by(self._signalled):
            members = [_Member(partial(self._execute, run)) for run in runs]
            while members:
                for member in members:
                    self._member = member
                    member.turn(self._end)
                members = [member for member in members if not member.ended]
                self._group([member.job for member in members if member.job is not None])
        if self.ending is not None:
            raise self.ending

    def _execute(self, run: Callable[[], None]) -> None:
        token = MEETING.set(self)
        try:
            self.end_if_asked()
            run()
        except BaseException as error:
            self.ending = self.ending or error
        finally:
            MEETING.reset(token)

    def _signalled(self, number: int, frame: FrameType | None) -> None:
        self._end(ended_by(number))

    def _end(self, error: BaseException) -> None:
        """End the runs at their next rows, or at once if they are asked to end already."""
        self._at_once = self.ending is not None
        self.ending = self.ending or error

    def end_if_asked(self) -> None:
        """Raise ``ending`` if there is one; called after each row of a run."""
        if self.ending is not None:
            raise self.ending

    def train(
        self, kind: Hashable, inputs: Tensors, train: Callable[[Tensors], Tensors], most: int
    ) -> Tensors:
        """Results of a job of the run whose turn it is, as those of ``train(inputs)``.

        Args:
            kind: jobs of equal kinds have equal shapes, and train by the same operations.
            inputs: tensors of the job's clients.
            train: local training of such tensors.
            most: maximum number of clients that train at once.
        """
        member, job = self._member, _Job(kind, inputs, train, most)
        assert member is not None
        member.wait(job)
        if self._at_once:
            self.end_if_asked()
        if not job.group:
            return train(inputs)
        if job is job.group[0]:
            self._train(job.group)
        if job.results is not None and job.checked:
            return job.results
        alone = {name: value.clone() for name, value in job.group[0].train(inputs).items()}
        if job.results is None or not _same_bits(alone, job.results):
            self.differing.add((kind, len(job.group)))
        return alone

    def _group(self, jobs: Sequence[_Job]) -> None:
        """Choose which jobs train together."""
        kinds: dict[Hashable, list[_Job]] = {}
        for job in jobs:
            kinds.setdefault(job.kind, []).append(job)
        before = set(self._checked)
        for kind, same in kinds.items():
            for part in even_parts(len(same), max(1, same[0].most // same[0].clients)):
                group = same[part]
                key = (kind, len(group))
                if len(group) > 1 and key not in self.differing:
                    self._checked.add(key)
                    for job in group:
                        job.group, job.checked = group, key in before

    def _train(self, group: Sequence[_Job]) -> None:
        """Train jobs as one cohort; without results if this fails, e.g. for lack of memory."""
        first = group[0]
        try:
            merged = {name: torch.cat([job.inputs[name] for job in group]) for name in first.inputs}
            results = first.train(merged)
        except Exception:  # the jobs that train alone say what is wrong, and with which client
            return
        self.cohorts += 1
        for place, job in enumerate(group):
            rows = slice(place * job.clients, (place + 1) * job.clients)
            # Copies: results are overwritten, and memory at other addresses may change rounding.
            job.results = {name: value[rows].clone() for name, value in results.items()}


MEETING: ContextVar[Meeting | None] = ContextVar("MEETING", default=None)
"""The meeting in which the run of this thread trains."""


def _same_bits(first: Tensors, second: Tensors) -> bool:
    return first.keys() == second.keys() and all(
        value.shape == second[name].shape
        and torch.equal(value.view(torch.uint8), second[name].view(torch.uint8))
        for name, value in first.items()
    )
