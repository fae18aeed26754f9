"""The FedAST paper (Askin et al., UAI 2024): settings, scripts, what was reported."""
