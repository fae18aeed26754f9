"""Runs over other radios: which train the same model, their settings and their costs.

Over an error-free uplink, a model does not depend on the radio if clients and submodels of a round
do not. Then one run has the accuracies for every uplink, SNR, placement and CPU speed; what its
rounds cost there follows from its plan.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from channels import Network
from channels.streams import Stream
from wirelessfl.air.links import EQUAL_SHARES
from wirelessfl.base.errors import ConfigError
from wirelessfl.base.guard import of_project
from wirelessfl.base.import_paths import is_import_path
from wirelessfl.base.needs import LINKS, needs_of
from wirelessfl.base.wording import shown
from wirelessfl.config import Config
from wirelessfl.config.named import LINK_KINDS, GivenNetwork, replaced_by_network
from wirelessfl.config.sections import NetworkSection
from wirelessfl.runs.build.given import NOTHING, GivenObjects, check_objects
from wirelessfl.runs.build.network import build_network
from wirelessfl.runs.pricing.price import Priced, priced

Row = Mapping[str, Any]

TABLES = ("uplink", "network", "layout", "path_loss", "fading", "mobility")
"""Tables of settings of the radio."""
NETWORK = (
    *(key for key, needs in needs_of(NetworkSection).items() if LINKS in needs),
    "step_seconds",
    "backhaul_mbps",
)
"""Settings of the network that change seconds and joules, but no training."""
FIXED = ("uplink_mib", "downlink_mib", "backhaul_mib", "lost", "silent")
"""Costs that are equal over all radios, unless participants or submodels differ."""
COSTS = ("sim_seconds", "joules", "joules_max", "extra_seconds", *FIXED, *EQUAL_SHARES)
"""Fields of rows that a price determines."""
KEYS = ("round", "session", "session_round")
"""Fields that identify a row."""
RELATIVE = 1e-9
"""Largest relative difference of the traffic between a run and its price."""
BLIND = ("random", "round-robin")
"""Selections of clients that know nothing of the radio."""
TIMED = {"mask_sizes": ("optimized",), "budget": ("deadline", "fastest")}
"""Settings of assigners whose submodels depend on seconds, with their values."""
ASSIGN = ("submodels", "redealt", "client_submodels")
"""Methods of assigners that see seconds."""
LIMITS = {
    ("training", "max_seconds"): "the number of rounds depends on seconds",
    ("training", "client_joules"): "clients end when they have spent their energy",
    ("training", "availability_trace"): "clients join and leave in the course of rounds",
    ("training", "battery_joules"): "clients wait until their batteries are charged",
    ("training", "cutoff_seconds"): "seconds decide whose updates arrive in time",
    ("run", "client_log"): "the log has the channels of each client",
    ("run", "keep_best"): "the best model is stored while the run trains",
    ("run", "track"): "the tracker sees the run while it trains",
}
"""Settings that need training where they are set, with the reason."""


def dependences(config: Config) -> Iterator[str]:
    """Why the trajectory of a run depends on its radio, by setting; none if it does not.

    Args:
        config: the run's configuration.
    """
    uplink, schedule = config.uplink, config.named("schedule")
    if config.given.redesign is not None:
        yield f"redesign={config.given.redesign}: it decides from rows, which have seconds"
    if uplink.gives == "sum":
        yield f"uplink={config.named('uplink')}: the sums have errors, which depend on the channels"
    if config.tables["uplink"].get("late") == "lost":
        yield "late=lost: clients that would miss the deadline stay out"
    failures = name_of(config, "failures", "none")
    if failures != "none":
        yield f"failures={failures}: the channels decide which uploads are lost"
    if config.network.handover != "none":
        yield f"handover={config.network.handover}: the channels decide with whom clients train"
    if not config.regime.synchronous:
        yield f"schedule={schedule}: the order of the merges depends on seconds"
    if config.tables.get("presence", {}).get("presence_unit") == "seconds":
        yield "presence_unit=seconds: when clients join and leave depends on seconds"
    for name, values in TIMED.items():
        setting = getattr(config.used_assigner, name, None)
        if setting in values:
            yield f"{name}={setting}: the submodels depend on seconds"
    select = name_of(config, "select", "random")
    if select not in BLIND:
        yield f"select={select}: channels, seconds or losses decide who takes part"
    for (section, name), why in LIMITS.items():
        value = config.table(section)[name]
        if value:
            yield f"{name}={value:g}: {why}" if isinstance(value, float) else f"{name}: {why}"
    monitor = config.evaluation.monitor
    if monitor in COSTS:
        yield f"monitor={monitor}: it is a cost"
    yield from _own_classes(config)


def _own_classes(config: Config) -> Iterator[str]:
    """Classes of users that may look at the radio."""
    for kind in ("uplink", "schedule", "presence", "warm_start"):
        choice = config.choice(kind)
        if choice is not None and not of_project(type(choice)):
            yield f"{kind}={choice.title}: a class of your own may depend on seconds"
    assigner = config.used_assigner
    for name in ASSIGN:
        owner = next(cls for cls in type(assigner).__mro__ if name in vars(cls))
        if not of_project(owner):
            yield f"{assigner.title}: its {name} may depend on seconds"


def name_of(config: Config, kind: str, default: str) -> str:
    """The name of a choice; ``default`` if the run has no choice of this kind."""
    return config.named(kind) if kind in config.tables else default


def of_radio(section: str, key: str) -> bool:
    """Whether a setting changes only the costs of a run that does not depend on its radio.

    Args:
        section: table of the setting.
        key: its name in the table.
    """
    if section == "network":
        return key in NETWORK
    return section in TABLES or section == "failures"


def check_independent(config: Config) -> None:
    """Refuse a run whose trajectory depends on its radio.

    Raises:
        ConfigError: it does; the message names the first setting.
    """
    for reason in dependences(config):
        raise ConfigError(
            "the run has no price over another radio, because its model depends on it: "
            f"{reason}. Train it there."
        )


@dataclass(frozen=True, eq=False)
class Repriced:
    """A trained run as it would have been over another radio.

    Args:
        rows: its rows.
        simulated: the simulation that gave the costs.
    """

    rows: list[dict[str, Any]]
    simulated: Priced


def repriced(
    rows: Sequence[Row],
    here: Config,
    there: Config,
    *,
    joules: bool = True,
    network: Network | None = None,
    objects: GivenObjects = NOTHING,
) -> Repriced:
    """The rows of a trained run over another radio, without training.

    They have the accuracies of the run and the costs of the other radio, to the bit those of a run
    that is trained there, except for ``wall_seconds``.

    Args:
        rows: rows of the run.
        here: its settings.
        there: its settings with another radio.
        joules: whether to compute energy; otherwise rows have none.
        network: the run's network, if it was given to the run; None for that of its settings.
        objects: Python objects that replace settings there.

    Raises:
        ConfigError: the trajectory depends on the radio, here or there; or participants, submodels
            or cells differ.
        DataError: data must be read to know the size of the model, but are missing.
    """
    check_independent(here)
    check_independent(there)
    networks = network or own_network(here), objects.network or own_network(there)
    check_cells(*networks)
    if any(each.hands_over for each in networks):  # a network that was given
        raise ConfigError(
            "the run has no price over another radio, because a network with handover decides "
            "with whom clients train. Train it there."
        )
    rounds = None if there.regime.in_sessions else max(rows[-1]["round"], 1)
    simulated = priced(there, rounds, objects, joules=joules)
    return Repriced(with_costs(rows, simulated.prices.rows), simulated)


def own_network(config: Config) -> Network:
    """The network of a run's settings."""
    return build_network(config.network, Stream(config.run.seed), config)


