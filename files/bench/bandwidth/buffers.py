"""How large the buffers are that the kernels run over."""

PERIOD = 1024  # the pattern repeats 0/1024 .. 1023/1024: exact in float32, and so is its sum
CACHE_MULTIPLE = 4  # a smaller buffer would partly be served from the cache


class CannotMeasure(Exception):
    """There is no figure to be had; the message says why and what to do."""


def buffer_bytes(asked: int | None, cache: int, free: int, ceiling: int) -> int:
    """Return the size of one buffer, a whole number of patterns.

    Two buffers and a comparison's temporary must fit, so by default one takes at most a quarter
    of what is free. Raises CannotMeasure where that is less than four times the cache.
    """
    size = asked if asked is not None else min(ceiling, free // 4)
    size -= size % (4 * PERIOD)  # whole patterns of four-byte values
    if size < max(CACHE_MULTIPLE * cache, 4 * PERIOD):
        raise CannotMeasure(
            f"a buffer of {size:,} bytes ({free:,} are free) is less than {CACHE_MULTIPLE} times "
            f"the {cache:,} bytes of last-level cache: stop what holds the memory, or ask for more"
        )
    return size
