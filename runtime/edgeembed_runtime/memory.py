"""Memory that loading a model needed and running it does not."""

import ctypes


def give_back_free_memory() -> None:
    """Hand what the C library keeps of freed memory back to the system, where it knows how to: glibc does."""
    try:
        trim = ctypes.CDLL(None).malloc_trim
    except (AttributeError, OSError, TypeError):  # another C library; Windows
        return
    trim(0)
