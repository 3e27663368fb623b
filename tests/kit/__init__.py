"""Fixtures, builders and plugins that tests share."""
