"""Reading, checking and atomically writing files and folders."""
