"""Shared by tests and benchmarks, not part of the product: real servers, deployments, fakes of ports."""
