/* The functions of floats that this room has: whoever computes in float32 uses them, so that a result does not depend on the device. Not
   the reference loops, which have the C library's. */
#ifndef DVTI_FUNCTIONS_H
#define DVTI_FUNCTIONS_H

/* Rows of the op table: name, the files that it needs behind basics.inl, in their order. */
#define DVTI_FUNCTIONS1(R)                                                                         \
    R(exp, "exp.inl")                                                                              \
    R(exp2, "exp.inl")                                                                             \
    R(expm1, "exp.inl")                                                                            \
    R(log, "log.inl")                                                                              \
    R(log2, "log.inl")                                                                             \
    R(log10, "log.inl")                                                                            \
    R(log1p, "log.inl")                                                                            \
    R(sin, "quarter_turns.inl angles.inl")                                                         \
    R(cos, "quarter_turns.inl angles.inl")                                                         \
    R(tan, "quarter_turns.inl angles.inl")                                                         \
    R(asin, "arcs.inl")                                                                            \
    R(acos, "arcs.inl")                                                                            \
    R(atan, "arcs.inl")                                                                            \
    R(sinh, "exp.inl")                                                                             \
    R(cosh, "exp.inl")                                                                             \
    R(tanh, "exp.inl pieces.inl")                                                                  \
    R(sigmoid, "exp.inl")                                                                          \
    R(softplus, "exp.inl log.inl softplus.inl")                                                    \
    R(erf, "exp.inl pieces.inl")                                                                   \
    R(gelu, "exp.inl pieces.inl")
#define DVTI_FUNCTIONS2(R)                                                                         \
    R(pow, "log.inl powers.inl")                                                                   \
    R(atan2, "arcs.inl")                                                                           \
    R(hypot, "log.inl powers.inl")

#endif
