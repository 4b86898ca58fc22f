"""Grammars: text in, records out, nothing else."""
