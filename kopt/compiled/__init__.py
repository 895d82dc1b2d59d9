"""Compiled models, as far as text and decisions go: Inductor's output read, grouped and re-written.

Pure: no torch. What compiles, runs and measures is kopt.actors.compiled.
"""
