"""The links of a run in rounds."""

from __future__ import annotations

from dataclasses import dataclass

from channels import Access, Network
from wirelessfl.failures import Failures
from wirelessfl.uplinks import Uplink
from wirelessfl.uplinks.uplink import Coherence


@dataclass(frozen=True)
class Links:
    """Links of a run. Downlink and backhaul are error-free, and take no time if their rate is None.

    Args:
        network: cells, clients, channels.
        uplink: how updates cross the air.
        coherence: coherence interval of the channel.
        downlink_bps: rate from edge server to each client, in bit/s.
        backhaul_bps: rate between edge server and cloud in each direction, in bit/s.
        failures: which uploads fail; None for none.
        access: serves rounds in place of the uplink's access, to check them before training.
    """

    network: Network
    uplink: Uplink
    coherence: Coherence = "round"
    downlink_bps: float | None = None
    backhaul_bps: float | None = None
    failures: Failures | None = None
    access: Access | None = None
