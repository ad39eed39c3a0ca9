/* Kernels compute whole vectors. Unused lanes must not raise floating-point exceptions, which some
   programs turn into signals. */
#include <fenv.h>

#include "isa.h"

static void check_quiet(const char *isa, const char *what, dvt_array *result) {
    int raised = fetestexcept(FE_INVALID | FE_DIVBYZERO | FE_OVERFLOW);
    dvt_test_check(result && !raised, __FILE__, __LINE__, "%s, %s: exceptions %#x", isa, what,
                   (unsigned)raised);
    feclearexcept(FE_ALL_EXCEPT);
}

static void check_length(const char *isa, int64_t n, dvt_dtype dtype) {
    dvt_array *x = dvt_full(DVT_SHAPE(n), 0.75, dtype, dvt_cpu());
    dvt_array *rows = dvt_full(DVT_SHAPE(4, n), 0.75, dtype, dvt_cpu());
    feclearexcept(FE_ALL_EXCEPT);
    check_quiet(isa, "div", dvt_div(x, x));
    check_quiet(isa, "floor_div", dvt_floor_div(x, x));
    check_quiet(isa, "mod", dvt_mod(x, x));
    check_quiet(isa, "div_scalar", dvt_div_scalar(x, 3));
    check_quiet(isa, "scalar_div", dvt_scalar_div(3, x));
    check_quiet(isa, "reciprocal", dvt_reciprocal(x));
    check_quiet(isa, "rsqrt", dvt_rsqrt(x));
    check_quiet(isa, "log", dvt_log(x));
    check_quiet(isa, "pow", dvt_pow(x, x));
    check_quiet(isa, "atan2", dvt_atan2(x, x));
    check_quiet(isa, "mean", dvt_mean(rows, DVT_AXES(1)));
    check_quiet(isa, "norm", dvt_norm(rows, DVT_AXES(0)));
    check_quiet(isa, "var", dvt_var(rows, DVT_AXES(1), 0));
}

DVT_TEST(idle_lanes_raise_no_exceptions) {
    static const int64_t lengths[] = {1, 3, 7, 15, 17, 31};
    size_t i;
    FOR_EACH_TARGET({
        CHECK(dvt_set_cpu_isa(target->name) == DVT_OK);
        for (i = 0; i < sizeof lengths / sizeof *lengths; i++)
            DVT_SCOPE {
                check_length(target->name, lengths[i], DVT_F32);
                check_length(target->name, lengths[i], DVT_F64);
            }
    });
    CHECK(dvt_set_cpu_isa(NULL) == DVT_OK);
}
