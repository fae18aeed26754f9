"""Bridges to other frameworks, whose packages are imported only when a bridge is used.

Flower:
    flower        the clients of a ``ClientApp``, as ``trainer`` of a run
    flower_split  the partitions of a partitioner of ``flwr-datasets``, as ``split`` of a run
"""

from wirelessfl.bridges.flower_app import flower
from wirelessfl.bridges.flower_partitions import flower_split

__all__ = ["flower", "flower_split"]
