/* Reports the ISA targets of this build that the machine cannot run: their kernels were not
   tested. */
#include "isa.h"

static bool runs(const char *name) {
    bool found = false;
    FOR_EACH_TARGET(found = found || strcmp(target->name, name) == 0);
    return found;
}

#if DVTI_AVX2
#if DVTI_AVX512
DVT_TEST(isa_avx512) {
    if (!runs("avx512"))
        SKIP("the processor has no AVX-512 (F, VL, DQ, BW): its kernels were not tested");
    CHECK(dvt_set_cpu_isa("avx512") == DVT_OK);
    CHECK_STR(dvt_cpu_isa(), "avx512");
    CHECK(dvt_set_cpu_isa(NULL) == DVT_OK);
}
#endif

DVT_TEST(isa_avx2) {
    if (!runs("avx2"))
        SKIP("the processor has no AVX2, FMA and F16C: those kernels were not tested");
    CHECK(dvt_set_cpu_isa("avx2") == DVT_OK);
    CHECK_STR(dvt_cpu_isa(), "avx2");
    CHECK(dvt_set_cpu_isa(NULL) == DVT_OK);
}
#endif

DVT_TEST(isa_reference) {
    CHECK(!runs("reference"));
    CHECK(dvt_set_cpu_isa("reference") == DVT_OK);
    CHECK_STR(dvt_cpu_isa(), "reference");
    CHECK(dvt_set_cpu_isa(NULL) == DVT_OK);
}
