"""The driver: the only loop. It holds the trees, dispatches, waits for any, tells, journals."""
