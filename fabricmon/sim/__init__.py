"""A coupled model of jobs and links that breaks on purpose and writes traces."""
