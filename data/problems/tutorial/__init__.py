"""Tuned kernels to start from, ten in Triton and ten in Helion. Only read as text."""
