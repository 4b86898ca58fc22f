"""What logs of collective libraries tell: who failed first, and what only follows. Pure."""
