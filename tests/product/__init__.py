"""All combinations of choices: each runs, or is refused with a one-line reason."""
