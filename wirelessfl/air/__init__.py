"""How updates cross the air: uplinks, failures, compression, radio, price of a round."""
