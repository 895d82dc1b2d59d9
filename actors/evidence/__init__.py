"""Profilers at work: what a machine has of them, and what they see of a candidate."""
