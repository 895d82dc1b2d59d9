"""Pure tree search: no clock, no RNG of its own, no actor, no I/O."""
