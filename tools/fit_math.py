#!/usr/bin/env python3
"""Fits the polynomials of src/2_core/math and src/3_cpu/simd/math64.inl.

Prints their coefficients, lowest order first.

    tools/fit_math.py [NAME...]       needs mpmath; all of them take a few minutes

A fit minimizes the largest weighted error over an interval by Remez' exchange of reference points.
Then the coefficients are rounded to the type one after the other. The others are fitted again after
each rounding to compensate for it. The order is from the lowest up, from the highest down, or all
at once. The best result is printed with its error and with that of the unrounded polynomial.
"""
import sys

import numpy
from mpmath import mp, mpf

mp.dps = 45
POINTS = 400


def minimax(xs, g, w, powers):
    """Returns c that minimizes max |w (sum c_k x^k - g)| over the points, and that maximum."""
    n = len(powers) + 1
    pows = [[x ** p for p in powers] for x in xs]
    ref = [round((1 - mp.cos(mp.pi * i / (n - 1))) / 2 * (len(xs) - 1)) for i in range(n)]
    for _ in range(40):
        a = mp.matrix(n, n)
        b = mp.matrix(n, 1)
        for k, i in enumerate(ref):
            for j in range(n - 1):
                a[k, j] = pows[i][j]
            a[k, n - 1] = (-1) ** k / w[i]
            b[k] = g[i]
        c = list(mp.lu_solve(a, b))[:-1]
        err = [w[i] * (mp.fdot(c, pows[i]) - g[i]) for i in range(len(xs))]
        runs, start = [], 0
        for i in range(1, len(xs) + 1):  # the extreme point of each run of one sign
            if i == len(xs) or (err[i] > 0) != (err[start] > 0):
                runs.append(max(range(start, i), key=lambda j: abs(err[j])))
                start = i
        while len(runs) > n:
            runs.pop(0 if abs(err[runs[0]]) < abs(err[runs[-1]]) else -1)
        if len(runs) < n or runs == ref:
            break
        ref = runs
    return c, max(abs(e) for e in err)


def rounded(c, double):
    return mpf(float(c)) if double else mpf(float(numpy.float32(float(c))))


def best(low, high, g, w, degree, double=False, fixed=()):
    """Returns the errors of the rounded and of the unrounded polynomial, and the coefficients.

    `fixed`: given coefficients of the lowest orders.
    """
    middle, half = (mpf(low) + high) / 2, (mpf(high) - low) / 2
    xs = [middle - half * mp.cos(mp.pi * (i + mpf(1) / 3) / POINTS) for i in range(POINTS)]
    target = [g(x) for x in xs]
    weight = [w(x) for x in xs]
    tries = []
    for end in 0, -1, None:
        have = {k: mpf(v) for k, v in enumerate(fixed)}
        free, exact = list(range(len(fixed), degree + 1)), None
        while free:
            rest = [t - sum(c * x ** k for k, c in have.items()) for t, x in zip(target, xs)]
            c, e = minimax(xs, rest, weight, free)
            exact = exact or e
            if end is None:
                have.update((k, rounded(v, double)) for k, v in zip(free, c))
                break
            have[free.pop(end)] = rounded(c[end], double)
        error = max(abs(v * (sum(c * x ** k for k, c in have.items()) - t))
                    for v, t, x in zip(weight, target, xs))
        tries.append((error, exact, have))
    return min(tries, key=lambda t: t[0])


def fit(name, low, high, g, w, degree, double=False, fixed=()):
    error, exact, have = best(low, high, g, w, degree, double, fixed)
    print("%s: error 2^%.2f, unrounded 2^%.2f" % (name, mp.log(error, 2), mp.log(exact, 2)))
    form, suffix = ("%.17g", "") if double else ("%.9g", "f")
    print("    " + ", ".join(form % float(have[k]) + suffix for k in range(degree + 1)), flush=True)


def piece(low, high, center, g, degree, less=0):
    """Returns the errors and the coefficients of a polynomial in a - center, as `best` does.

    The coefficients are those of g - less; the error is relative to g.
    """
    middle, half = (mpf(low) + high) / 2, (mpf(high) - low) / 2
    xs = [middle - center - half * mp.cos(mp.pi * (i + mpf(1) / 3) / 100) for i in range(100)]
    target = [g(center + x) for x in xs]
    c, exact = minimax(xs, target, [1 / t for t in target], list(range(degree + 1)))
    c = [rounded(c[0] - less, False)] + [rounded(v, False) for v in c[1:]]
    return max(abs((mp.polyval(c[::-1], x) + less) / t - 1) for x, t in zip(xs, target)), exact, c


