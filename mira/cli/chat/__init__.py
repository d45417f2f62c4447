"""`mira chat`: the conversation in a terminal, or through a pipe.

command      arguments, and which of the two it is
line         the WebSocket: signs in, comes back when it breaks, resumes where it was
reply        what has been said in a turn so far, put together from its events
once         one message, one answer, for pipes and programs
talk         the interactive conversation
screen       what is shown: the thread above, what changes below
editor       the line being typed; keys are told from bytes in `keys`
slash        the commands that begin with a slash
"""
