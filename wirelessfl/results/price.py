"""Seconds and joules of runs, without training: of settings, and of trained runs elsewhere."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, overload

import numpy as np
from torch import nn

from channels import Network
from wirelessfl.config import Config
from wirelessfl.data import Data
from wirelessfl.errors import ConfigError
from wirelessfl.pricing.network_prices import Entry, NetworkPrices, network_prices
from wirelessfl.pricing.over import Radio, over
from wirelessfl.pricing.price import price as price_settings
from wirelessfl.pricing.price import priced
from wirelessfl.pricing.prices import Prices
from wirelessfl.pricing.same_training import (
    check_cells,
    check_independent,
    own_network,
    repriced,
    row_key,
    with_costs,
)
from wirelessfl.results.load import load
from wirelessfl.results.priced_runs import PricedNetworks, PricedRun
from wirelessfl.runs.given_files import stored_network
from wirelessfl.runs.result import RunResult
from wirelessfl.setup.arguments import check_objects
from wirelessfl.setup.given_objects import GivenObjects, configured
from wirelessfl.wording import shown

Configured = Config | Mapping[str, Any] | str | Path
"""Settings of a run, or the path of their file."""
OneNetwork = Network | str | Mapping[str, Any]
"""A network, an import path, or settings of the radio."""


@overload
def price(  # type: ignore[overload-overlap]  # a string is a sequence of strings
    run: RunResult,
    rounds: int | None = None,
    *,
    model: nn.Module | None = None,
    data: Data | None = None,
    network: OneNetwork | None = None,
    uplink: str | Mapping[str, Any] | None = None,
    joules: bool = True,
    trust: bool = False,
) -> PricedRun: ...
@overload
def price(
    run: RunResult,
    rounds: int | None = None,
    *,
    model: nn.Module | None = None,
    data: Data | None = None,
    network: Sequence[OneNetwork],
    uplink: str | Mapping[str, Any] | None = None,
    joules: bool = True,
    trust: bool = False,
) -> PricedNetworks: ...
@overload
def price(
    run: Config | Mapping[str, Any],
    rounds: int | None = None,
    *,
    model: nn.Module | None = None,
    data: Data | None = None,
    network: OneNetwork | None = None,
    uplink: str | Mapping[str, Any] | None = None,
    joules: bool = True,
    trust: bool = False,
) -> Prices: ...
@overload
def price(
    run: RunResult | Configured,
    rounds: int | None = None,
    *,
    model: nn.Module | None = None,
    data: Data | None = None,
    network: OneNetwork | Sequence[OneNetwork] | None = None,
    uplink: str | Mapping[str, Any] | None = None,
    joules: bool = True,
    trust: bool = False,
) -> Any: ...
def price(
    run: RunResult | Configured,
    rounds: int | None = None,
    *,
    model: nn.Module | None = None,
    data: Data | None = None,
    network: OneNetwork | Sequence[OneNetwork] | None = None,
    uplink: str | Mapping[str, Any] | None = None,
    joules: bool = True,
    trust: bool = False,
) -> Prices | PricedRun | NetworkPrices:
    """Price the rounds of settings, or of a trained run over another network or uplink.

    Nothing is trained. The schedule, channels, participants, submodels and loads are simulated on
    the virtual clock, so all costs equal those in the rows of a run, to the bit. Data are read only
    if they determine the model's size and are the user's own, or texts whose vocabulary depends on
    a tokenizer's files.

    Of settings, the costs of each round are returned. A run that stops at a target accuracy has a
    prefix of these rounds. Over the air, precoders apply the weights of the mean: with
    ``weighting="samples"`` the numbers of samples are not known, equal ones are assumed, and joules
    differ from the run's.

    Of a trained run, its rows are returned with the seconds and joules of the other radio, as if it
    had been trained there. Cells, clients, seed and training stay. Over an error-free uplink the
    model does not depend on the radio if clients and submodels do not; whatever makes it depend is
    refused by name.

    With a sequence of networks, all are priced together: the rounds are planned once, and fading is
    shared by networks that differ in gains, powers, bands or CPUs.

    >>> import wirelessfl
    >>> prices = wirelessfl.price(wirelessfl.Config.from_flags("fedavg", clients=4, rounds=3))
    >>> len(prices.rows), prices.node_seconds.shape
    (4, (3, 1))

    Args:
        run: a configuration, nested tables of settings, or the path of a TOML file; or a trained
            run or its folder.
        rounds: number of rounds, of all sessions, or of merges of asynchronous cells; None for all
            rounds of the run, up to ``max_seconds`` if it is set. Of a trained run, at most those
            of its rows.
        model: module of the run instead of the configured model.
        data: data of the run instead of the configured ones, see ``wirelessfl.data.as_dataset``.
        network: network to use instead of the run's: a network, the import path of one, or settings
            of the network, layout, path loss and fading by the names of their flags, such as
            ``{"bandwidth_hz": 2e6}``; or a sequence of these.
        uplink: uplink to use instead of the run's: its name, or its settings, such as
            ``{"name": "ofdma", "allocation": "optimal"}``.
        joules: whether to compute the energy. Over the air it takes most of the time, since it
            needs the beamformers of every channel draw.
        trust: whether a folder or file may name code to import.

    Returns:
        ``Prices`` of settings, a ``PricedRun`` of a trained run; of several networks
        ``NetworkPrices``, or ``PricedNetworks`` of a trained run.

    Raises:
        ConfigError: a wrong setting, settings that conflict, a wrong number of rounds; the costs
            depend on training (requests to clients, rounds of tasks, and selection by losses), or
            the training of the run depends on the radio; or the run needs an object that is not
            given.
        DataError: the data set must be read, but is missing or damaged.
    """
    check_objects(model=model)
    if not isinstance(run, RunResult | Config | Mapping | str | PathLike):
        raise ConfigError(
            f"run is {shown(run)}: give a run or its folder, or settings: a wirelessfl.Config, "
            "tables, or the path of a TOML file."
        )
    if isinstance(run, str | PathLike) and Path(run).is_dir():
        run = load(run, trust=trust)
    several = _several(network)
    one: Any = network if several is None else None
    radio = Radio(uplink, one)
    if isinstance(run, RunResult):
        trained = _Trained(run, rounds, model, data, joules=joules)
        return trained.over(radio) if several is None else trained.over_all(radio, several)
    if several is None and uplink is None and not isinstance(one, Mapping):
        return price_settings(
            run, rounds, model=model, data=data, network=one, joules=joules, trust=trust
        )
    given = GivenObjects.of(model, data, radio.given)
    config = over(configured(run, GivenObjects.of(model, data), trust), radio)
    if several is None:
        return priced(config, rounds, given, joules=joules).prices
    entries = _entries(config, several)
    for number, entry in enumerate(entries):
        check_cells(entries[0].network, entry.network, f"network[{number}]: unlike network[0]")
    return network_prices(entries, rounds, given, joules=joules)


def price_over(run: RunResult, flags: Mapping[str, Any]) -> PricedRun:
    """Price a trained run over a radio whose settings are given by the names of their flags.

    Args:
        run: the run.
        flags: the settings that differ.

    Raises:
        ConfigError: as for ``price``.
    """
    return _Trained(run, None, None, None, joules=True).over(Radio(flags=flags))


def _several(network: Any) -> list[Any] | None:
    """The networks, if these are several.

    Raises:
        ConfigError: there is none.
    """
    if isinstance(network, Network | str | Mapping) or not isinstance(network, Iterable):
        return None
    found = list(network)
    if not found:
        raise ConfigError("network is an empty sequence: give at least one network.")
    return found


def _entries(config: Config, networks: Sequence[Any]) -> list[Entry]:
    """The settings over each of several networks."""
    entries: list[Entry] = []
    sizes: dict[tuple[int, int], Config] = {}
    for number, network in enumerate(networks):
        try:
            if not isinstance(network, Network):
                own = over(config, Radio(network=network))
                entries.append(Entry(own, own_network(own), given=False))
                continue
            size = network.cells, network.clients
            if size not in sizes:
                sizes[size] = over(config, Radio(network=network))
            entries.append(Entry(sizes[size], network, given=True))
        except ConfigError as error:
            raise ConfigError(f"network[{number}]: {error}") from error
    return entries


class _Trained:
    """A trained run, and the objects that were given to it."""

    def __init__(
        self,
        run: RunResult,
        rounds: int | None,
        model: nn.Module | None,
        data: Data | None,
        *,
        joules: bool,
    ) -> None:
        self.run, self.joules = run, joules
        self.config = run.config.resolve()
        check_independent(self.config)
        self.given = GivenObjects.of(model, data)
        self.rows = _first_rows(run, rounds)
        marks = self.config.given
        for name in ("model", "data"):
            marked, there = getattr(marks, name), getattr(self.given, name)
            if marked is not None and there is None:
                raise ConfigError(
                    f"the run was given {name}=..., which its folder does not contain: give it "
                    f"again, wirelessfl.price(run, {name}=...)."
                )
            if marked is None and there is not None:
                raise ConfigError(
                    f"{name}=... is given, but the run has the {name} of its settings: leave it "
                    "out."
                )
        if marks.split is not None and self.config.training.local_epochs is not None:
            raise ConfigError(
                "the run was given split=..., and local_epochs count its samples: it has no price "
                "over another radio. Train it there."
            )
        self.network: Network | None = None
        if marks.network is not None:
            self.network = stored_network(run.directory)

    @property
    def rounds(self) -> int | None:
        """Number of rounds to price."""
        sessions = self.config.regime == "sessions"
        return None if sessions else max(int(self.rows[-1]["round"]), 1)

    def over(self, radio: Radio) -> PricedRun:
        """The run over another radio."""
        there = over(self.config, radio)
        network = radio.given or self._kept(there)
        given = self._given(network)
        found = repriced(
            self.rows,
            self.config,
            there,
            joules=self.joules,
            network=self.network or self._unknown(),
            given=given,
        )
        own = self.run
        return PricedRun(
            config=there,
            rows=found.rows,
            params=vars(own)["_params"],
            directory=own.directory,
            exhausted=own.exhausted,
            finished=own.finished,
            source=own,
            network=radio.given,
        )

    def over_all(self, radio: Radio, networks: Sequence[Any]) -> PricedNetworks:
        """The run over each of several networks."""
        entries = _entries(over(self.config, radio), networks)
        for config in {id(entry.config): entry.config for entry in entries}.values():
            check_independent(config)
        own = self.network or self._unknown() or own_network(self.config)
        for number, entry in enumerate(entries):
            check_cells(own, entry.network, f"over network[{number}]")
        found = network_prices(entries, self.rounds, self.given, joules=self.joules)
        common = with_costs(self.rows, found.common)
        places: dict[Any, int] = {}
        for place, row in enumerate(found.common):
            places.setdefault(row_key(row), place)
        at = [places[row_key(row)] for row in self.rows]
        return PricedNetworks(
            found.networks,
            common,
            {name: np.asarray(values[:, at]) for name, values in found.fields.items()},
            source=self.run,
            configs=[entry.config for entry in entries],
        )

    def _kept(self, there: Config) -> Network | None:
        """The network that was given to the run, if it is that of the other radio too.

        Raises:
            ConfigError: it is, and the folder does not contain it.
        """
        if there.given.network is None:
            return None
        if self.network is None:
            raise ConfigError(
                "the run was given network=..., which its folder does not contain: give a network, "
                "wirelessfl.price(run, network=...)."
            )
        return self.network

    def _unknown(self) -> Network | None:
        """A stand-in with the cells of a given network that is not stored.

        Raises:
            ConfigError: the run's network is not known.
        """
        if self.config.given.network is None:
            return None
        raise ConfigError(
            "the run was given network=..., which its folder does not contain, so that the cell of "
            "each client is not known. Train it over the other network."
        )

    def _given(self, network: Network | None) -> GivenObjects:
        return GivenObjects(self.given.model, self.given.data, network)


def _first_rows(run: RunResult, rounds: int | None) -> list[dict[str, Any]]:
    """The rows of the first rounds of a run.

    Raises:
        ConfigError: it has no rows, or fewer rounds.
    """
    if not run.rows:
        raise ConfigError(f"the run in {run.directory} has no rows yet: train it.")
    if rounds is None:
        return list(run.rows)
    last = run.rows[-1]["round"]
    if isinstance(rounds, bool) or not isinstance(rounds, int | np.integer) or rounds < 1:
        raise ConfigError(f"rounds is {shown(rounds)}: give an integer >= 1, or None for all.")
    if rounds > last:
        raise ConfigError(
            f"rounds is {rounds}, but the run has {last}: give at most that many, or continue it, "
            f"wirelessfl resume {run.directory} --rounds {rounds}."
        )
    return [row for row in run.rows if row["round"] <= rounds]
