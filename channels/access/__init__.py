"""How clients share the air: each access serves a load on a channel draw. One access per file."""

from channels.access.access import Access
from channels.access.equal_bands import EqualBands
from channels.access.equal_slots import EqualSlots
from channels.access.fixed_rate import FixedRate
from channels.access.ready_order import ReadyOrder
from channels.access.simultaneous import Simultaneous

__all__ = ["Access", "EqualBands", "EqualSlots", "FixedRate", "ReadyOrder", "Simultaneous"]
