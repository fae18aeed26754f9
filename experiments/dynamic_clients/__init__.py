"""The dynamic-clients paper: sessions of clients and their initial models."""
