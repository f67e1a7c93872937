"""The kernel that every CodeHub process shares."""
