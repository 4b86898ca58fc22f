"""The tests of fabricmon; `tests.support` holds what they share."""
