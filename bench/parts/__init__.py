"""Parts of `bench/run`. Python's standard library only."""
