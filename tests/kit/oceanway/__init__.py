"""Support for the tests of OceanWay."""
