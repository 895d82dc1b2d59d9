"""The corpus: everything that runs tried, as rows that people can train on."""
