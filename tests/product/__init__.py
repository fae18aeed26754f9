"""The product of all choices: every combination runs, or says in a line why it cannot."""
