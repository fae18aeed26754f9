"""Decided in every round: bands, order, clients, powers and precoders, in runs and in prices."""
