"""Exports: what trainers read, made from runs."""
