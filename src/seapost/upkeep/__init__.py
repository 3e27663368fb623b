"""What keeps a database fit for years: bootstrap, partitions, retention and the restore drill."""
