"""What goes over the wire: bodies, problems and frames, and the documents made from them."""
