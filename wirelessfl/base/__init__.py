"""What all rooms use: errors, choices, checks of users' code, files, and the figure kit."""
