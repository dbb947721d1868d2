"""The table of units: names, quantities and sizes, with the prefixes of the International System of Units.

Names of more than two letters are matched in any case, singular or plural; symbols exactly first: ``Mm`` is a megameter
and ``mm`` a millimeter. A unit that is a product of others, such as the newton, is written with base units.
"""

from __future__ import annotations

from fractions import Fraction

_TABLE = """
length 1: m meter metre 米
length 0.0254: in inch inche
length 0.3048: ft foot feet
length 0.9144: yd yard
length 1609.344: mi mile
length 0.01: 厘米
length 0.1: 分米
length 0.001: 毫米
length 1000: 千米 公里
mass 1: g gram gramme gm 克
mass 1000: kilo 千克 公斤
mass 1000000: t ton tonne 吨
mass 453.59237: lb lbs pound
mass 28.349523125: oz ounce
time 1: s sec second 秒
time 60: min minute 分钟
time 3600: h hr hour 小时
time 86400: day 天
time 604800: week
month 1: month
month 12: year yr
money 1: dollar usd
money 0.01: cent
euro 1: euro eur
rupee 1: rupee
yuan 1: 元 yuan
yuan 0.1: 角
current 1: A amp ampere
temperature 1: K kelvin
substance 1: mol mole
data 1: bit
data 8: B byte
decibel 1: dB decibel
celsius 1: °C celsius
fahrenheit 1: °F fahrenheit
"""
_PRODUCTS = """
N newton: kg m s^-2
J joule: kg m^2 s^-2
W watt: kg m^2 s^-3
Pa pascal: kg m^-1 s^-2
Hz hertz: s^-1
C coulomb: A s
V volt: kg m^2 s^-3 A^-1
Ω ohm: kg m^2 s^-3 A^-2
F farad: A^2 s^4 kg^-1 m^-2
H henry henries: kg m^2 s^-2 A^-2
T tesla: kg s^-2 A^-1
Wb weber: kg m^2 s^-2 A^-1
l L liter litre 升: dm^3
mph: mi h^-1
kph kmh kmph: km h^-1
mps: m s^-1
"""
_SIZES = """
bar: 100000 Pa
atm atmosphere: 101325 Pa
eV electronvolt: 1.602176634e-19 J
cal calorie: 4.184 J
acre: 4046.8564224 m^2
ha hectare: 10000 m^2
cc: 1 cm^3
毫升: 1 ml
Wh: 3600 J
"""
_PREFIXES = """
T tera 12
G giga 9
M mega 6
k kilo 3
d deci -1
c centi -2
m milli -3
μ micro -6
n nano -9
p pico -12
"""
_PREFIXED_SYMBOLS = "m g s l L A K mol N J W Pa Hz C V Ω F H T Wb eV cal Wh B bit bar"
_PREFIXED_NAMES = (
    "meter metre gram second liter litre ampere kelvin mole newton joule watt pascal hertz coulomb volt ohm farad "
    "henry tesla weber calorie byte bit electronvolt"
)
_NO_SYMBOLS = frozenset(["dB", "cd", "pl", "dm^3"])  # symbols that would have another meaning

Measures = tuple[tuple[str, int], ...]


def read_table() -> dict[str, tuple[Measures, Fraction]]:
    """Return the measures (pairs of a quantity and its power) and the factor of each unit by name or symbol."""
    units: dict[str, tuple[Measures, Fraction]] = {}
    for line in _TABLE.strip().splitlines():
        head, names = line.split(":")
        quantity, size = head.split()
        units.update(dict.fromkeys(names.split(), (((quantity, 1),), Fraction(size))))
    _add_prefixes(units)
    for line in _PRODUCTS.strip().splitlines():
        names, product = line.split(":")
        units.update(dict.fromkeys(names.split(), _product(product, units)))
    for line in _SIZES.strip().splitlines():
        names, size = line.split(":")
        number, product = size.split(maxsplit=1)
        _add_prefixes(units)
        measures, factor = _product(product, units)
        units.update(dict.fromkeys(names.split(), (measures, Fraction(number) * factor)))
    _add_prefixes(units)
    return units


def _add_prefixes(units: dict[str, tuple[Measures, Fraction]]) -> None:
    """Add the units with a prefix, such as km and kilometer; a name that is in the table already is kept."""
    for line in _PREFIXES.strip().splitlines():
        symbol, prefix, power = line.split()
        size = Fraction(10) ** int(power)
        for names, before in ((_PREFIXED_SYMBOLS, symbol), (_PREFIXED_NAMES, prefix)):
            for name in names.split():
                if name in units and before + name not in _NO_SYMBOLS:
                    measures, factor = units[name]
                    units.setdefault(before + name, (measures, factor * size))


def _product(text: str, units: dict[str, tuple[Measures, Fraction]]) -> tuple[Measures, Fraction]:
    measures: dict[str, int] = {}
    factor = Fraction(1)
    for part in text.split():
        name, _, power = part.partition("^")
        exponent = int(power or 1)
        quantities, size = units[name]
        factor *= size**exponent
        for quantity, times in quantities:
            measures[quantity] = measures.get(quantity, 0) + times * exponent
    return tuple(sorted((quantity, power) for quantity, power in measures.items() if power)), factor


UNITS = read_table()
