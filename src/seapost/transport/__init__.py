"""Carries claimed deliveries to a consumer and brings back one outcome for each."""
