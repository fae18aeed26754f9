"""The import graph of the sources, which tests check and which can be drawn as a figure."""
