"""Adapters to other libraries. Each module needs the library that it is named after."""
