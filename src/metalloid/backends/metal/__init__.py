"""Apple GPUs, by Metal's own compiler."""
