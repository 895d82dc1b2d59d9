"""CUTLASS on this machine: where it lies, what may be read of it, probes of its headers."""
