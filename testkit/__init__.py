"""Shared by tests and benchmarks: real servers, deployments, fakes of ports. Not part of the product."""
