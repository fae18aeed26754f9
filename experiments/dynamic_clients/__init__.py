"""The dynamic-clients paper: sessions of clients, and what each starts from."""
