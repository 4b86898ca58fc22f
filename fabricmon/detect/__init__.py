"""What is concluded from a view of the node; pure."""
