"""What the benchmarks of Docker and Kubernetes share: starting and stopping instances in turns."""
