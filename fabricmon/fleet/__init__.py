"""What compares nodes: rules for Prometheus as code, and their proof by replay."""
