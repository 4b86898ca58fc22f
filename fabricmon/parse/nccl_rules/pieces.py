"""Pieces of patterns that many rows share. All are bounded or end at what they lack."""

# A device's name as far as the kernel allows one (63 characters).
DEVICE = r"(?P<device>[A-Za-z][\w.-]{0,62})"
PORT = r"(?P<port>\d{1,3})"
# The address of the other end out of band; a zone is part of it, its port is not.
PEER = r"(?P<peer>[^\s<]{1,255})(?:<(?P<peer_port>\d{1,5})>)?"
# What strerror() says: a few words, up to another sign or the word errno.
ERRNO_TEXT = r"[A-Z][\w/]{0,30}(?: (?!errno\b)[\w/]{1,30}){0,8}"
# A whole number, or one with a fraction.
DECIMAL = r"[\d.]{1,20}"
