"""The dispatcher: claims deliveries, calls consumers, believes receipts; one loop or pure piece per file."""
