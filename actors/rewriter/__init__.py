"""The programmer that needs no model: algebra proved by rules, and generated kernels."""