def pieces(name, edges, f, degree, first=0, odd=None, step=None, less=0):
    """Prints a polynomial in a - center with minimal relative error for each of eight pieces.

    The center is chosen among floats around the middle, so that the rounding error of the
    coefficients is minimal (they are almost floats, as in Gal's tables, 1986); or piece n has the
    center n * step. The first row has the centers, then there is one row per order. `first` is the
    index of the first piece in a row. With `odd` = f'(0) the first piece is less * a plus a times a
    polynomial, so that its center and its constant are 0.
    """
    columns = []
    for n, (low, high) in enumerate(zip(edges, edges[1:])):
        if odd and n == 0:
            error, exact, c = piece(low, high, mpf(0), over(f, odd), degree - 1, less)
            column = [mpf(0), mpf(0)] + c
        else:
            tries = []
            for j in [0] if step else range(-12, 13):
                center = rounded((mpf(low) + high) / 2 + (mpf(high) - low) * j / 1024, False)
                center = n * step if step else center
                error, exact, c = piece(low, high, center, f, degree)
                tries.append((error, exact, [center] + c))
            error, exact, column = min(tries, key=lambda t: t[0])
        print(
            "%s from %g: error 2^%.2f, unrounded 2^%.2f" %
            (name, low, mp.log(error, 2), mp.log(exact, 2)), flush=True)
        columns.append(column)
    for row in zip(*columns):
        texts = ("%.9g" % float(v) for v in row[-first:] + row[:-first])
        print("    {%s}," % ", ".join(v + "f" * ("." in v) for v in texts), flush=True)


def grid_step(f, low, high):
    """Returns the multiple of 2^-20 whose first four multiples have values closest to floats."""
    def distance(step):
        values = [f(n * step) for n in range(1, 5)]
        return max(abs(v / rounded(v, False) - 1) for v in values)

    return min((mpf(k) / 2 ** 20 for k in range(int(low * 2 ** 20), int(high * 2 ** 20))),
               key=distance)


def grid(name, step, f, degree, odd):
    """Prints the pieces around the multiples of `step`; the first is a plus a polynomial."""
    print("%s: step %.9gf, inverse %.9gf" % (name, step, rounded(1 / step, False)))
    edges = [mpf(0)] + [(n + mpf(1) / 2) * step for n in range(8)]
    pieces(name, edges, f, degree, 0, odd, step, 1)


def eighths():
    """Prints exp's tables: floats of 2^(i/8), their relative errors, and those for exponents."""
    powers = [mpf(2)**(mpf(i) / 8) for i in range(8)]
    floats = [rounded(p, False) for p in powers]
    scaled = []
    for i, power in enumerate(floats):  # 2^-32 2^(i/8), minus i in the bits above the lowest 20
        bits = numpy.float32(float(power)).view(numpy.int32) - (32 << 23) - (i << 20)
        scaled.append(numpy.int32(bits).view(numpy.float32))
    print("power:", ", ".join("%.9g" % float(v) for v in floats))
    print("residual:", ", ".join(
        "%.9g" % float(rounded(p / f - 1, False)) for p, f in zip(powers, floats)))
    print("scaled power:", ", ".join("%.9g" % v for v in scaled), flush=True)


def series(term, count=60):
    """Returns x -> the sum of term(k) x^k, for differences that cancel close to 0."""
    terms = [mpf(term(k)) for k in range(count)]
    return lambda x: mp.polyval(terms[::-1], x)


# exp(r) = 1 + r + r^2 P(r)
exp_tail = series(lambda k: 1 / mp.factorial(k + 2))
# log(1 + f) = f - f^2 / 2 + f^3 P(f)
log_series = series(lambda k: mpf(-1) ** k / (k + 3), 160)


def log_tail(f):
    return log_series(f) if abs(f) < 0.3 else (mp.log(1 + f) - f + f * f / 2) / f ** 3


# sin(r) = r + r z P(z), cos(r) = 1 - z / 2 + z^2 P(z), z = r^2
sin_tail = series(lambda k: mpf(-1) ** (k + 1) / mp.factorial(2 * k + 3))
cos_tail = series(lambda k: mpf(-1) ** k / mp.factorial(2 * k + 4))
# sinh(a) = a + a z P(z), erf(a) = a + a P(z), asin(a) = a + a z P(z)
sinh_tail = series(lambda k: 1 / mp.factorial(2 * k + 3))
erf_tail = series(lambda k: 2 / mp.sqrt(mp.pi) * mpf(-1)**k / mp.factorial(k) / (2 * k + 1) - (k ==
                                                                                               0))
asin_tail = series(lambda k: mp.binomial(2 * k + 2, k + 1) / mpf(4) ** (k + 1) / (2 * k + 3), 200)


def odd_tail(f, limit):
    """z -> (f(a) / a - 1) / z with a = sqrt z"""
    def tail(z):
        a = mp.sqrt(z)
        return (f(a) / a - 1) / z if z > mpf(10) ** -18 else limit
    return tail


atan_tail = odd_tail(mp.atan, mpf(-1) / 3)
H = mp.log(2) / 2
LOG = (mp.sqrt(mpf(1) / 2) - 1, mp.sqrt(2) - 1)
QUARTER = (mp.pi / 4 + mpf("0.0065")) ** 2  # with a margin for the rounding of the quotient


# math64.inl: log((1 + s) / (1 - s)) = 2 s + s z P(z), atan(a) = a + a z P(z), where z is the
# square; and mills with 5 instead of 4
log_odd = series(lambda k: mpf(2) / (2 * k + 3), 80)
atan_odd = series(lambda k: mpf(-1) ** (k + 1) / (2 * k + 3), 200)


