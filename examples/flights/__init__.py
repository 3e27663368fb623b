"""The flights that left New York in 2013, delivered to two consumers while processes die under them."""
