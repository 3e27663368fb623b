"""A Django project that places orders and writes invoices: append and inbox inside Django's own transactions."""