def check_cells(here: Network, there: Network, title: str = "over the other radio") -> None:
    """Refuse a network with other clients, or with clients in other cells.

    Args:
        here: network of the run.
        there: the other network.
        title: the other network in words.

    Raises:
        ConfigError: the cells differ.
    """
    if not np.array_equal(here.cell_of, there.cell_of):
        raise ConfigError(f"{title}, clients are in other cells. Train the run there.")


def with_costs(rows: Sequence[Row], prices: Sequence[Row]) -> list[dict[str, Any]]:
    """The rows of a run with the costs of another radio.

    Args:
        rows: rows of the run.
        prices: costs over the other radio after each round.

    Raises:
        ConfigError: the traffic differs, or a row has no price.
    """
    costs: dict[Any, Row] = {}
    for row in prices:  # later ones include trial rounds of the next session
        costs.setdefault(row_key(row), row)
    return [_with_costs(row, costs.get(row_key(row))) for row in rows]


def row_key(row: Row) -> tuple[Any, ...]:
    """What identifies a row of a run, see ``KEYS``."""
    return tuple(row.get(name) for name in KEYS)


def _with_costs(row: Row, costs: Row | None) -> dict[str, Any]:
    if costs is None:
        raise ConfigError(
            f"round {row['round']} has no price over the other radio. Train it there."
        )
    for name in FIXED:
        if abs(row.get(name, 0) - costs[name]) > RELATIVE * abs(row.get(name, 0)):
            raise ConfigError(
                f"{name} after round {row['round']} is {row[name]!r}, and {costs[name]!r} over the "
                "other radio: its participants or submodels differ. Train the run there."
            )
    last = ("extra_seconds",)  # the other costs are the first fields of a row
    kept = {
        name: costs.get(name, value)
        for name, value in row.items()
        if name not in COSTS or name in last
    }
    return {name: value for name, value in costs.items() if name not in last} | kept


