"""The server of one model: its state, client weights, uploads, merges and client states."""
