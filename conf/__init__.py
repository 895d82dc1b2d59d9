"""The YAML that Hydra composes."""
