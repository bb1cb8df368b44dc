"""Search indexes of documents."""
