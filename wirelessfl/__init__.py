"""wirelessfl: design wireless networks and federated learning together."""
