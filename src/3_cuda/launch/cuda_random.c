/* Random numbers: kernel random (kernels/random.cu). */
#include "1_base/dvt_rng.h"
#include "3_cuda/dvt_cuda.h"

#define DVTI_CUDA_SHUFFLE_BLOCK 16384 /* most places that one block permutes */

/* In the same order as in kernels/random.cu. */
enum {
    DVTI_CUDA_UNIFORM,
    DVTI_CUDA_NORMAL,
    DVTI_CUDA_RANDINT,
    DVTI_CUDA_BERNOULLI,
    DVTI_CUDA_PERMUTATION
};

enum { DVTI_CUDA_PHILOX, DVTI_CUDA_THREEFRY, DVTI_CUDA_CURAND };

DVTI_FN void dvti_cuda_describe_random(uint64_t variant, dvti_text *text) {
    dvti_text_add(text, "#define D %d\n#define DIST %d\n#define GEN %d\n", (int)(variant & 15),
                  (int)(variant >> 4 & 15), (int)(variant >> 8 & 15));
    if ((variant & 15) != DVT_F64 && variant >> 4 == (DVTI_CUDA_NORMAL | DVTI_CUDA_PHILOX << 4))
        dvti_cuda_add_functions(text, "log.inl box_muller.inl");
}

static int dvti_cuda_distribution(dvti_op op) {
    switch ((int)op) {
    case DVTI_OP_normal:
        return DVTI_CUDA_NORMAL;
    case DVTI_OP_randint:
        return DVTI_CUDA_RANDINT;
    case DVTI_OP_bernoulli:
        return DVTI_CUDA_BERNOULLI;
    case DVTI_OP_permutation:
        return DVTI_CUDA_PERMUTATION;
    default:
        return DVTI_CUDA_UNIFORM;
    }
}

static dvti_cuda_program dvti_cuda_random_program(const dvti_launch *launch) {
    dvti_cuda_program program;
    int generator = launch->i[0] == DVTI_RNG_PHILOX     ? DVTI_CUDA_PHILOX
                    : launch->i[0] == DVTI_RNG_THREEFRY ? DVTI_CUDA_THREEFRY
                                                        : DVTI_CUDA_CURAND;
    program = DVTI_CUDA_PROGRAM(random);
    program.variant = (uint64_t)launch->out[0].dtype |
                      (uint64_t)dvti_cuda_distribution(launch->op) << 4 | (uint64_t)generator << 8;
    return program;
}

static dvt_status dvti_cuda_random_on(dvti_cuda_gpu *gpu, const dvti_launch *launch,
                                      const char *entry, dvti_cuda_grid grid,
                                      const dvti_krandom *args) {
    const dvti_cuda_program program = dvti_cuda_random_program(launch);
    return dvti_cuda_start(gpu, launch, &program, entry, grid, args, sizeof *args);
}

static dvt_status dvti_cuda_random_start(dvti_cuda_gpu *gpu, const dvti_launch *launch,
                                         const char *entry, const dvti_krandom *args) {
    return dvti_cuda_random_on(gpu, launch, entry, dvti_cuda_grid_for(gpu, args->threads, 256, 1),
                               args);
}

static dvti_krandom dvti_cuda_random_args(const dvti_launch *launch) {
    dvti_krandom args;
    dvti_clear(&args, sizeof args);
    args.out = launch->out[0].data;
    args.n = args.threads = launch->i[6];
    args.aligned = (uintptr_t)args.out % 16 == 0;
    args.key = (uint64_t)launch->i[1];
    args.place = (uint64_t)launch->i[3];
    args.first = launch->i[2];
    args.f0 = launch->f[0];
    args.f1 = launch->f[1];
    args.f2 = launch->f[2];
    args.low = launch->i[4];
    args.span = launch->i[5];
    return args;
}

/* ---- permutation ---- */
/* Returns the number of rounds. The longest chain of exchanges grows as e * log(n); 3.4 * log(n)
   exceeds it. */
static int64_t dvti_cuda_shuffle_rounds(int64_t n) {
    int64_t rounds = 16;
    for (; n > 1; n /= 2)
        rounds += 4;
    return rounds;
}