# box_muller.inl: sine and cosine of t turns, |t| <= 1/8, z = t^2: t (6.28318548f + P(z)),
# 1 + z P(z)
TURN = mpf(1) / 64


def turn_sin(z):
    return mp.sin(2 * mp.pi * mp.sqrt(z)) / mp.sqrt(z) if z > mpf(10) ** -18 else 2 * mp.pi


def turn_cos(z):
    return (mp.cos(2 * mp.pi * mp.sqrt(z)) - 1) / z if z > mpf(10) ** -18 else -2 * mp.pi ** 2


def mills64(t):
    a = 10 / (1 + t) - 5
    return mp.erfc(a / mp.sqrt(2)) / 2 * mp.exp(a * a / 2) * (5 + a)


def over(f, limit):
    return lambda a: f(a) / a if abs(a) > mpf(10) ** -18 else mpf(limit)


def tail_of_normal(a):
    """Returns the lower tail of the normal distribution at -a, over exp(-a^2 / 2)."""
    return mp.erfc(a / mp.sqrt(2)) / 2 * mp.exp(a * a / 2)


def quarters(*counts):
    return [mpf(q) / 4 for q in counts]


def roots(*squares):
    return [mp.sqrt(z) for z in squares]


FITS = {
    # Tables of `lookup`: the entry at 8 belongs to the first piece when the bits of a + 0.75 or of
    # a^2 + 1.5 index the pieces.
    "tanh": lambda: pieces("tanh", quarters(0, 1, 3, 5, 9, 13, 21, 29, 37), mp.tanh, 7, 5, mpf(1)),
    "erf": lambda: grid("erf", grid_step(mp.erf, 0.5232, 0.5312), mp.erf, 6, 2 / mp.sqrt(mp.pi)),
    "tail": lambda: pieces("tail", roots(0, *(mpf(2) ** k - mpf("1.5") for k in range(1, 9))),
                           tail_of_normal, 7, 7),
    "exp": lambda: fit("exp", -H, H, exp_tail, lambda r: r * r / mp.exp(r), 5),
    "exp_eighth": lambda: fit("exp_eighth", -H / 8, H / 8, exp_tail, lambda r: r * r / mp.exp(r),
                              2),
    "eighths": lambda: eighths(),
    "sinh": lambda: fit("sinh", 0, 1, sinh_tail, lambda z: z, 3),
    "log": lambda: fit("log", *LOG, log_tail, lambda f: abs(f**3 / mp.log(1 + f)), 8),
    "sin": lambda: fit("sin", 0, QUARTER, sin_tail, lambda z: z, 2),
    "cos": lambda: fit("cos", 0, QUARTER, cos_tail, lambda z: z * z, 2),
    "asin": lambda: fit("asin", 0, mpf("0.25"), asin_tail, lambda z: z, 4),
    "atan": lambda: fit("atan", 0, 1, atan_tail, lambda z: z, 8),
    "turn_sin": lambda: fit("turn_sin", 0, TURN, lambda z: turn_sin(z) - rounded(2 * mp.pi, False),
                            lambda z: 1 / turn_sin(z), 3),
    "turn_cos": lambda: fit("turn_cos", 0, TURN, turn_cos, lambda z: z / mp.cos(2 * mp.pi * mp.sqrt(
        z)), 3),
    # pow's, in double: log2(1 + f) = f P(f); 2^r
    "log2_wide": lambda: fit("log2_wide", *LOG, lambda f: mp.log(1 + f, 2) / f, lambda f: f / mp.
                             log(1 + f, 2), 13, True),
    "exp2_wide": lambda: fit("exp2_wide",
                             mpf(-1) / 2,
                             mpf(1) / 2, lambda r: 2**r, lambda r: 2**-r, 7, True),
    "exp64": lambda: fit("exp64", -H, H, exp_tail, lambda r: abs(r * r / mp.expm1(r)), 10, True),
    "log64": lambda: fit("log64", 0, mpf("0.02945"), log_odd, lambda z: z / 2, 6, True),
    # pow's: P(z) = 2 / 3 + z R(z)
    "log_rest64": lambda: fit("log_rest64", 0, mpf("0.02945"),
                              series(lambda k: mpf(2) /
                                     (2 * k + 5), 80), lambda z: z * z / 2, 6, True),
    "sin64": lambda: fit("sin64", 0, QUARTER, sin_tail, lambda z: z, 5, True),
    "cos64": lambda: fit("cos64", 0, QUARTER, cos_tail, lambda z: z * z, 5, True),
    "asin64": lambda: fit("asin64", 0, mpf("0.25"), asin_tail, lambda z: z, 12, True),
    "atan64": lambda: fit("atan64", 0, mpf("0.17158"), atan_odd, lambda z: z, 10, True),
    "erf64": lambda: fit("erf64", 0, 1, erf_tail, lambda z: mpf(1), 12, True),
    "mills64": lambda: fit("mills64",
                           mpf(-34) / 44, 1, mills64, lambda t: 1 / mills64(t), 22, True),
}

if __name__ == "__main__":
    for name in sys.argv[1:] or FITS:
        FITS[name]()
