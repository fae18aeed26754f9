"""What a round costs with each access and the main settings, side by side, without training."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any, Unpack

from channels.notes import Notes
from channels.summaries import count_of
from wirelessfl.base.errors import ConfigError
from wirelessfl.base.import_paths import short
from wirelessfl.base.torch_state import own_modes
from wirelessfl.base.wording import shown
from wirelessfl.config import Config
from wirelessfl.runs.build.configured import configured_call
from wirelessfl.runs.build.given import Given
from wirelessfl.runs.build.planners import UntrainedModel
from wirelessfl.runs.pricing.price import check_priceable, priced

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
ORTHOGONAL = ("tdma", "ofdma")
"""Uplinks with rates that follow from SNRs."""
MASKS = ("uniform", "optimized")
"""Sizes of masks, of algorithms that have them."""
CONFIGURED = "as configured"
COSTS = ("seconds", "uplink_mib", "downlink_mib", "backhaul_mib")


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
        texts = {k: f"{v:g}" if isinstance(v, float) else v for k, v in self.settings.items()}
        return " ".join(f"--{name.replace('_', '-')} {text}" for name, text in texts.items())


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
        return f"<Options: {self.title}; {count_of(len(self.options), 'option')}, {end}>"

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
        prices = [option for option in self if option.seconds is not None]
        return min(prices, key=lambda option: option.seconds or 0.0, default=None)

    def table(self) -> str:
        """The table as text: a row per option, and notes on what it does not say."""
        masked = any("mask_sizes" in option.settings for option in self)
        rows = [["access", *["masks"] * masked, "s/round", "MiB up/client", "J/client"]]
        notes = [f"mean of {count_of(self.rounds, 'round')}; nothing is trained"]
        partly = [option for option in self if 0 < option.joules_rounds < self.rounds]
        prices = [option for option in self if option.reason is None]
        for option in self:
            cells = ["none", "", ""]
            if option.reason is None:
                joules = "not computed" if option.joules is None else f"{option.joules:.4g}"
                joules += "*" * (option in partly)
                cells = [f"{option.seconds:.4g}", f"{option.uplink_mib:.4g}", joules]
            masks = [str(option.settings["mask_sizes"])] if masked else []
            rows.append([option.title, *masks, *cells])
        if partly:
            notes.append("* joules of the first round only; --air-joules computes those of all")
        if any(option.joules is None for option in prices):
            notes.append(
                "joules over the air need the beamformers of every channel: --air-joules, or "
                "air_joules=True, computes them"
            )
        if any(option.settings["uplink"] == "aircomp" for option in prices):
            notes.append("over the air, sums arrive with errors, so a target may need more rounds")
        for option in self:
            if DEADLINE in option.settings and option.title != CONFIGURED and not option.reason:
                notes.append(f"{option.title}: {option.flags}")
        reasons = {o.reason: o.title for o in reversed(self.options) if o.reason is not None}
        notes += [f"{title}: {reason}" for reason, title in reversed(reasons.items())]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = [
            "  ".join(
                cell.rjust(width) if place > masked else cell.ljust(width)
                for place, (cell, width) in enumerate(zip(row, widths, strict=True))
            ).rstrip()
            for row in rows
        ]
        return "\n".join([self.title, *lines, *notes])


@own_modes
def plan(
    config: Config | Mapping[str, Any] | str | Path,
    rounds: int = ROUNDS,
    *,
    air_joules: bool | None = None,
    trust: bool = False,
    **given: Unpack[Given],
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
        air_joules: whether to compute the joules of all rounds over the air, which need the
            beamformers of every channel; None for those of the first round, if it has few channels.
        trust: whether a file may name code to import.
        given: the objects of the run, see ``wirelessfl.Given``.

    Returns:
        The options. The deadline of the least energy is the longest of the rounds with equal
        bands, in 6 digits, rounded up.

    Raises:
        ConfigError: a wrong setting, or the run has no rounds of one model.
        DataError: the data set must be read, but is missing or damaged.
    """
    config, objects = configured_call(plan, config, given, trust)
    if not config.regime.common_rounds:
        raise ConfigError(
            f"schedule {config.named('schedule')!r} has no common rounds of one model, so that "
            'options cannot be compared by the round: choose schedule "rounds", without sessions.'
        )
    check_priceable(config, rounds, joules=True)
    if rounds is None:
        raise ConfigError("rounds is None: give an integer >= 1.")
    if air_joules not in (None, True, False):
        raise ConfigError(f"air_joules is {shown(air_joules)}: give True, False or None.")
    options, notes = list[Option](), list[str]()
    longest: dict[str | None, float] = {}  # deadlines, by masks
    model: UntrainedModel | None = None  # that of all options
    sizes = config.tables["algorithm"].get("mask_sizes")
    choices = [None] if sizes is None else list(dict.fromkeys([*MASKS, sizes]))
    for (title, uplink), masks in itertools.product(_accesses(config).items(), choices):
        if title != CONFIGURED and DEADLINE in uplink:
            if masks not in longest:  # equal bands have no price
                continue
            uplink = {**uplink, DEADLINE: longest[masks]}
        settings = {} if masks is None else {"mask_sizes": masks}
        settings |= {"uplink" if name == "name" else name: value for name, value in uplink.items()}
        costs: dict[str, Any]
        try:
            choice = _over(config, uplink, masks)
            air = choice.uplink.gives == "sum"
            run = priced(choice, rounds, objects, joules=not air, model=model)
            model, energy = run.model, run.prices
            notes += run.notes
            costs = {name: float(getattr(run.prices, name).mean()) for name in COSTS}
            number = _air_rounds(choice, rounds, air_joules) if air else rounds
            if air and number:
                energy = priced(choice, number, objects, model=model).prices
            if number:
                costs |= {"joules": float(energy.joules.mean()), "joules_rounds": len(energy)}
            if title == EQUAL:
                longest[masks] = _rounded_up(float(run.prices.seconds.max()))
        except ConfigError as error:
            costs = {"reason": str(error)}
        options.append(Option(title, settings, **costs))
    Notes()(*objects.untrained_notes, *notes)
    radio = config.network if config.given.network is None else config.given.network
    title = (
        f"{short(config.named('algorithm'))} on {config.dataset.title}, "
        f"{count_of(radio.clients, 'client')} in {count_of(radio.cells or 1, 'cell')}"
    )
    return Options(tuple(options), title, rounds)


