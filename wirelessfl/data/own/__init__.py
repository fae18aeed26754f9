"""The user's own data and split, in the forms in which other libraries give them."""

from wirelessfl.data.own.convert import Data, as_dataset
from wirelessfl.data.own.lists import check_below, client_lists

__all__ = ["Data", "as_dataset", "check_below", "client_lists"]
