"""What documents must be: canonical JSON, digests, envelope, delivery set, receipts, acknowledgements; no I/O."""
