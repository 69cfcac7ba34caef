"""Parts of `tools/bench/run`. Python's standard library only."""
