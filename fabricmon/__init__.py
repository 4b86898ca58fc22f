"""Watch the RDMA fabric of an AI cluster from each of its nodes."""

__version__ = "0.1.0"
