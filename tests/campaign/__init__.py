"""The fault campaign: what goes wrong around a real agent, and what it does then."""
