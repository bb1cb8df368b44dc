"""The command line: one file a command, each a thin shell over one public function."""
