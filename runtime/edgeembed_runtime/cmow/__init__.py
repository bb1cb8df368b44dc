"""Students that look up and multiply matrices, and the file that holds one."""
