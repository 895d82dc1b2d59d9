"""Fast builds of C++ and CUDA candidates: light headers for torch's, and a cache of builds."""
