"""Carrying out synchronous rounds of one model."""
