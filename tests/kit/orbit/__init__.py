"""Test kit of Orbit."""
