"""What profilers print, read into evidence: pure text in, values out, nothing run."""
