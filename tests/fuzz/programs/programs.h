/* Random programs of API calls, run in several worlds that must agree. See README.md in this
   directory.

   A program is a list of calls. A call is the index of an operation and FUZZ_ARGS bytes. The
   operation decodes its arguments from these by the state of the world (shapes, dtypes, slots),
   which is the same in all worlds. A world is a way to run a program: contexts, ISA target,
   threads, faults. The first world records the effect of every call; the others compare. */
#ifndef DVT_FUZZ_PROGRAMS_H
#define DVT_FUZZ_PROGRAMS_H
#include "devtensor_spine.h"
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FUZZ_ARGS 12
#define FUZZ_CALLS 64
#define FUZZ_SLOTS 12
#define FUZZ_OBJECTS 64
#define FUZZ_GUARDS 4

typedef struct fuzz_call {
    uint16_t op;
    uint8_t arg[FUZZ_ARGS];
} fuzz_call;

typedef struct fuzz_program {
    int n;
    fuzz_call call[FUZZ_CALLS];
} fuzz_program;

/* ---- the model: strided views of buffers whose elements are float64 or int64 ---- */
typedef union fuzz_value {
    double d;
    int64_t i;
} fuzz_value;

typedef struct fuzz_buffer {
    int references;
    int64_t n;
    fuzz_value *v;
    bool gradient; /* backward writes it: read it again */
} fuzz_buffer;

typedef struct fuzz_view {
    fuzz_buffer *buffer;
    int64_t offset;
    dvt_shape shape;
    int64_t stride[DVT_MAX_DIMS];
    dvt_dtype dtype;
    dvt_ctx ctx;
    bool repeats; /* or is a view of one that does: must not be written */
} fuzz_view;

/* An array in a slot. depth: the scope that owns it, -1 for none. */
typedef struct fuzz_object {
    dvt_array *x;
    fuzz_view view;
    int depth, retains;
} fuzz_object;

/* ---- records of a world ---- */
typedef enum fuzz_kind { FUZZ_CODE, FUZZ_ARRAY, FUZZ_TEXT } fuzz_kind;

typedef struct fuzz_item {
    fuzz_kind kind;
    int call, code;
    dvt_shape shape;
    dvt_dtype dtype;
    int64_t at, n; /* values; the hash of a text */
    uint64_t hash;
} fuzz_item;

typedef struct fuzz_trace {
    fuzz_item *item;
    int n, capacity;
    fuzz_value *value;
    int64_t n_values, capacity_values;
} fuzz_trace;

typedef enum fuzz_compare {
    FUZZ_RECORD, /* the first world */
    FUZZ_BITS,   /* must be equal bit for bit, except for the bits of NaN */
    FUZZ_NEAR,   /* must be within the tolerance of each operation */
    FUZZ_ALONE   /* may fail for lack of memory where the first did not; then only invariants are
                    checked */
} fuzz_compare;

typedef struct fuzz_config {
    const char *name, *isa;
    int threads;
    bool gpu;
    fuzz_compare compare;
    int64_t limit; /* of each virtual GPU's memory; 0: no limit */
    bool faults;   /* some allocations fail */
} fuzz_config;

/* Allowed difference in FUZZ_NEAR: none; units in the last place; a multiple of epsilon times the
   largest sum of absolute terms (see fuzz_scale); not compared. */
typedef enum fuzz_bound { FUZZ_EXACT, FUZZ_ULPS, FUZZ_SCALED, FUZZ_SHAPE_ONLY } fuzz_bound;

typedef struct fuzz_world fuzz_world;
typedef struct fuzz_op fuzz_op;

struct fuzz_op {
    const char *name;
    void (*call)(fuzz_world *w, const fuzz_op *op);
    void (*function)(void);
    int weight;
    int rule; /* index in the family that `call` implements */
    fuzz_bound bound;
    double tolerance;
};

/* The model's prediction of a result before the call. */
typedef struct fuzz_expectation {
    bool must_work;  /* fails only for lack of memory */
    dvt_status code; /* DVT_OK: unknown */
    bool shape_known, dtype_known;
    dvt_shape shape;
    dvt_dtype dtype;
    dvt_ctx ctx;
    bool ctx_known;
    fuzz_view view;    /* buffer != NULL: a view of that buffer */
    bool copies;       /* or a copy of that view */
    fuzz_value *value; /* NULL or C-order values, freed by fuzz_result */
    double slack;      /* of value, as a multiple of `scale` times epsilon; 0: equal */
    double scale;      /* the largest sum of absolute terms */
} fuzz_expectation;

struct fuzz_world {
    const fuzz_config *config;
    fuzz_trace *trace; /* to record, or to compare with */
    int at;            /* in trace */
    bool free_running; /* FUZZ_ALONE after its first difference */
    bool differs;      /* this call may succeed where the recorded one failed: indices on GPUs are
                          clamped */
    bool wild; /* some value is large or not finite: gradients are not compared with the reference's
                */
    bool lenient; /* NULL may come without an error */
    int number;   /* of the call */
    const fuzz_call *call;
    int cursor;
    const fuzz_op *op;
    fuzz_object object[FUZZ_OBJECTS];
    int slot[FUZZ_SLOTS];
    fuzz_expectation expect;
    dvt_scope_guard scope[FUZZ_GUARDS];
    dvt_record_guard record[FUZZ_GUARDS];
    dvt_ctx_guard context[FUZZ_GUARDS];
    int scopes, records, contexts;
    dvt_block *net[2];
    int kind[2]; /* of the networks */
    dvt_trainer *trainer[2];
    bool failed;
    char why[600];
    uint64_t random;
    int64_t calls, worked;
};

