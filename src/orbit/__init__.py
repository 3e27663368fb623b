"""Orbit: a task platform whose results reach outside consumers through durable subscriptions."""
