"""The product of all choices: every combination runs or is refused with a one-line reason."""
