"""Who decides: starts children, owns secrets, inputs, reference outputs, clocks and the verdict."""
