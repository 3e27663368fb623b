"""Receiving task results from Orbit: an inbox, a worker, and the management of subscriptions."""
