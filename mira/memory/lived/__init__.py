"""What a segment was, told by the assistant in the first person, and whether that is true."""
