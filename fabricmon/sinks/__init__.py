"""Where snapshots and incidents go."""
