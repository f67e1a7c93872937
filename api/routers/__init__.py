"""The routes, one module per resource: they parse requests, call services and queries, and serialize."""
