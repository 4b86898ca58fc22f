"""The door to the node."""
