//! Runs one command with a deadline, limits and confinement, and leaves no process behind
