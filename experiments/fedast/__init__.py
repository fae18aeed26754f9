"""The FedAST paper (Askin et al., UAI 2024): settings, scripts, published results."""
