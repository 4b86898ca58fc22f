"""Fuzzing: every door through which bytes of others come in, in one table of targets.

``python -m tests.fuzz --seconds 30 [TARGET...]`` runs campaigns that are led by coverage
(atheris, group ``fuzz``); the tests here run a short pass of every target that is the
same each time. What once failed lies in ``tests/data/fuzz`` and is tried by both.
"""
