"""Interfaces of the packages that candidates are written with, read from what is installed."""
