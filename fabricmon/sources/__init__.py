"""What is read, and how a read becomes records."""
