"""Processes that touch devices: Ray actors, supervisors, children. Imports nothing heavy itself."""
