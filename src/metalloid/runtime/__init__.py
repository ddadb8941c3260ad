"""The device contract, and what all devices share."""
