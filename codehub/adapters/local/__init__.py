"""Everything on this machine, without Docker: directories, process groups, subprocesses."""
