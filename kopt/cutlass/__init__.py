"""CUTLASS's own source as a model's reference: search, mined constraints, a check of candidates.

KernelPro §3.2.4. All of it works on texts that are given; who reads them is `kopt.actors.cutlass`.
"""
