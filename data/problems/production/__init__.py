"""Kernels of training and serving, with the Triton kernels to be beaten. Only read as text."""
