"""What the user brings, as checked and joined inputs."""
