"""What tests share: programs to find, servers to start, a browser to drive."""
