"""The command line: one module a command, each imported only when it is called.

Commands speak HTTP to the running server, which they find by two files in `MIRA_HOME`
(`mira.cli.place`). Where none runs, those that can start what they need themselves
(`mira.cli.house`). What is read by programs is JSON, with `--json`, on standard output; whatever
is meant for people alone goes to standard error when standard output is for a program.

Exit codes:

    0    done
    1    refused or failed: the sentence on standard error says why; `doctor` found a fault
    2    wrong usage, or the start was refused
    3    the server cannot be reached, or something that it stands on is away
    130  interrupted with Ctrl-C
"""
