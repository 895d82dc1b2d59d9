"""Triton: `@triton.jit` kernels and a Python launcher for each region."""
