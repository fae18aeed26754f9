"""Network and training chosen together: pilot runs, learning curves and designs."""
