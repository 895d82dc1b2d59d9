"""The report: what runs reached, as one HTML file that needs no network, and its tables as files.

Pure but for reading run folders (`reading.py`): no torch, no ray, no clock.
"""
