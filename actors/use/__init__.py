"""What a run found, as a module to put into a model."""
