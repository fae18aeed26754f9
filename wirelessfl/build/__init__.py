"""From settings to everything that a run needs, built once."""
