"""Trusted arithmetic of gates 2 and 3: inputs, weights and comparison. No process, no clock."""
