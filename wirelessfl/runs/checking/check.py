"""Checks a user's class or function against the contracts, and reports what holds."""

from __future__ import annotations

import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import Field, asdict, dataclass, fields, is_dataclass, make_dataclass
from pathlib import Path
from typing import Any, Literal, get_type_hints

from channels import Access
from channels.notes import Note, Notes
from wirelessfl.air.uplinks import Uplink
from wirelessfl.algorithms import find_algorithm
from wirelessfl.base.errors import ConfigError, out_of_memory
from wirelessfl.base.guard import NO_ERROR, ONE_LINE, calling, located
from wirelessfl.base.import_paths import is_import_path, path_of
from wirelessfl.base.registry import import_path
from wirelessfl.base.torch_state import kept_generators, own_modes
from wirelessfl.base.wording import count_of, shown, suggestion
from wirelessfl.config.choices import KINDS
from wirelessfl.models.metrics import find_metric
from wirelessfl.runs.checking.contracts import CONTRACTS, BrokenError, Contract, NotTestedError
from wirelessfl.runs.checking.kinds import CHECKED, base_of, data_of, kind_of
from wirelessfl.runs.checking.subject import Subject, import_path_of

NEEDS = "needs that it "
"""Beginning of the reason to skip a contract that needs another one."""
Status = Literal["ok", "failed", "skipped"]


@dataclass(frozen=True)
class Outcome:
    """The result of one contract test.

    Args:
        contract: what must hold.
        status: whether it does, or could not be tested.
        reason: what is wrong, or why the test was skipped; one line.
    """

    contract: str
    status: Status
    reason: str = ""

    def __str__(self) -> str:
        return f"{self.status:<7}  {self.contract}" + (f": {self.reason}" if self.reason else "")


@dataclass(frozen=True)
class Report:
    """The results of all contract tests of a class or function.

    Args:
        name: import path, or name of the class.
        kind: kind of choice, e.g. "algorithm".
        outcomes: the result of each test, in order.
        seconds: wall-clock seconds.
    """

    name: str
    kind: str
    outcomes: tuple[Outcome, ...]
    seconds: float

    @property
    def passed(self) -> bool:
        """Whether no test has failed."""
        return not self.failed

    @property
    def failed(self) -> list[str]:
        """The contracts that do not hold."""
        return [outcome.contract for outcome in self.outcomes if outcome.status == "failed"]

    def as_dict(self) -> dict[str, Any]:
        """The report as plain values, for JSON."""
        return {**asdict(self), "outcomes": [*map(asdict, self.outcomes)], "passed": self.passed}

    def __str__(self) -> str:
        counts = {
            status: sum(outcome.status == status for outcome in self.outcomes)
            for status in ("ok", "failed", "skipped")
        }
        summary = ", ".join(f"{count} {status}" for status, count in counts.items() if count)
        head = f"{self.kind.replace('_', ' ')} {self.name}: {summary} in {self.seconds:.1f} s"
        lines = [
            f"  {outcome}" for outcome in self.outcomes if not outcome.reason.startswith(NEEDS)
        ]
        waiting = len(self.outcomes) - len(lines)
        if waiting:
            lines.append(f"  skipped  {count_of(waiting, 'contract')} that depend on failed ones")
        return "\n".join([head, *lines])