def _accesses(config: Config) -> dict[str, Mapping[str, Any]]:
    """Tables of uplinks by title; the configured one is the first unless it is another's equal."""
    name, defaults = config.named("uplink"), vars(type(config.uplink)())
    uplink = {"name": name} | config.given_settings("uplink")
    plain = {key: value for key, value in uplink.items() if value != defaults.get(key)}
    accesses: dict[str, Mapping[str, Any]] = dict(ACCESSES)
    if "rates" in plain:  # where rates are those of an SNR; solvers refuse others than Shannon's
        accesses = {
            title: {**table, "rates": plain["rates"]} if table["name"] in ORTHOGONAL else table
            for title, table in accesses.items()
        }
    if plain | {"name": uplink["name"]} in [dict(table) for table in accesses.values()]:
        return accesses
    return {CONFIGURED: uplink, **accesses}


def _over(config: Config, uplink: Mapping[str, Any], masks: str | None) -> Config:
    """The settings with another uplink and other sizes of masks."""
    sizes: dict[str, Any] = {} if masks is None else {"mask_sizes": masks}
    return config.changed(uplink=dict(uplink), **sizes)


def _air_rounds(config: Config, rounds: int, air_joules: bool | None) -> int:
    """Number of rounds over the air whose joules are computed."""
    if air_joules is not None:
        return rounds if air_joules else 0
    network = config.network if config.given.network is None else config.given.network
    senders = config.training.clients_per_round or network.clients
    once = (config.network.coherence or config.uplink.coherence) == "round"
    blocks = 1 if once else config.training.edge_rounds or 1
    return int(senders * blocks <= MANY and (network.cells or 1) * blocks <= SOLVED)


def _rounded_up(value: float) -> float:
    """A number of 6 significant digits that is a little larger."""
    scale = 10.0 ** (5 - math.floor(math.log10(value)))
    return float(f"{math.ceil(value * scale * (1 + 1e-9)) / scale:.6g}")
