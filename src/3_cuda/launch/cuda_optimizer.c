/* Steps of optimizers (kernels/optimizer.cu). Variant, from the lowest bit: 5 row of the table, 1
   flag, 2 states, 5 x 4 dtypes (weight, three states, gradient), 2 log2 of N. */
#include "3_cuda/dvt_cuda.h"

#define DVTI_OPT_MOST 4 /* elements per access: 16 bytes of float32 */

DVTI_FN void dvti_cuda_describe_optimizer(uint64_t variant, dvti_text *text) {
    static const char *const name[] = {"W", "S0", "S1", "S2", "G"};
#define DVTI_ROW(name, kind, make, epsilon, few, many, states, flag, p0, p1, p2, p3, doc) #name,
    static const char *const rule[] = {DVTI_OPTIMIZER_TABLE(DVTI_ROW)};
#undef DVTI_ROW
    int k;
    dvti_text_add(text, "#define UPDATE dvti_gpu_update_%s\n", rule[variant & 31]);
    dvti_text_add(text, "#define FLAG %d\n", (int)(variant >> 5 & 1));
    dvti_text_add(text, "#define STATES %d\n", (int)(variant >> 6 & 3));
    for (k = 0; k < 5; k++)
        dvti_text_add(text, "#define D_%s %d\n", name[k], (int)(variant >> (8 + 4 * k) & 15));
    dvti_text_add(text, "#define N %d\n", 1 << (variant >> 28 & 3));
    dvti_cuda_add_functions(text, "optimizer_steps.inl");
}

/* Returns the row of args->f with these numbers, which it adds if there is none. -1: there is no
   space. */
static int dvti_cuda_opt_row(dvti_koptimizer *args, int *n_rows, const double *f) {
    double row[8];
    int i;
    memcpy(row, f, sizeof row);
    if (!(row[3] > 0))
        row[3] = (double)INFINITY;
    for (i = 0; i < *n_rows; i++)
        if (memcmp(args->f[i], row, sizeof row) == 0)
            return i;
    if (i == DVTI_KOPT_ROWS)
        return -1;
    memcpy(args->f[i], row, sizeof row);
    return (*n_rows)++;
}

/* Writes the arguments of as many parameters as fit, from updates[0] on. Returns their number. */
static int64_t dvti_cuda_opt_fill(dvti_koptimizer *args, const dvti_update_of *updates, int64_t n,
                                  int states, int64_t chunk) {
    const int64_t most = DVTI_KOPT_WORDS / (states + 3);
    int64_t done;
    int n_rows = 0, k;
    dvti_clear(args, sizeof *args);
    for (done = 0; done < n && done < most; done++) {
        const dvti_update_of *u = &updates[done];
        uint64_t *word = args->word + done * (states + 3);
        const int row = dvti_cuda_opt_row(args, &n_rows, u->f);
        if (row < 0)
            break;
        word[0] = (uint64_t)(uintptr_t)u->w;
        word[1] = (uint64_t)(uintptr_t)u->g;
        for (k = 0; k < states; k++)
            word[2 + k] = (uint64_t)(uintptr_t)u->state[k];
        word[2 + states] = (uint64_t)u->n | (uint64_t)row << DVTI_KOPT_ROW_BIT;
        args->chunks += (u->n + chunk - 1) / chunk;
    }
    return done;
}

/* Returns the elements that one access of this array can move, at most `each`. */
static int dvti_cuda_opt_each(int each, const void *data, dvt_dtype dtype) {
    const int size = (int)dvt_dtype_size(dtype);
    while (each * size > 16 || (uintptr_t)data % (uintptr_t)(each * size))
        each /= 2;
    return each;
}

/* The step of the launch's own arrays. */
static dvti_update_of dvti_cuda_opt_own(const dvti_launch *launch) {
    dvti_update_of u;
    int k;
    dvti_clear(&u, sizeof u);
    u.w = launch->out[0].data;
    u.g = launch->in[0].data;
    for (k = 1; k < launch->n_out; k++)
        u.state[k - 1] = launch->out[k].data;
    u.n = dvti_cuda_view_size(&launch->out[0]);
    memcpy(u.f, launch->f, sizeof u.f);
    return u;
}

DVTI_FN dvt_status dvti_cuda_optimizer(dvti_cuda_gpu *gpu, const dvti_launch *launch) {
    const dvti_update_of own = dvti_cuda_opt_own(launch);
    const dvti_update_of *updates = launch->n_updates ? launch->updates : &own;
    const int64_t n = DVTI_MAX(launch->n_updates, 1);
    const int states = launch->n_out - 1;
    dvt_dtype dtype[5]; /* weight, three states, gradient */
    dvti_cuda_program program = DVTI_CUDA_PROGRAM(optimizer);
    dvt_status status = DVT_OK;
    dvti_koptimizer args;
    int64_t i;
    int each = DVTI_OPT_MOST, k;
    program.variant = (uint64_t)((int)launch->op - DVTI_OPTIMIZER_BEGIN) |
                      (uint64_t)(launch->i[0] != 0) << 5 | (uint64_t)states << 6;
    for (k = 0; k < 5; k++) {
        dtype[k] = k == 4 ? launch->in[0].dtype : launch->out[k <= states ? k : 0].dtype;
        program.variant |= (uint64_t)dtype[k] << (8 + 4 * k);
    }
    for (i = 0; i < n; i++) {
        each = dvti_cuda_opt_each(each, updates[i].w, dtype[0]);
        each = dvti_cuda_opt_each(each, updates[i].g, dtype[4]);
        for (k = 0; k < states; k++)
            each = dvti_cuda_opt_each(each, updates[i].state[k], dtype[1 + k]);
    }
    program.variant |= (uint64_t)(each / 2) << 28; /* 4, 2, 1 */
    for (i = 0; i < n && status == DVT_OK;) {
        const int64_t chunk = 256 * each * 4;
        i += dvti_cuda_opt_fill(&args, updates + i, n - i, states, chunk);
        status = dvti_cuda_start(gpu, launch, &program, "dvti_optimizer",
                                 dvti_cuda_grid_for(gpu, args.chunks * chunk, 256, 4 * each), &args,
                                 sizeof args);
    }
    return status;
}

#undef DVTI_OPT_MOST
