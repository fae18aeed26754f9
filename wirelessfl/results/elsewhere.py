"""A trained run over other radios: its own settings, networks and rows, checked and priced."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from channels import Network
from channels.notes import Notes
from wirelessfl.base.errors import ConfigError
from wirelessfl.base.wording import shown
from wirelessfl.config import Config
from wirelessfl.results.priced_runs import PricedNetworks, PricedRun
from wirelessfl.runs.build.given import NOTHING, GivenObjects
from wirelessfl.runs.folder.given_files import stored_network
from wirelessfl.runs.pricing.network_prices import Entry, network_prices
from wirelessfl.runs.pricing.radio import (
    Radio,
    check_cells,
    check_independent,
    over,
    own_network,
    repriced,
    row_key,
    with_costs,
)
from wirelessfl.runs.result import RunResult


def price_over(run: RunResult, flags: Mapping[str, Any]) -> PricedRun:
    """Price a trained run over a radio whose settings are given by the names of their flags."""
    return TrainedRun(run, None, NOTHING, joules=True).over(Radio(flags=flags))


def entries_of(config: Config, networks: Sequence[Any]) -> list[Entry]:
    """The settings over each of several networks."""
    entries: list[Entry] = []
    sizes: dict[tuple[int, int], Config] = {}
    for number, network in enumerate(networks):
        try:
            if not isinstance(network, Network):
                there = over(config, Radio(network=network))
                entries.append(Entry(there, own_network(there), given=False))
                continue
            size = network.cells, network.clients
            if size not in sizes:
                sizes[size] = over(config, Radio(network=network))
            entries.append(Entry(sizes[size], network, given=True))
        except ConfigError as error:
            raise ConfigError(f"network[{number}]: {error}") from error
    return entries


class TrainedRun:
    """A trained run, and the objects that were given to it.

    Args:
        run: the run.
        rounds: number of rounds to price; None for all.
        given: the objects that were given to it; of these, its folder does not keep model and data.
        joules: whether to compute the energy.

    Raises:
        ConfigError: its model depends on the radio, an object is missing, or it has fewer rounds.
    """

    def __init__(
        self,
        run: RunResult,
        rounds: int | None,
        objects: GivenObjects,
        *,
        joules: bool,
    ) -> None:
        self.run, self.joules = run, joules
        self.config = run.config
        check_independent(self.config)
        self.given = objects
        self.rows = _first_rows(run, rounds)
        marks = self.config.given
        for name in ("model", "data"):
            if getattr(marks, name) is not None and getattr(objects, name) is None:
                raise ConfigError(
                    f"the run was given {name}=..., which its folder does not contain: give it "
                    f"again, wirelessfl.price(run, {name}=...)."
                )
        for name in objects.marks.names:
            if getattr(marks, name) is None:
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
        return None if self.config.regime.in_sessions else max(int(self.rows[-1]["round"]), 1)

    def over(self, radio: Radio) -> PricedRun:
        """The run over another radio."""
        there = over(self.config, radio)
        network = radio.given or self._kept(there)
        objects = self._given(network)
        priced = repriced(
            self.rows,
            self.config,
            there,
            joules=self.joules,
            network=self.network or self._unknown(),
            objects=objects,
        )
        Notes()(*priced.simulated.notes)
        run = self.run
        return PricedRun(
            config=there,
            rows=priced.rows,
            params=vars(run)["_params"],
            directory=run.directory,
            exhausted=run.exhausted,
            finished=run.finished,
            notes=tuple(priced.simulated.notes),
            source=run,
            network=radio.given,
        )

    def over_all(self, radio: Radio, networks: Sequence[Any]) -> PricedNetworks:
        """The run over each of several networks."""
        entries = entries_of(over(self.config, radio), networks)
        for config in {id(entry.config): entry.config for entry in entries}.values():
            check_independent(config)
        here = self.network or self._unknown() or own_network(self.config)
        for number, entry in enumerate(entries):
            check_cells(here, entry.network, f"over network[{number}]")
        prices = network_prices(entries, self.rounds, self.given, joules=self.joules)
        common = with_costs(self.rows, prices.common)
        places: dict[Any, int] = {}
        for place, row in enumerate(prices.common):
            places.setdefault(row_key(row), place)
        at = [places[row_key(row)] for row in self.rows]
        return PricedNetworks(
            prices.networks,
            common,
            {name: np.asarray(values[:, at]) for name, values in prices.fields.items()},
            source=self.run,
            configs=[entry.config for entry in entries],
        )

    def _kept(self, there: Config) -> Network | None:
        """The network that was given to the run, if it is that of the other radio too."""
        if there.given.network is None:
            return None
        if self.network is None:
            raise ConfigError(
                "the run was given network=..., which its folder does not contain: give a network, "
                "wirelessfl.price(run, network=...)."
            )
        return self.network

    def _unknown(self) -> Network | None:
        """A stand-in with the cells of a given network that is not stored."""
        if self.config.given.network is None:
            return None
        raise ConfigError(
            "the run was given network=..., which its folder does not contain, so that the cell of "
            "each client is not known. Train it over the other network."
        )

    def _given(self, network: Network | None) -> GivenObjects:
        return replace(self.given, network=network)


def _first_rows(run: RunResult, rounds: int | None) -> list[dict[str, Any]]:
    """The rows of the first rounds of a run."""
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
