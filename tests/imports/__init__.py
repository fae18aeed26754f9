"""The import graph, read from the sources: checked by tests, and drawn as a figure."""