static dvt_status dvti_cuda_shuffle(dvti_cuda_gpu *gpu, const dvti_launch *launch) {
    dvti_krandom args = dvti_cuda_random_args(launch);
    dvti_cuda_grid one;
    dvt_status status;
    args.keys = (uint64_t *)launch->workspace;
    args.values = (int64_t *)(args.keys + args.n);
    args.left = (int *)(args.values + args.n);
    args.rounds = launch->plan.i;
    dvti_clear(&one, sizeof one);
    one.x = one.y = one.z = 1;
    one.threads = (int)DVTI_MIN(DVTI_MAX(dvti_cuda_power(args.n), 32), 1024);
    if (args.n <= DVTI_CUDA_SHUFFLE_BLOCK)
        return dvti_cuda_random_on(gpu, launch, "dvti_shuffle_block", one, &args);
    status = dvti_cuda_random_start(gpu, launch, "dvti_shuffle_start", &args);
    for (args.step = 0; args.step < args.rounds && status == DVT_OK; args.step++) {
        status = dvti_cuda_random_start(gpu, launch, "dvti_shuffle_claims", &args);
        if (status == DVT_OK)
            status = dvti_cuda_random_start(gpu, launch, "dvti_shuffle_settles", &args);
    }
    one.threads = 1;
    return status != DVT_OK ? status
                            : dvti_cuda_random_on(gpu, launch, "dvti_shuffle_end", one, &args);
}

/* Sorts by random keys, as often as the CPU does. */
static dvt_status dvti_cuda_jax_shuffle(dvti_cuda_gpu *gpu, const dvti_launch *launch) {
    dvti_krandom args = dvti_cuda_random_args(launch);
    int64_t rounds = (int64_t)ceil(3 * log((double)DVTI_MAX(args.n, 1)) / log(4294967295.0));
    dvti_cuda_sorting sorting;
    dvt_status status = DVT_OK;
    uint32_t key[2], next[4];
    int k;
    sorting = dvti_cuda_sort_begin(launch->workspace, args.n, 32);
    args.wide = sorting.wide;
    key[0] = (uint32_t)(args.key >> 32);
    key[1] = (uint32_t)args.key;
    for (args.step = 0; args.step < rounds && status == DVT_OK; args.step++) {
        for (k = 0; k < 4; k++)
            next[k] = dvti_jax_word(key, 4, k);
        args.key = (uint64_t)next[2] << 32 | next[3];
        key[0] = next[0];
        key[1] = next[1];
        args.keys = (uint64_t *)sorting.keys;
        status = dvti_cuda_random_start(gpu, launch, "dvti_shuffle_keys", &args);
        if (status == DVT_OK)
            status = dvti_cuda_sort(gpu, launch, &sorting, 32);
        args.values = (int64_t *)sorting.values;
    }
    return status == DVT_OK ? dvti_cuda_random_start(gpu, launch, "dvti_shuffle_copy", &args)
                            : status;
}

/* ---- the launch ---- */
DVTI_FN dvt_status dvti_cuda_random(dvti_cuda_gpu *gpu, const dvti_launch *launch) {
    dvti_krandom args = dvti_cuda_random_args(launch);
    bool pairs = launch->op == DVTI_OP_randint ||
                 (launch->out[0].dtype == DVT_F64 && launch->op != DVTI_OP_bernoulli);
    if (launch->i[0] == DVTI_RNG_MT19937)
        return dvti_fail(DVT_ERR_UNSUPPORTED,
                         "%s: a Mersenne twister was asked for on a GPU; it runs on cpu() only: "
                         "create the array there and copy it with dvt_copyto",
                         launch->name);
    if (launch->op == DVTI_OP_permutation)
        return launch->i[0] == DVTI_RNG_THREEFRY ? dvti_cuda_jax_shuffle(gpu, launch)
                                                 : dvti_cuda_shuffle(gpu, launch);
    if (launch->i[0] == DVTI_RNG_PHILOX)
        args.threads = (args.n - 1) / (pairs ? 2 : 4) + 1;
    if (launch->i[0] == DVTI_RNG_CURAND) {
        args.step = (args.n - 1) / launch->i[4] + 1;
        args.starts = launch->n_in ? (const int64_t *)launch->in[0].data : NULL;
    }
    return dvti_cuda_random_start(gpu, launch, "dvti_random", &args);
}

/* launch->plan.i: the rounds of a permutation that Philox draws. */
DVTI_FN int64_t dvti_cuda_plan_random(const dvti_cuda_gpu *gpu, dvti_launch *launch) {
    int64_t n = launch->i[6], bytes;
    (void)gpu;
    if (launch->op != DVTI_OP_permutation)
        return 0;
    if (launch->i[0] == DVTI_RNG_THREEFRY)
        return dvti_cuda_sort_bytes(n, 32);
    launch->plan.i = dvti_cuda_shuffle_rounds(n);
    return dvti_mul(n, 16, &bytes) ? bytes + (launch->plan.i + 1) * 4 : INT64_MAX;
}

#undef DVTI_CUDA_SHUFFLE_BLOCK
