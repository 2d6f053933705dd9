"""The compactor's services on an embedded store and local files, without Spark."""
