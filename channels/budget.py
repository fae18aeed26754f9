"""The link budget of a network: what each client's uplink loses, and the rate that remains."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from channels.access import Access, EqualBands, EqualSlots, Simultaneous
from channels.arguments import checked
from channels.arrays import BoolArray, FloatArray, IntArray
from channels.decibels import dbm_to_watts, watts_to_dbm
from channels.loads import BITS_PER_ELEMENT, Load
from channels.network import ChannelDraw, Network
from channels.plausible import noted
from channels.summaries import cells_of, count_of, html_table, span, text_table
from channels.validation import in_range, shown

OVER_THE_AIR = "over the air"
ACCESSES: Mapping[str, Access] = {
    "equal slots": EqualSlots(),
    "equal bands": EqualBands(),
    OVER_THE_AIR: Simultaneous(),
}
"""Accesses of a link budget, by name."""
OFF = "off"
"""What a table shows for an effect that the network does not model."""


@dataclass(frozen=True, eq=False)
class LinkBudget:
    """The terms of each client's uplink, all [clients]; powers and SNR are per antenna.

    Terms of the path are None for a network without ``placement``.

    >>> import channels
    >>> network = channels.section_vi_c(cells=2, clients=4, stream=channels.Stream(1))
    >>> [row["client"] for row in channels.link_budget(network).rows()]
    [0, 1, 2, 3]

    Args:
        client: indices of the clients.
        cell: their cells.
        distance_m: horizontal distance to the base station, in metres.
        line_of_sight: whether the link has a line of sight.
        path_loss_db: median path loss.
        shadowing_db: additional loss by shadowing, of either sign.
        antenna_gain_db: gain of the antenna elements of both ends.
        gain_db: mean channel gain.
        transmit_power_dbm: maximum transmit power.
        noise_dbm: noise power in the cell's band, with the noise figure.
        mean_snr_db: mean SNR over the cell's band, without interference.
        interference_over_noise_db: I/N, mean power of interference over that of noise in the whole
            band, while one client of each other cell sends; None without interference, -inf for 0.
        noise_rise_db: (I + N)/N, power of noise and mean interference over that of noise.
        combined_snr_db: mean SNR after combining the antennas, with the noise rise.
        rate_bps: by access, the rate of an upload at that SNR: bits over seconds, with all clients
            of the cell uploading.
        seconds: by access, the duration of an upload of ``bits`` at that SNR, with all clients
            uploading; empty without ``bits``.
        bits: size of the upload of each client; None if none was given.
    """

    client: IntArray
    cell: IntArray
    distance_m: FloatArray | None
    line_of_sight: BoolArray | None
    path_loss_db: FloatArray | None
    shadowing_db: FloatArray | None
    antenna_gain_db: FloatArray | None
    gain_db: FloatArray
    transmit_power_dbm: FloatArray
    noise_dbm: FloatArray
    mean_snr_db: FloatArray
    interference_over_noise_db: FloatArray | None
    noise_rise_db: FloatArray | None
    combined_snr_db: FloatArray
    rate_bps: Mapping[str, FloatArray]
    seconds: Mapping[str, FloatArray]
    bits: FloatArray | None

    def __repr__(self) -> str:
        """One line; ``print(budget.text())`` has a line per client."""
        clients = count_of(len(self.client), "client")
        return f"<LinkBudget: {clients}, mean SNR {span(self.mean_snr_db, 'dB')}>"

    def _repr_html_(self) -> str:
        columns = {
            "client": cells_of(self.client, "d"),
            "cell": cells_of(self.cell, "d"),
            "mean SNR [dB]": cells_of(self.mean_snr_db, ".1f"),
            "SNR, all antennas [dB]": cells_of(self.combined_snr_db, ".1f"),
        }
        for name, rate in self.rate_bps.items():
            columns[f"{name} [Mbit/s]"] = cells_of(rate, ".4g", 1e6)
        for name, seconds in self.seconds.items():
            columns[f"{name} [s]"] = cells_of(seconds, ".4g")
        return html_table(repr(self)[1:-1], columns, len(self.client))

    def text(self, clients: int = 100) -> str:
        """A table with a line per client: cell, distance, SNR, and rate and seconds by access.

        Args:
            clients: maximum number of lines.
        """
        columns: dict[str, tuple[FloatArray | IntArray, str, float]] = {
            "client": (self.client, "d", 1),
            "cell": (self.cell, "d", 1),
        }
        if self.distance_m is not None:
            columns["distance\n[m]"] = self.distance_m, ".1f", 1
        columns["mean SNR\n[dB]"] = self.mean_snr_db, ".2f", 1
        columns["SNR, all\nantennas [dB]"] = self.combined_snr_db, ".2f", 1
        for name, rate in self.rate_bps.items():
            columns[f"{name}\n[Mbit/s]"] = rate, ".4g", 1e6
        for name, seconds in self.seconds.items():
            columns[f"{name}\n[s]"] = seconds, ".4g", 1
        lines = [
            [format(values[place] / unit if unit != 1 else values[place], form)
             for values, form, unit in columns.values()]
            for place in range(min(clients, len(self.client)))
        ]  # fmt: skip
        table = text_table(list(columns), lines)
        more = len(self.client) - len(lines)
        return f"{table}\n... and {more} more" if more > 0 else table

    def columns(self) -> dict[str, FloatArray | None]:
        """All terms by name with unit, e.g. ``"path loss [dB]"``, each [clients] or None."""
        return {
            "distance [m]": self.distance_m,
            "path loss [dB]": self.path_loss_db,
            "shadowing [dB]": self.shadowing_db,
            "antenna gain [dB]": self.antenna_gain_db,
            "mean channel gain [dB]": self.gain_db,
            "transmit power [dBm]": self.transmit_power_dbm,
            "noise [dBm]": self.noise_dbm,
            "mean SNR [dB]": self.mean_snr_db,
            "interference over noise, I/N [dB]": self.interference_over_noise_db,
            "noise rise, (I+N)/N [dB]": self.noise_rise_db,
            "SNR of all antennas [dB]": self.combined_snr_db,
            **{f"rate, {name} [bit/s]": rate for name, rate in self.rate_bps.items()},
            **{f"upload, {name} [s]": seconds for name, seconds in self.seconds.items()},
        }

    def rows(self) -> list[dict[str, Any]]:
        """One row per client: ``client``, ``cell``, ``line of sight`` and :meth:`columns`.

        A term is None where it is unknown, and "off" for interference that is not modelled.
        """
        sight = self.line_of_sight
        columns = self.columns()
        return [
            {
                "client": int(self.client[i]),
                "cell": int(self.cell[i]),
                "line of sight": None if sight is None else bool(sight[i]),
                **{
                    name: _missing(name) if values is None else float(values[i])
                    for name, values in columns.items()
                },
            }
            for i in range(len(self.client))
        ]

    def table(self, quantiles: Iterable[float] = (0.05, 0.5, 0.95)) -> list[dict[str, Any]]:
        """One row per term, with quantiles over clients: ``{"quantity": ..., "5 %": ...}``.

        Each term has its own quantiles: the 5 % of the path loss and that of the SNR are of
        different clients. Unknown terms are omitted; interference that is not modelled is "off".

        Args:
            quantiles: from 0 to 1.
        """
        levels = [float(level) for level in quantiles]
        wrong = [level for level in levels if not 0 <= level <= 1]
        if wrong:
            raise ValueError(f"quantiles contains {wrong[0]:g}: give 0 to 1, e.g. 0.05 for 5 %.")
        if not len(self.client):
            raise ValueError("the network has no client: a link budget has no quantiles.")
        names = [f"{100 * level:g} %" for level in levels]
        rows: list[dict[str, Any]] = []
        for quantity, values in self.columns().items():
            if values is not None:
                # The rates and seconds of clients that never arrive are 0 and inf.
                points = np.quantile(values, levels, method="inverted_cdf")
                cells: list[Any] = [float(point) for point in points]
            elif _missing(quantity) is not None:
                cells = [_missing(quantity)] * len(names)
            else:
                continue
            rows.append({"quantity": quantity, **dict(zip(names, cells, strict=True))})
        return rows


def _missing(quantity: str) -> str | None:
    return OFF if quantity.startswith(("interference", "noise rise")) else None


def default_accesses(network: Network) -> Mapping[str, Access]:
    """The accesses of a link budget, by name; over the air only if the network has such sums."""
    if network.subcarriers == 1 and not network.watts_by_client:
        return ACCESSES
    return {name: access for name, access in ACCESSES.items() if name != OVER_THE_AIR}


@noted
@checked()
def link_budget(
    network: Network | ChannelDraw,
    *,
    bits: ArrayLike | None = None,
    accesses: Mapping[str, Access] | None = None,
) -> LinkBudget:
    """The link budget of each client's uplink.

    Rates and seconds are those of a draw in which ||h||^2 has its mean, M times the path gain, and
    interference has its mean power. Fading makes the mean rate lower, as log2(1 + SNR) is concave.
    Those of a channel draw, and its SNR of all antennas and its interference, hold in that block.

    >>> import channels
    >>> network = channels.section_vi_c(cells=2, clients=4, stream=channels.Stream(1))
    >>> budget = channels.link_budget(network, bits=8e6)
    >>> sorted(budget.seconds), budget.client.tolist()
    (['equal bands', 'equal slots', 'over the air'], [0, 1, 2, 3])

    Args:
        network: a network or sub-network, or a channel draw of one block.
        bits: size of each client's upload, one number or [clients], finite and > 0; None for rates
            alone. Over the air, 32 bits are an element.
        accesses: accesses by name; None for equal slots, equal bands and over the air, the last
            where the band is flat and all clients of a cell hear the same interference.
    """
    whole = network.network if isinstance(network, ChannelDraw) else network
    uplinks = default_accesses(whole) if accesses is None else accesses
    if not isinstance(uplinks, Mapping):
        raise TypeError(
            f"accesses is {shown(accesses)}: give accesses by name, e.g. "
            '{"equal bands": EqualBands()}.'
        )
    for name, access in uplinks.items():
        if not isinstance(access, Access):
            raise TypeError(f"accesses[{name!r}] is {shown(access)}: give a channels.Access.")
    block = network if isinstance(network, ChannelDraw) else None
    if block is not None and block.h.ndim > 2:
        raise ValueError(
            f"network is {block!r}: give a draw of one block, e.g. draw.block(0), or the network."
        )
    network = whole
    cells = network.cell_of
    size = None if bits is None else in_range("bits", bits, ("clients", network.clients), above=0)
    noise_rise = None
    if network.interference is not None:
        noise_rise = 1 + network.interference.mean_watts() / dbm_to_watts(network.noise_dbm)
    amplitude = 10 ** (network.path_gain_db / 20)
    h = np.repeat(amplitude[:, None], network.antennas, axis=1).astype(np.complex64)
    draw = ChannelDraw(network, h, noise_rise, network.external_rise()) if block is None else block
    # A load that is linear in its bits has the same rate for any number of them.
    load = Load(0.0, (np.ones(network.clients) if size is None else size) / BITS_PER_ELEMENT)
    served = {name: access.seconds(load, draw) for name, access in uplinks.items()}
    combined = network.mean_snr_db + 10 * np.log10(network.antennas)
    over_db = rise_db = None
    if draw.disturbed:
        rise = np.asarray(draw.rise())
        with np.errstate(divide="ignore"):
            over_db, rise_db = 10 * np.log10(rise - 1), 10 * np.log10(rise)
    snr = combined if rise_db is None else combined - rise_db
    if block is not None:
        with np.errstate(divide="ignore"):
            snr = 10 * np.log10(draw.snr * draw.gain)
    where, rows = network.placement, network.numbers
    sight = None if where is None else where.line_of_sight
    return LinkBudget(
        client=rows,
        cell=cells,
        distance_m=None if where is None else where.distance_m[rows],
        line_of_sight=None if sight is None else sight[rows],
        path_loss_db=None if where is None else where.path_loss_db[rows],
        shadowing_db=None if where is None else where.shadowing_db[rows],
        antenna_gain_db=None if where is None else np.full(len(rows), where.antenna_gain_db),
        gain_db=network.gain_db,
        transmit_power_dbm=watts_to_dbm(network.transmit_power_w),
        noise_dbm=network.noise_dbm[cells],
        mean_snr_db=network.mean_snr_db,
        interference_over_noise_db=over_db,
        noise_rise_db=rise_db,
        combined_snr_db=snr,
        rate_bps={name: load.bits / seconds for name, seconds in served.items()},
        seconds={} if size is None else served,
        bits=size,
    )
