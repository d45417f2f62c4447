"""The tools. One file each; what a tool is, is said in `mira.toolkit`."""