Settings = Mapping[str, Any]
"""Settings by name."""


@dataclass(frozen=True)
class Radio:
    """Another radio, as a user gives it.

    Args:
        uplink: name of an uplink, or its settings. With a name, they replace those of the run.
        network: a network, the import path of one, or settings of the network, layout, path loss
            and fading by the names of their flags.
        flags: further settings of the radio by the names of their flags.
    """

    uplink: str | Settings | None = None
    network: Network | str | Settings | None = None
    flags: Settings | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.uplink, str | Mapping | None):
            raise ConfigError(
                f"uplink is {shown(self.uplink)}: give the name of an uplink, or its settings, "
                'such as {"name": "ofdma", "allocation": "optimal"}.'
            )
        path = isinstance(self.network, str) and is_import_path(self.network)
        if not (path or isinstance(self.network, Mapping)):
            check_objects(network=self.network)

    @property
    def given(self) -> Network | None:
        """The network, if it is given as an object."""
        return self.network if isinstance(self.network, Network) else None


def over(config: Config, radio: Radio) -> Config:
    """The settings of a run over another radio, resolved.

    Settings of the run that have no effect there are dropped.

    Args:
        config: the settings of the run.
        radio: what differs.

    Raises:
        ConfigError: a setting is wrong, or is not one of the radio.
    """
    flags = dict(radio.flags or {})
    uplink, network, marks = flags.pop("uplink", radio.uplink), radio.network, config.given
    if isinstance(network, Mapping):
        flags, network = flags | dict(network), None
    network = flags.pop("network", network)
    changes: dict[str, Any] = {"predicted": config.run.predicted}
    if name_of(config, "failures", "none") == "none":
        changes["failures"] = None  # not every uplink has failures
    if network is not None:
        changes |= dict.fromkeys((*LINK_KINDS, *replaced_by_network()))
        size = None if isinstance(network, str) else (network.cells, network.clients)
        changes["network"] = network if size is None else None
        marks = replace(marks, network=None if size is None else GivenNetwork(*size))
    if isinstance(uplink, str):
        changes["uplink"] = {"name": uplink}
    elif uplink is not None:
        kept = {} if "name" in uplink else config.given_settings("uplink")
        changes["uplink"] = {**kept, **uplink}
    homes = config.homes
    for flag, value in flags.items():
        if flag in ("given", "on_idle"):  # arguments of ``changed``
            raise ConfigError(f"unknown setting {flag!r} of a radio: leave it out.")
        if flag in homes and not of_radio(*homes[flag]):
            raise ConfigError(_refusal(flag, value))
    there = config.changed(given=marks, **changes | flags)
    _check_same(config, there)
    return there


def _refusal(flag: str, value: object) -> str:
    words = value if isinstance(value, str) else shown(value)
    option = f"--{flag.replace('_', '-')} {words}"
    return (
        f"{flag}={words} changes the training, or which clients there are: a price has the "
        "cells, clients, seed and training of its run. Train it there: wirelessfl run --config "
        f"RUN/config.toml {option} --out NEW."
    )


def _check_same(here: Config, there: Config) -> None:
    """Refuse a radio over which a setting of training has no effect."""
    tables = [
        {
            (section, key): value
            for section, table in config.used_tables().items()
            if section != "given" and isinstance(table, Mapping)
            for key, value in table.items()
            if not of_radio(section, key)
            and (section, key) != ("network", "network")
            and not (section == "network" and key in ("cells", "clients"))
        }
        for config in (here, there)
    ]
    lost = [place for place in tables[0] if tables[0][place] != tables[1].get(place)]
    if lost:
        raise ConfigError(
            f"{lost[0][1]}={tables[0][lost[0]]} of the run has no effect over the other radio, so "
            "that the training differs. Train the run there."
        )
