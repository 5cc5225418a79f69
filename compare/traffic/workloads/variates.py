"""Random variates that are the same on every machine.

They use only + - * / and NumPy's square root, in a fixed order; IEEE 754 defines how these round.
The logarithms and exponentials of the C library and of NumPy differ between machines in the last
bit.
"""

# ruff: noqa: ANN001, ANN202  # compiled functions are typed by their arguments
# mypy: disable-error-code="no-untyped-def, no-untyped-call"
import numpy as np
import numpy.typing as npt

from timers.kernels.jit import jit, long_entry

Floats = npt.NDArray[np.float64]

# Their sum is ln 2; fdlibm.
_LN2_HIGH, _LN2_LOW = 6.93147180369123816490e-01, 1.90821492927058770002e-10
_LN2 = _LN2_HIGH + _LN2_LOW
_SQRT_HALF = 0.7071067811865476
_ATANH = tuple(1.0 / (2 * k + 1) for k in range(12))
"""The series of atanh(s) / s in s**2, for s up to 0.1716: the next term is below 1e-19."""
_TERMS_OF_EXP = 14  # of the Taylor series up to ln(2)/2: the next is below 1e-17


def log(x: Floats) -> Floats:
    """Natural logarithm of positive doubles; relative error 4e-16, or absolute 1e-16 near 1."""
    mantissa, exponent = np.frexp(x)
    result = np.empty_like(mantissa)
    _log(mantissa, exponent, _ATANH, result)
    return result


@long_entry
def _log(mantissas, exponents, coefficients, result):
    for k in range(result.size):
        mantissa, exponent = mantissas[k], float(exponents[k])
        if mantissa < _SQRT_HALF:
            mantissa, exponent = 2.0 * mantissa, exponent - 1.0
        s = (mantissa - 1.0) / (mantissa + 1.0)
        series = _horner(s * s, coefficients)
        result[k] = exponent * _LN2_HIGH + (2.0 * s * series + exponent * _LN2_LOW)


def exp(x: Floats) -> Floats:
    """Exponential of doubles in (-700, 700); relative error 5e-16."""
    halvings = np.rint(x / _LN2)
    result = np.empty_like(halvings)
    _exp((x - halvings * _LN2_HIGH) - halvings * _LN2_LOW, result)
    return np.asarray(np.ldexp(result, halvings.astype(np.int32)))


@long_entry
def _exp(rests, result):
    for k in range(result.size):
        series = 1.0
        for term in range(_TERMS_OF_EXP, 0, -1):
            series = series * rests[k] / term + 1.0
        result[k] = series


def normal(u: Floats) -> Floats:
    """Quantile of the standard normal distribution for `u` in (0, 1); error about 1e-15.

    Wichura, Algorithm AS 241 (PPND16), Applied Statistics 37 (1988).
    """
    q = u - 0.5
    result = q * _ratio(0.180625 - q * q, 0)
    places = np.flatnonzero(np.abs(q) > _CENTRE_ENDS)
    far = u[places]
    tail = np.sqrt(-log(np.minimum(far, 1.0 - far)))
    value = np.where(tail <= _TAIL_BEGINS, _ratio(tail - 1.6, 1), _ratio(tail - 5.0, 2))
    result[places] = np.where(far < 0.5, -value, value)
    return np.asarray(result)


def _ratio(r: Floats, region: int) -> Floats:
    result = np.empty_like(r)
    _ratios(r, _PPND16[2 * region], _PPND16[2 * region + 1], result)
    return result


@long_entry
def _ratios(r, numerator, denominator, result):
    for k in range(r.size):
        result[k] = _horner(r[k], numerator) / _horner(r[k], denominator)


@jit
def _horner(x, coefficients):
    value = coefficients[-1]
    for k in range(len(coefficients) - 2, -1, -1):
        value = value * x + coefficients[k]
    return value


_CENTRE_ENDS, _TAIL_BEGINS = 0.425, 5.0
_COEFFICIENTS = """
3.3871328727963666080e0 1.3314166789178437745e2 1.9715909503065514427e3 1.3731693765509461125e4
4.5921953931549871457e4 6.7265770927008700853e4 3.3430575583588128105e4 2.5090809287301226727e3

1.0 4.2313330701600911252e1 6.8718700749205790830e2 5.3941960214247511077e3 2.1213794301586595867e4
3.9307895800092710610e4 2.8729085735721942674e4 5.2264952788528545610e3

1.42343711074968357734e0 4.63033784615654529590e0 5.76949722146069140550e0 3.64784832476320460504e0
1.27045825245236838258e0 2.41780725177450611770e-1 2.27238449892691845833e-2
7.74545014278341407640e-4

1.0 2.05319162663775882187e0 1.67638483018380384940e0 6.89767334985100004550e-1
1.48103976427480074590e-1 1.51986665636164571966e-2 5.47593808499534494600e-4
1.05075007164441684324e-9

6.65790464350110377720e0 5.46378491116411436990e0 1.78482653991729133580e0 2.96560571828504891230e-1
2.65321895265761230930e-2 1.24266094738807843860e-3 2.71155556874348757815e-5
2.01033439929228813265e-7

1.0 5.99832206555887937690e-1 1.36929880922735805310e-1 1.48753612908506148525e-2
7.86869131145613259100e-4 1.84631831751005468180e-5 1.42151175831644588870e-7
2.04426310338993978564e-15
"""
_PPND16 = [tuple(map(float, lines.split())) for lines in _COEFFICIENTS.split("\n\n")]
"""Numerator and denominator of the centre, the middle and the tail; the constant term first."""
