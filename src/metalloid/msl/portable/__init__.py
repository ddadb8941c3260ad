"""What Apple's Metal compiler would refuse in a text that clang accepts."""
