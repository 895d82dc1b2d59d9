"""Caches shared by every driver and worker of a node: one store for all kinds."""
