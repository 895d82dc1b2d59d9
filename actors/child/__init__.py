"""What runs in child processes: the zygote, and the commands that untrusted code serves."""
