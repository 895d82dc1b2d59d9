"""The device port, in the process that computes: one adapter for CPUs, one for CUDA."""
