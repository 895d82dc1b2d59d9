"""C++ with OpenMP: one `extern "C"` function for each region, loaded by ctypes."""
