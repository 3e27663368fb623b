"""One producer's connection for each library and mode, driven in the same words: what the conformance suite runs on."""
