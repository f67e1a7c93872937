"""Tests of the images that `make images` builds, in a real engine."""
