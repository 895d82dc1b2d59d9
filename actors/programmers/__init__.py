"""Programmers: whoever writes candidates. One file or folder each; the table is in `registry`."""
