"""From the text of a kernel to a program."""
