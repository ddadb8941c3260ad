"""The Metal Shading Language: text in, text and data out. Knows no device and runs nothing."""
