"""Compiled models taken apart and put together again: the half that needs torch (DESIGN §8)."""