@own_modes
def check(
    thing: str | type | Callable[..., Any], *, kind: str | None = None, **settings: Any
) -> Report:
    """Test a class or function of yours in small runs, in some seconds.

    They test whether it works with its defaults, leaves its arguments unchanged, gives the same
    answer twice and by all executors, and resumes as if it had not been interrupted; see
    docs/guides/checking.md.

    >>> import wirelessfl
    >>> wirelessfl.check(wirelessfl.extend.FedAvg).passed
    True

    Args:
        thing: the class or function, or its import path, ``module:name`` or ``file.py:name``: an
            algorithm, uplink, access, schedule, selection, split, model, data set, ...
        kind: its kind, as the setting that selects one is called, e.g. "uplink"; None to infer it.
        settings: its settings, instead of their defaults.

    Returns:
        The result of each test; ``str`` gives one line per test.

    Raises:
        ConfigError: it cannot be imported, or its kind is unclear or unknown.
    """
    if kind is not None and kind not in CHECKED:
        raise ConfigError(
            f"kind is {shown(kind)}.{suggestion(kind, CHECKED)} Choose {', '.join(CHECKED)}."
        )
    target = thing
    if isinstance(thing, str):
        if not is_import_path(thing):
            raise ConfigError(f"{thing!r} is not an import path: give module:name or file.py:name.")
        target = import_path("object", thing)
    kind = kind_of(target) if kind is None else kind
    name = thing if isinstance(thing, str) else _name(thing)
    begun = time.perf_counter()
    caught: list[warnings.WarningMessage] = []
    try:
        with (
            warnings.catch_warnings(record=True) as caught,
            kept_generators(),
            _path(thing, target) as path,
            tempfile.TemporaryDirectory(prefix="wirelessfl-check-") as folder,
        ):
            if path != thing:
                target = import_path(kind, path)
            _check_class(kind, path)
            labels, data = data_of(kind, target, path, settings)
            base = base_of(kind, target, path, labels)
            outcomes = tuple(
                _outcomes(Subject(kind, path, target, settings, base, Path(folder), data))
            )
    finally:
        _noted(caught)
    return Report(name, kind, outcomes, time.perf_counter() - begun)


def _check_class(kind: str, path: str) -> None:
    """Raise ConfigError unless a class is one of its kind."""
    if kind == "algorithm":
        find_algorithm(path)
    elif kind == "metric":
        find_metric(path)
    elif kind in KINDS:
        KINDS[kind].find(path)


def _outcomes(subject: Subject) -> Iterator[Outcome]:
    passed = {""}
    for contract in CONTRACTS:
        if contract.kinds is not None and subject.kind not in contract.kinds:
            continue
        if contract.needs not in passed:
            yield Outcome(contract.name, "skipped", f"{NEEDS}{contract.needs}")
            continue
        outcome = _outcome(contract, subject)
        if outcome.status == "ok":
            passed.add(contract.name)
        yield outcome


def _outcome(contract: Contract, subject: Subject) -> Outcome:
    try:
        contract.test(subject)
    except NotTestedError as error:
        return Outcome(contract.name, "skipped", str(error))
    except (BrokenError, *ONE_LINE) as error:
        return Outcome(contract.name, "failed", str(error))
    except NO_ERROR:
        raise
    except BaseException as error:  # users' code may raise anything
        if out_of_memory(error):
            raise
        return Outcome(contract.name, "failed", located(error))
    return Outcome(contract.name, "ok")


def _noted(caught: Sequence[warnings.WarningMessage]) -> None:
    """Pass on each kind of notes once, and other warnings as they were."""
    Notes()(*(str(w.message) for w in caught if issubclass(w.category, Note)))
    for w in caught:
        if not issubclass(w.category, Note):
            warnings.warn_explicit(w.message, w.category, w.filename, w.lineno)


@contextmanager
def _path(thing: Any, target: Any) -> Iterator[str]:
    """The import path of what is checked; an access is checked as part of an uplink."""
    if isinstance(target, type) and issubclass(target, Access):
        with import_path_of(_uplink_of(target)) as path:
            yield path
    elif isinstance(thing, str):
        yield thing
    else:
        with import_path_of(target) as path:
            yield path


def _uplink_of(access: type[Access]) -> type[Uplink]:
    """An uplink with this access, whose settings are those of the access."""
    entries: Sequence[Field[Any]] = fields(access) if is_dataclass(access) else ()
    with calling(f"the annotations of {path_of(access)} cannot be read", ConfigError):
        types = get_type_hints(access, include_extras=True)

    def made(self: Any) -> Access:
        return access(**{entry.name: getattr(self, entry.name) for entry in entries})

    return make_dataclass(
        access.__name__,
        [(entry.name, types[entry.name], entry) for entry in entries],
        bases=(Uplink,),
        namespace={
            "access": property(made),
            "__module__": access.__module__,
            "title": path_of(access),
            "__reduce__": lambda self: (_remade, (access, vars(self))),
        },
        frozen=True,
    )


def _remade(access: type[Access], settings: dict[str, Any]) -> Uplink:
    """Unpickle an uplink with an access, whose generated class cannot be imported by name."""
    return _uplink_of(access)(**settings)


def _name(thing: Any) -> str:
    if isinstance(thing, type):
        return path_of(thing)
    return f"{getattr(thing, '__module__', '')}:{getattr(thing, '__qualname__', shown(thing))}"
