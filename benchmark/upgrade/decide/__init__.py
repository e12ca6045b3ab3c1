"""The recommended strategy, its cost, and doubts about the inputs."""
