"""Files that a user gives: told apart by their bytes, read in a process of their own."""
