"""Tests of the REST API on real servers."""
