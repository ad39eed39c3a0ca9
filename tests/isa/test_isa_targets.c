/* Reports the ISA targets of this build that the machine cannot run: their kernels were not
   tested. */
#include "isa.h"
#include <sys/wait.h>

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

/* ---- DEVTENSOR_ISA, which a process reads once ---- */
static int warnings;

static void count_warnings(void *user, dvt_log_level level, const char *message) {
    (void)user;
    (void)message;
    warnings += level == DVT_LOG_WARNING;
}

/* In a process of its own (below), by its environment; in this one the best. */
DVT_TEST(isa_of_this_environment) {
    const char *expected = getenv("DVT_TEST_ISA"), *warned = getenv("DVT_TEST_ISA_WARNINGS");
    const dvti_simd *target[4];
    const char *best = dvti_simd_targets(target) ? target[0]->name : "reference";
    if (!expected && getenv("DEVTENSOR_ISA"))
        SKIP("DEVTENSOR_ISA is set for all tests");
    dvt_set_logger(count_warnings, NULL);
    CHECK_STR(dvt_cpu_isa(), expected ? expected : best);
    CHECK_INT(warnings, warned ? atoi(warned) : 0);
    dvt_set_logger(NULL, NULL);
}

/* Returns the exit status of that test in a process with this DEVTENSOR_ISA. */
static int status_with(const char *isa, const char *expected, const char *warned) {
    int status = -1;
    pid_t child;
    fflush(NULL);
    child = fork();
    if (child == 0) {
        setenv("DEVTENSOR_ISA", isa, 1);
        setenv("DVT_TEST_ISA", expected, 1);
        setenv("DVT_TEST_ISA_WARNINGS", warned, 1);
        if (freopen("/dev/null", "w", stdout))
            execl("/proc/self/exe", "tests", "isa_of_this_environment", (char *)NULL);
        _exit(127);
    }
    return child > 0 && waitpid(child, &status, 0) == child ? status : -1;
}

DVT_TEST(isa_of_the_environment) {
    const dvti_simd *target[4];
    const char *best = dvti_simd_targets(target) ? target[0]->name : "reference";
    if (getenv("DVT_TEST_EMULATED") || access("/proc/self/exe", X_OK) != 0)
        SKIP("the program cannot start itself here");
    FOR_EACH_TARGET(CHECK_INT(status_with(target->name, target->name, "0"), 0));
    CHECK_INT(status_with("reference", "reference", "0"), 0);
    CHECK_INT(status_with("mmx", best, "1"), 0);
    CHECK_INT(status_with("", best, "0"), 0);
    CHECK(status_with("reference", "mmx", "0") != 0); /* the test can fail */
}
