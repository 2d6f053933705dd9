"""From a snapshot to DataFrames, and from DataFrames to files. JVM-side plans only: no Python row on a hot path."""
