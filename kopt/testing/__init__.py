"""Fakes and conformance suites of the ports, shipped for authors of plug-ins."""
