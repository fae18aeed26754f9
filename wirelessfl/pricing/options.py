"""What a round costs with each access and the main settings, side by side, without training."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from html import escape
from pathlib import Path
from typing import Any

import torch

from channels import Network
from channels.notes import Notes
from channels.summaries import counted
from wirelessfl.config import Config
from wirelessfl.config.tables import given_places
from wirelessfl.data import Data
from wirelessfl.errors import ConfigError
from wirelessfl.import_paths import short
from wirelessfl.pricing.price import check_priceable, priced
from wirelessfl.pricing.prices import Prices
from wirelessfl.setup.arguments import check_objects
from wirelessfl.setup.given_objects import GivenObjects, configured, naming_network
from wirelessfl.setup.planners import Planned
from wirelessfl.torch_modes import own_modes
from wirelessfl.wording import shown

ROUNDS = 5
"""Number of rounds whose mean is taken."""
MANY, SOLVED = 128, 8
"""Channels and beamformers of a round over the air above which its joules are not computed, unless
that is asked for."""
ACCESSES: Mapping[str, Mapping[str, Any]] = {
    "time slots": {"name": "tdma"},
    "turns, in order of readiness": {"name": "tdma", "order": "ready"},
    "equal bands": {"name": "ofdma"},
    "optimal bands": {"name": "ofdma", "allocation": "optimal"},
    "least energy in the time of equal bands": {"name": "ofdma", "round_deadline": None},
    "over the air, physical": {"name": "aircomp", "convention": "physical"},
    "over the air, mmse": {"name": "aircomp", "convention": "mmse"},
}
"""Accesses by title, with the table of their uplink; None for a deadline to be found."""
DEADLINE, EQUAL = "round_deadline", "equal bands"
MASKS = ("uniform", "optimized")
"""Sizes of masks, of algorithms that have them."""
CONFIGURED = "as configured"


@dataclass(frozen=True)
class Option:
    """One way to run the rounds, and what a round costs.

    >>> import wirelessfl
    >>> option = wirelessfl.Option("equal bands", {"uplink": "ofdma"}, seconds=0.5)
    >>> option.flags
    '--uplink ofdma'

    Args:
        title: the access in words.
        settings: the settings that differ from one option to the next, by the names of flags.
        seconds: simulated seconds of a round, mean over the rounds; None if it has no price.
        uplink_mib: uplink traffic of a round, mean over the clients.
        downlink_mib: downlink traffic of a round, mean over the clients.
        backhaul_mib: backhaul traffic of a round, mean over the edge servers.
        joules: energy of a round, mean over the clients; None if it is not computed.
        joules_rounds: number of rounds of which ``joules`` is the mean.
        reason: why the option has no price; None if it has one.
    """

    title: str
    settings: dict[str, Any]
    seconds: float | None = None
    uplink_mib: float | None = None
    downlink_mib: float | None = None
    backhaul_mib: float | None = None
    joules: float | None = None
    joules_rounds: int = 0
    reason: str | None = None

    @property
    def flags(self) -> str:
        """The settings as flags of ``wirelessfl run``."""
        return " ".join(
            f"--{name.replace('_', '-')} {_text(value)}" for name, value in self.settings.items()
        )


@dataclass(frozen=True, eq=False)
class Options:
    """What a round costs with each access and the main settings.

    >>> import wirelessfl
    >>> config = wirelessfl.Config.from_flags("fedavg", clients=8, hidden=(16,))
    >>> options = wirelessfl.plan(config)
    >>> [option.title for option in options.options][2:4]
    ['equal bands', 'optimal bands']
    >>> bool(options.options[3].seconds <= options.options[2].seconds)
    True

    Args:
        options: the options, in order.
        title: algorithm, data set and network.
        rounds: number of rounds whose mean is taken.
    """

    options: tuple[Option, ...]
    title: str
    rounds: int

    def __repr__(self) -> str:
        """One line: how many options, and the fastest."""
        best = self.fastest
        end = "none has a price" if best is None else f"fastest {best.flags}, {best.seconds:.4g} s"
        return f"<Options: {self.title}; {counted(len(self.options), 'option')}, {end}>"

    def __iter__(self) -> Iterator[Option]:
        return iter(self.options)

    def __len__(self) -> int:
        return len(self.options)

    def _repr_html_(self) -> str:
        """The table, for notebooks."""
        return f"<pre>{escape(self.table())}</pre>"

    @property
    def fastest(self) -> Option | None:
        """The option whose rounds take the fewest seconds; None if none has a price."""
        known = [option for option in self.options if option.seconds is not None]
        return min(known, key=lambda option: option.seconds or 0.0, default=None)

    @property
    def headings(self) -> list[str]:
        """Headings of the table."""
        varied = ["masks"] if any("mask_sizes" in o.settings for o in self.options) else []
        return ["access", *varied, "s/round", "MiB up/client", "J/client"]

    def cells(self) -> list[list[str]]:
        """The cells of the table, one row per option."""
        rows = []
        for option in self.options:
            masks = [str(option.settings["mask_sizes"])] if len(self.headings) > 4 else []
            if option.reason is not None:
                rows.append([option.title, *masks, "none", "", ""])
                continue
            joules = "not computed" if option.joules is None else f"{option.joules:.4g}"
            mark = "*" if 0 < option.joules_rounds < self.rounds else ""
            seconds, mib = f"{option.seconds:.4g}", f"{option.uplink_mib:.4g}"
            rows.append([option.title, *masks, seconds, mib, joules + mark])
        return rows

    def notes(self) -> list[str]:
        """What the table does not say: the rounds, marks, flags, and why an option has no price."""
        found = [f"mean of {counted(self.rounds, 'round')}; nothing is trained"]
        some = {o.joules_rounds for o in self.options if 0 < o.joules_rounds < self.rounds}
        if some:
            found.append("* joules of the first round only; --air-joules computes those of all")
        if any(o.joules is None and o.reason is None for o in self.options):
            found.append(
                "joules over the air need the beamformers of every channel: --air-joules, or "
                "air_joules=True, computes them"
            )
        if any(o.settings.get("uplink") == "aircomp" and o.reason is None for o in self.options):
            found.append("over the air, sums arrive with errors, so a target may need more rounds")
        for option in self.options:
            if DEADLINE in option.settings and option.title != CONFIGURED:
                found.append(f"{option.title}: {option.flags}")
        reasons = {o.reason: o.title for o in reversed(self.options) if o.reason is not None}
        return found + [f"{title}: {reason}" for reason, title in reversed(reasons.items())]

    def table(self) -> str:
        """The table as text, with its notes."""
        rows = [self.headings, *self.cells()]
        widths = [max(len(row[at]) for row in rows) for at in range(len(self.headings))]
        left = len(self.headings) - 3
        lines = [
            "  ".join(
                cell.ljust(width) if at < left else cell.rjust(width)
                for at, (cell, width) in enumerate(zip(row, widths, strict=True))
            ).rstrip()
            for row in rows
        ]
        return "\n".join([self.title, *lines, *self.notes()])


@own_modes
def plan(
    config: Config | Mapping[str, Any] | str | Path,
    rounds: int = ROUNDS,
    *,
    model: torch.nn.Module | None = None,
    data: Data | None = None,
    network: Network | str | None = None,
    air_joules: bool | None = None,
    trust: bool = False,
) -> Options:
    """What a round costs with each access and the main settings, without training.

    The accesses are time slots, turns in order of readiness, equal bands, optimal bands, the least
    energy within the time of equal bands, and over-the-air sums. Algorithms whose cells have masks
    are priced with uniform and optimized ones. If the uplink of ``config`` is another one, it is
    the first option. All options have the same rounds: channels, participants and clients.

    >>> import wirelessfl
    >>> options = wirelessfl.plan(wirelessfl.Config.from_flags("fedavg", clients=4), rounds=3)
    >>> len(options), options.fastest.title.startswith("over the air")
    (7, True)

    Args:
        config: a configuration, nested tables of settings, or the path of a TOML file.
        rounds: number of rounds whose mean is taken.
        model: module of the run instead of the configured model.
        data: data of the run instead of the configured ones, see ``wirelessfl.data.as_dataset``.
        network: network to use instead of the configured one, or the import path of one.
        air_joules: whether to compute the joules of all rounds over the air, which need the
            beamformers of every channel; None for those of the first round, if it has few channels.
        trust: whether a file may name code to import.

    Returns:
        The options. The deadline of the least energy is the longest of the rounds with equal
        bands, in 6 digits, rounded up.

    Raises:
        ConfigError: a wrong setting, or the run has no rounds of one model.
        DataError: the data set must be read, but is missing or damaged.
    """
    check_objects(model=model)
    config, network = naming_network(config, network, trust)
    given = GivenObjects.of(model, data, network)
    settings = configured(config, given, trust)
    if not settings.regime.common_rounds:
        raise ConfigError(
            f"schedule {settings.named('schedule')!r} has no common rounds of one model, so that "
            'options cannot be compared by the round: choose schedule "rounds", without sessions.'
        )
    check_priceable(settings, rounds, joules=True)
    if rounds is None:
        raise ConfigError("rounds is None: give an integer >= 1.")
    if air_joules not in (None, True, False):
        raise ConfigError(f"air_joules is {shown(air_joules)}: give True, False or None.")
    compared = _Compared(settings, given, rounds, air_joules)
    options = Options(tuple(compared.options()), compared.title, rounds)
    Notes()(*compared.noted)
    return options


@dataclass(frozen=True, eq=False)
class _Compared:
    """Options of one configuration.

    Args:
        config: the settings, resolved.
        given: Python objects that replace settings.
        rounds: number of rounds.
        air_joules: see ``plan``.
        built: what planned the options so far; all have the same model.
        noted: the notes on them.
    """

    config: Config
    given: GivenObjects
    rounds: int
    air_joules: bool | None
    built: list[Planned] = field(default_factory=list)
    noted: list[str] = field(default_factory=list)

    @property
    def title(self) -> str:
        """Algorithm, data set and network."""
        config = self.config
        network = config.network if config.given.network is None else config.given.network
        clients, cells = network.clients, network.cells or 1
        return (
            f"{short(config.named('algorithm'))} on {config.dataset.title}, "
            f"{counted(clients, 'client')} in {counted(cells, 'cell')}"
        )

    def options(self) -> Iterator[Option]:
        """Price each option."""
        own = self.config.tables["algorithm"].get("mask_sizes")
        sizes = [None] if own is None else list(dict.fromkeys([*MASKS, own]))
        standard = [dict(table) for table in ACCESSES.values()]
        uplink = {"name": self.config.named("uplink")}
        uplink |= self.config.given_tables().get("uplink", {})
        plain = {k: v for k, v in uplink.items() if v != _defaults(self.config).get(k)}
        accesses = dict(ACCESSES)
        if plain | {"name": uplink["name"]} not in standard:
            accesses = {CONFIGURED: uplink, **accesses}
        longest: dict[Any, float] = {}
        for title, table in accesses.items():
            for masks in sizes:
                wanted = dict(table)
                if title != CONFIGURED and wanted.get(DEADLINE, 0) is None:
                    if masks not in longest:  # equal bands have no price
                        continue
                    wanted[DEADLINE] = longest[masks]
                option, prices = self._option(title, wanted, masks)
                if title == EQUAL and prices is not None:
                    longest[masks] = _rounded_up(float(prices.seconds.max()))
                yield option

    def _option(
        self, title: str, uplink: dict[str, Any], masks: str | None
    ) -> tuple[Option, Prices | None]:
        """An option, and the prices of its rounds if it has any."""
        settings: dict[str, Any] = {} if masks is None else {"mask_sizes": masks}
        settings |= {"uplink": uplink["name"]}
        settings |= {key: value for key, value in uplink.items() if key != "name"}
        tables = self.config.given_tables()
        loose = given_places(tables)
        tables["uplink"] = uplink
        if masks is not None:
            tables["algorithm"] = tables["algorithm"] | {"mask_sizes": masks}
        try:
            config = Config.of(tables, loose=loose - {("uplink", key) for key in uplink})
            air = config.uplink.gives == "sum"
            like = self.built[-1] if self.built else None
            made = priced(config, self.rounds, self.given, joules=not air, like=like)
            self.built.append(made.planned)
            self.noted.extend(made.notes)
            found = made.prices
            joules, counted_rounds = None, 0
            if not air:
                joules, counted_rounds = float(found.joules.mean()), len(found)
            elif (number := self._air_rounds(config)) > 0:
                own = priced(config, number, self.given, like=made.planned).prices
                joules, counted_rounds = float(own.joules.mean()), len(own)
        except ConfigError as error:
            return Option(title, settings, reason=str(error)), None
        option = Option(title, settings, joules=joules, joules_rounds=counted_rounds)
        option = replace(
            option,
            seconds=float(found.seconds.mean()),
            uplink_mib=float(found.uplink_mib.mean()),
            downlink_mib=float(found.downlink_mib.mean()),
            backhaul_mib=float(found.backhaul_mib.mean()),
        )
        return option, found

    def _air_rounds(self, config: Config) -> int:
        """Number of rounds over the air whose joules are computed."""
        if self.air_joules is not None:
            return self.rounds if self.air_joules else 0
        network = config.network if config.given.network is None else config.given.network
        senders = config.training.clients_per_round or network.clients
        once = (config.network.coherence or config.uplink.coherence) == "round"
        blocks = 1 if once else config.training.edge_rounds or 1
        beamformers = (network.cells or 1) * blocks
        return 1 if senders * blocks <= MANY and beamformers <= SOLVED else 0


def _defaults(config: Config) -> dict[str, Any]:
    """Settings of the configured uplink at their defaults."""
    return vars(type(config.uplink)())


def _rounded_up(value: float) -> float:
    """A number of 6 significant digits that is a little larger."""
    scale = 10.0 ** (5 - math.floor(math.log10(value)))
    return float(f"{math.ceil(value * scale * (1 + 1e-9)) / scale:.6g}")


def _text(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
