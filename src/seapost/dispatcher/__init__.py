"""The loops that claim, deliver, renew, settle and recover; one loop or pure piece per file."""
