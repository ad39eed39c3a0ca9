/* Tests of elementwise loops of one float type E. test_loops.c includes it with

        T(name)           this type's function `name`
        OWN, COMPUTE      its dtype and its class
        LEAST             its smallest normal number
        SPECIAL           a list of its special values
        LOOP(target, op)  the loop of an ISA target
        ULPS(op)          the largest difference from the reference, in units of the last place */

/* Fills with ordinary and special numbers. */
static void T(fill)(E *to, int n) {
    static const E special[] = {SPECIAL};
    const double count = sizeof special / sizeof *special;
    int i;
    for (i = 0; i < n; i++)
        to[i] = i % 3 == 0 ? special[(int)dvt_test_random(0, count)] : (E)dvt_test_random(-4, 4);
}

static dvti_launch T(launch_of)(const op_row *row) {
    dvti_launch launch;
    memset(&launch, 0, sizeof launch);
    launch.kernel = dvti_kernel_elementwise();
    launch.op = row->op;
    launch.compute = COMPUTE;
    launch.n_in = row->operands;
    launch.n_out = 1;
    launch.f[1] = -1.5;
    launch.f[2] = 2.5;
    return launch;
}

static void T(reference)(const op_row *row, E *const *in, const int *step, double *out, int n) {
    static E result[LONGEST];
    dvti_launch launch = T(launch_of)(row);
    int k;
    for (k = 0; k < row->operands; k++)
        launch.in[k] = row_of(in[k], OWN, n, step[k]);
    launch.out[0] = row_of(result, OWN, n, 1);
    run_on("reference", &launch);
    for (k = 0; k < n; k++) /* far below 0 the reference's formula cancels, the kernels' does not */
        out[k] = row->op == DVTI_OP_gelu ? (double)GELU(in[0][k * step[0]]) : (double)result[k];
}

/* Compares values; zeros of both signs are equal. */
static bool T(near)(dvti_op op, double got, double expected) {
    double scale = fabs(expected) < LEAST ? LEAST : fabs(expected);
    return got == expected || (got != got && expected != expected) ||
           fabs(got - expected) <= ULPS(op) * EPSILON * scale;
}

/* Writes n results, as doubles, to `got`. */
static void T(check_run)(const dvti_simd *target, const op_row *row, const int *step, int n,
                         bool at_end, const guard *memory, E *const *in, const double *expected,
                         double *got, const double *first) {
    const dvt_dtype result = dvti_loop_dtype(row->op, OWN);
    dvti_loop loop;
    int k, i, bad = -1;
    memset(&loop, 0, sizeof loop);
    for (k = 0; k < row->operands; k++) {
        size_t bytes = sizeof(E) * (size_t)(step[k] ? n : 1);
        void *at = at_end ? guard_end(memory[k], bytes) : guard_start(memory[k]);
        memcpy(at, in[k], bytes);
        loop.in[k] = at;
        loop.step[k] = step[k];
    }
    loop.out = at_end ? guard_end(memory[3], (size_t)(dvt_dtype_size(result) * n))
                      : guard_start(memory[3]);
    loop.op = row->op;
    loop.n = n;
    loop.low = -1.5;
    loop.high = 2.5;
    LOOP(target, row->op)(&loop);
    for (i = 0; i < n; i++) {
        got[i] = dvti_load_f64(loop.out, result, i);
        if (!T(near)(row->op, got[i], expected[i]) || (first && !same_bits_f64(got[i], first[i])) ||
            (result == DVT_BOOL && ((uint8_t *)loop.out)[i] > 1))
            bad = i;
    }
    dvt_test_check(bad < 0, __FILE__, __LINE__,
                   "%s, %s, %d elements, steps %d %d: element %d, of %.17g, is %.17g, reference "
                   "%.17g, other ISA target %.17g",
                   target->name, row->name, n, step[0], step[1], bad,
                   bad < 0 ? 0 : (double)in[0][bad * step[0]], bad < 0 ? 0 : got[bad],
                   bad < 0 ? 0 : expected[bad], bad < 0 || !first ? 0 : first[bad]);
}

