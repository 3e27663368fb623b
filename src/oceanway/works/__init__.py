"""The loop that leases works and runs them."""
