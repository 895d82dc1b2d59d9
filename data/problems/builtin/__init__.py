"""Our own problems: KernelBench contract files at CPU-sized shapes."""
