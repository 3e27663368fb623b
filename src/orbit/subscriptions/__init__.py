"""Durable subscriptions: management, deliveries, leases and acknowledgements."""
