"""The reward service: completions in, verdicts and rewards out, for trainers."""
