"""Joint design of network and training: predictions against runs."""