static void T(check_loops)(void) {
    static E operand[3][LONGEST];
    static double expected[LONGEST], first[LONGEST], got[LONGEST];
    E *in[3] = {operand[0], operand[1], operand[2]};
    guard memory[4] = {guard_new(sizeof operand[0]), guard_new(sizeof operand[0]),
                       guard_new(sizeof operand[0]), guard_new(sizeof operand[0])};
    int r, n, form, k;
    for (r = 0; r < ROWS; r++)
        for (n = 1; n <= LONGEST; n = n < 36 ? n + 1 : n + 47)
            for (form = 0; form < 1 << op_rows[r].operands; form++) {
                const int step[3] = {!(form & 1), !(form & 2), !(form & 4)};
                bool have_first = false;
                for (k = 0; k < 3; k++)
                    T(fill)(operand[k], LONGEST);
                T(reference)(&op_rows[r], in, step, expected, n);
                FOR_EACH_TARGET(if (LOOP(target, op_rows[r].op)) {
                    T(check_run)
                    (target, &op_rows[r], step, n, true, memory, in, expected,
                     have_first ? got : first, have_first ? first : NULL);
                    have_first = true;
                    T(check_run)
                    (target, &op_rows[r], step, n, false, memory, in, expected, got, first);
                });
            }
    for (n = 0; n < 4; n++)
        guard_free(memory[n]);
}

/* Operands: a matrix with a row, a column, one element, the transposed matrix, every second
   element, or another dtype. Results: the own dtype, another one and bool, contiguous or strided;
   one and two threads. The operations are exact, so the bits equal the reference's. */
static void T(check_launches)(void) {
    static const op_row rows[] = {{"add", DVTI_OP_add, 2},
                                  {"div", DVTI_OP_div, 2},
                                  {"maximum", DVTI_OP_maximum, 2},
                                  {"less", DVTI_OP_less, 2}};
    static E a[HEIGHT * WIDTH], b[2 * HEIGHT * WIDTH];
    static double expected[2 * HEIGHT * WIDTH], got[2 * HEIGHT * WIDTH];
    static OTHER others[HEIGHT * WIDTH];
    int r, form, i, threads;
    T(fill)(a, HEIGHT * WIDTH);
    T(fill)(b, 2 * HEIGHT * WIDTH);
    for (i = 0; i < HEIGHT * WIDTH; i++)
        others[i] = (OTHER)b[i];
    for (r = 0; r < 4; r++)
        for (form = 0; form < 10; form++) {
            static const int strides[10][2] = {{WIDTH, 1},  {0, 1},         {1, 0},     {0, 0},
                                               {1, HEIGHT}, {2 * WIDTH, 2}, {WIDTH, 1}, {WIDTH, 1},
                                               {WIDTH, 1},  {WIDTH, 1}};
            dvti_launch launch = T(launch_of)(&rows[r]);
            const dvt_dtype other = OWN == DVT_F64 ? DVT_F32 : DVT_F64;
            const dvt_dtype result = form == 7                                 ? other
                                     : rows[r].op == DVTI_OP_less && form != 9 ? DVT_BOOL
                                                                               : OWN;
            const int gap = form == 8 ? 2 : 1;
            launch.in[0] = matrix_of(a, OWN, WIDTH, 1);
            launch.in[1] = matrix_of(form == 6 ? (void *)others : (void *)b,
                                     form == 6 ? other : OWN, strides[form][0], strides[form][1]);
            if (form == 3) {
                launch.i[0] = 2;
                launch.f[0] = 1.25;
            }
            memset(expected, 0, sizeof expected);
            launch.out[0] = matrix_of(expected, result, gap * WIDTH, gap);
            run_on("reference", &launch);
            launch.out[0].data = got;
            FOR_EACH_TARGET(for (threads = 1; threads <= 2; threads++) {
                CHECK(dvt_set_num_threads(threads) == DVT_OK);
                memset(got, 0, sizeof got);
                run_on(target->name, &launch);
                CHECK(dvt_set_num_threads(0) == DVT_OK);
                for (i = 0; i < gap * HEIGHT * WIDTH; i++) {
                    double mine = dvti_load_f64(got, result, i);
                    double reference = dvti_load_f64(expected, result, i);
                    if (!same_bits_f64(mine, reference) && mine != reference)
                        break;
                }
                dvt_test_check(i == gap * HEIGHT * WIDTH, __FILE__, __LINE__,
                               "%s, %s, layout %d, %d threads: element %d", target->name,
                               rows[r].name, form, threads, i);
            });
        }
}

#undef E
#undef T
#undef OWN
#undef COMPUTE
#undef OTHER
#undef LEAST
#undef EPSILON
#undef SPECIAL
#undef LOOP
#undef ULPS
#undef GELU
