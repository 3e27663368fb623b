"""Five databases: schemas, roles, and the release that all of them activate."""
