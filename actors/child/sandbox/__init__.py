"""What confines a child, in levels. Each is tried once and named in the verdict if it is in force.

| level | what it does |
| --- | --- |
| `process` | a session of its own, limits, no new privileges, no capabilities but for files |
| `user` | started by root, a user of its own: no signals to others, its processes counted alone |
| `namespace` | no network, no System V or POSIX queues of others, mounts of its own |
| `pid` | sees its own processes alone; all of them die with their first |
| `mount` | files read-only but for its own; scratch and `/dev/shm` in memory, gone with it |
| `landlock` | writes below its own folders alone; no TCP; no signals beyond itself |
| `seccomp` | no sockets but Unix ones; no tracing, mounting, io_uring or new namespaces |
| `cgroup` | memory and number of processes bounded together |

None needs a helper program. What the kernel or the container does not allow is left out and not
named; `kopt doctor` says which and why. KOPT_SANDBOX names the levels to try, joined by `+`, for
a look at what one of them breaks.
"""
