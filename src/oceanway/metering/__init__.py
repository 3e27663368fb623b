"""Usage and cost of an attempt, turned into settlement inputs."""
