"""OceanWay: a metered, prepaid run from reservation to receipt, over five fact databases."""
