"""The worker process: workflows, activities and the event relay."""
