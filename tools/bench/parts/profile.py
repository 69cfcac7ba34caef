"""What a program's processor time goes into, by samples of `perf`: its own work, and what the kernel does for it."""

import collections
import re
import subprocess

HERTZ = 10_000
# The outermost kernel function that says what the kernel was asked for: the first group that fits it takes the sample.
GROUPS = {
    "starting: `execve`, the dynamic loader": r"execve",
    "page faults": r"exc_page_fault",
    "memory: `mmap`, `mprotect`, `munmap`, `brk`": r"mmap|mprotect|munmap|brk|madvise",
    "network": r"socket|connect|sendto|recvfrom|sockopt|shutdown|getpeername",
    "processes and threads": r"clone|fork|wait|futex|exit_group|_exit$|poll|pidfd|sigaction|sigprocmask|rseq|set_robust_list|schedule",
}
FILES = "files, and all other calls"
OWN = "own code, with that of its libraries"
ENTRY = re.compile(r"^(__x64_sys_|__do_sys_|ksys_|kernel_wait|asm_exc_|asm_sysvec_|ret_from_fork|do_getxattr|exit_to_user_mode_loop)")


def groups():
    return [OWN, *GROUPS, FILES]


def record(argv, cwd, env, data):
    """Runs a program under `perf`."""
    command = ["perf", "record", "--quiet", "--event", "cpu-clock", "--freq", str(HERTZ), "--call-graph", "fp", "--output", data, *argv]
    subprocess.run(command, cwd=cwd, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)


def milliseconds(data, children):
    """The time of each group; none of the processes named like one of `children`, whose work is not the program's."""
    script = ["perf", "script", "--input", data, "--fields", "comm,ip,sym,dso"]
    text = subprocess.run(script, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, errors="replace", check=True).stdout
    counts = collections.Counter()
    for sample in text.split("\n\n"):
        comm, *frames = sample.strip("\n").split("\n")
        if frames and comm.strip() not in children:
            counts[group(frames)] += 1
    if not counts.keys() - {OWN}:
        raise OSError("perf may not look into the kernel")
    return {name: counts[name] * 1000 / HERTZ for name in groups()}


def group(frames):
    """Where a sample belongs, by its frames from the innermost to the outermost."""
    kernel = [frame.split()[1].split("+")[0] for frame in frames if "[kernel" in frame]
    if not kernel:
        return next(iter(GROUPS)) if "/ld-linux" in frames[0] else OWN
    entry = next((name for name in reversed(kernel) if ENTRY.match(name)), kernel[-1])
    return next((name for name, pattern in GROUPS.items() if re.search(pattern, entry)), FILES)
