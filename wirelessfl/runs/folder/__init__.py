"""The folder of a run: its files, checkpoints and hashes."""
