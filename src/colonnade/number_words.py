"""Numbers as people read them: 1.2 MB, 4.0 %, 21,613; never with an exponent."""

import math

BYTE_UNITS = ("bytes", "kB", "MB", "GB", "TB", "PB")
# Digits that a value is shown with. What is below the smallest is what rounding leaves of 0; what is above the largest
# is told in trillions, and beyond a million of these it means nothing.
DIGITS = 4
SMALLEST, LARGEST, TOO_LARGE = 1e-12, 1e12, 1e18
# A share below this, in per cent, is told as less than it.
LEAST_PER_CENT = 0.001
SPANS = (("h", 3600.0), ("min", 60.0), ("s", 1.0))


def in_bytes(number: float) -> str:
    """Write how many bytes, in the unit that people would use.

    Parameters
    ----------
    number : float
        How many bytes.

    Returns
    -------
    str
        Two or three digits and the unit, in powers of 1,000.

    Examples
    --------
    >>> in_bytes(980), in_bytes(1_234_567), in_bytes(45_600), in_bytes(1)
    ('980 bytes', '1.2 MB', '45.6 kB', '1 byte')
    """
    if not math.isfinite(number):
        return value(number)
    if abs(number) < 999.5:
        return f"{number:,.0f} byte" + "s" * (round(number) != 1)
    power = min(int(math.log10(abs(number)) / 3), len(BYTE_UNITS) - 1)
    if power + 1 < len(BYTE_UNITS) and abs(number) >= 999.5 * 1000.0**power:
        power += 1  # 999,900 bytes are 1.0 MB, not 1,000 kB
    scaled = number / 1000.0**power
    digits = f"{scaled:.1f}" if abs(scaled) < 99.95 else count(scaled)
    return f"{digits} {BYTE_UNITS[power]}"


def per_cent(share: float) -> str:
    """Write a share, or a relative difference, in per cent.

    Parameters
    ----------
    share : float
        1 is 100 %.

    Returns
    -------
    str
        With one decimal; below 1 % with two digits.

    Examples
    --------
    >>> per_cent(0.04), per_cent(0.3821), per_cent(0.00042), per_cent(12.5), per_cent(1e-9)
    ('4.0 %', '38.2 %', '0.042 %', '1,250 %', 'under 0.001 %')
    """
    hundredths = 100 * share
    if not math.isfinite(hundredths):
        return f"{value(hundredths)} %"
    size = abs(hundredths)
    if size == 0:
        return "0 %"
    if size < LEAST_PER_CENT:
        return f"under {LEAST_PER_CENT} %" if share > 0 else f"above -{LEAST_PER_CENT} %"
    if size >= LARGEST:
        return f"{value(hundredths)} %"
    decimals = 0 if size >= 999.5 else 1 if size >= 0.995 else 1 - math.floor(math.log10(size))
    return f"{hundredths:,.{decimals}f} %"


def count(number: float) -> str:
    """Write how many there are; what is not whole is rounded.

    Examples
    --------
    >>> count(21613), count(2.6)
    ('21,613', '3')
    """
    return f"{round(number):,}" if abs(number) < LARGEST else value(number)


def value(number: float, digits: int = DIGITS) -> str:
    """Write a value in its own units, all of its whole part and as many digits as matter.

    Parameters
    ----------
    number : float
        Any, also infinite or none.
    digits : int
        How many digits matter.

    Returns
    -------
    str
        Without an exponent.

    Examples
    --------
    >>> value(0.123456), value(-1234567.8), value(12.5), value(0.0), value(2.5e-9), value(float("inf"))
    ('0.1235', '-1,234,568', '12.5', '0', '0.0000000025', 'infinite')
    """
    if math.isnan(number):
        return "unknown"
    if math.isinf(number):
        return "infinite" if number > 0 else "-infinite"
    size = abs(number)
    if size < SMALLEST:
        return "0"
    if size >= TOO_LARGE:
        return f"{'above ' if number > 0 else 'below -'}{TOO_LARGE / LARGEST:,.0f} trillion"
    if size >= LARGEST:
        return f"{value(number / LARGEST, digits)} trillion"
    decimals = max(0, digits - 1 - math.floor(math.log10(size)))
    return _trimmed(f"{number:,.{decimals}f}")


def duration(seconds: float) -> str:
    """Write how long something took.

    Examples
    --------
    >>> duration(0.0423), duration(3.21), duration(75), duration(7260)
    ('42 ms', '3.2 s', '1 min 15 s', '2 h 1 min')
    """
    if not math.isfinite(seconds) or abs(seconds) >= LARGEST:
        return f"{value(seconds)} s"
    if seconds < 0.9995:
        return f"{1000 * seconds:.0f} ms"
    if seconds < 59.5:
        return f"{seconds:.1f} s" if seconds < 9.95 else f"{seconds:.0f} s"
    unit, size = next((unit, size) for unit, size in SPANS if seconds >= size - 0.5)
    smaller, smaller_size = SPANS[SPANS.index((unit, size)) + 1]
    whole, rest = divmod(round(seconds / smaller_size), round(size / smaller_size))
    return f"{whole:,} {unit}" + f" {rest} {smaller}" * (rest > 0)


def _trimmed(text: str) -> str:
    return text.rstrip("0").rstrip(".") if "." in text else text
