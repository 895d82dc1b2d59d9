"""What runs in child processes: the zygote, and the loop of commands that untrusted code is under."""