/* ---- model.c ---- */
extern int fuzz_verbose;
extern int64_t fuzz_op_calls[512], fuzz_op_worked[512]; /* in the first world */
int64_t fuzz_size(const dvt_shape *shape);
double fuzz_epsilon(dvt_dtype dtype);
/* Rounds as the dtype stores it. */
fuzz_value fuzz_store(dvt_dtype dtype, double d, int64_t i);
fuzz_value fuzz_convert(fuzz_value v, dvt_dtype from, dvt_dtype to);
double fuzz_number(fuzz_value v, dvt_dtype dtype);
bool fuzz_same(fuzz_value a, fuzz_value b, dvt_dtype dtype);
fuzz_view fuzz_new_view(dvt_shape shape, dvt_dtype dtype, dvt_ctx ctx);
void fuzz_drop_view(fuzz_view *view);
fuzz_view fuzz_share(const fuzz_view *view);
/* Returns element number k in C order. */
fuzz_value *fuzz_at(const fuzz_view *view, int64_t k);
/* Returns the elements in C order; the caller frees them. */
fuzz_value *fuzz_values(const fuzz_view *view);
void fuzz_decode(const void *bytes, dvt_dtype dtype, int64_t n, fuzz_value *out);
void fuzz_encode(const fuzz_value *v, dvt_dtype dtype, int64_t n, void *bytes);
bool fuzz_is_c_order(const fuzz_view *view);
bool fuzz_broadcast(const dvt_shape *a, const dvt_shape *b, dvt_shape *out);
fuzz_view fuzz_broadcast_view(const fuzz_view *view, const dvt_shape *shape);
/* Returns the largest magnitude; infinity when one is not finite. */
double fuzz_largest(const fuzz_view *view);

/* ---- world.c ---- */
void fuzz_fail(fuzz_world *w, const char *format, ...) DVT_PRINTF(2, 3);
uint8_t fuzz_byte(fuzz_world *w);
/* Picks an object by the next byte. NULL (one byte in 64, or an empty world) is an object without
   an array. */
fuzz_object *fuzz_pick(fuzz_world *w);
/* Picks another object: usually on a's context, with a shape that broadcasts with a's. */
fuzz_object *fuzz_pick_like(fuzz_world *w, const fuzz_object *a, bool same_shape);
fuzz_object *fuzz_pick_dtype(fuzz_world *w, const fuzz_object *near, bool (*wanted)(dvt_dtype));
int fuzz_axis(fuzz_world *w, int ndim);
dvt_axes fuzz_axes(fuzz_world *w, int ndim);
dvt_shape fuzz_shape(fuzz_world *w);
dvt_dtype fuzz_dtype(fuzz_world *w);
dvt_ctx fuzz_ctx(fuzz_world *w);
dvt_ctx fuzz_place(const fuzz_world *w, int i);
double fuzz_double(fuzz_world *w);
int64_t fuzz_int(fuzz_world *w);
bool fuzz_is_index(dvt_dtype dtype);
bool fuzz_is_float(dvt_dtype dtype);
bool fuzz_is_float32(dvt_dtype dtype);
/* Ends a call: checks the error against the expected and the recorded one. Returns true when it
   succeeded and results may be used. */
bool fuzz_ended(fuzz_world *w, bool failed);
/* Checks, records or compares a result, and puts it into a slot. */
void fuzz_result(fuzz_world *w, dvt_array *y);
/* Does the same for an array that was written in place. */
void fuzz_written(fuzz_world *w, fuzz_object *o);
/* Records or compares an array that is in no slot. */
void fuzz_look(fuzz_world *w, dvt_array *x);
void fuzz_text(fuzz_world *w, const char *text);
void fuzz_number_item(fuzz_world *w, double value);
/* Reads gradients again after a call that may have written them. */
void fuzz_gradients(fuzz_world *w);
fuzz_object *fuzz_adopt(fuzz_world *w, dvt_array *x, int depth, int retains);
void fuzz_forget(fuzz_world *w, fuzz_object *o);
/* Compares every array with the model. */
void fuzz_verify(fuzz_world *w);
void fuzz_scope_ended(fuzz_world *w);
/* Creates small numbers, for weights. */
dvt_array *fuzz_make(dvt_shape shape, dvt_dtype dtype, dvt_ctx ctx, int seed);
/* Returns x with n axes: itself, or reshaped. */
dvt_array *fuzz_with_axes(fuzz_world *w, const fuzz_object *a, int n);

/* Runs one program in one world. Returns false with the reason in w->why. */
bool fuzz_run(fuzz_world *w, const fuzz_config *config, const fuzz_program *p, fuzz_trace *trace);
void fuzz_pause_faults(bool pause);
void fuzz_lift_limits(const fuzz_world *w, bool lift);
/* Prints a readable form of the call, close to C source. */
void fuzz_say(fuzz_world *w, const char *format, ...) DVT_PRINTF(2, 3);

/* ---- calls_*.c ---- */
const fuzz_op *fuzz_ops(int *n);
int fuzz_find_op(const char *name);
extern const fuzz_op fuzz_ops_write[];
extern const fuzz_op fuzz_ops_create[], fuzz_ops_view[], fuzz_ops_math[], fuzz_ops_reduce[],
    fuzz_ops_index[], fuzz_ops_layer[], fuzz_ops_grad[], fuzz_ops_life[], fuzz_ops_net[],
    fuzz_ops_io[];
#define FUZZ_FN(f) ((void (*)(void))(f))

#endif
