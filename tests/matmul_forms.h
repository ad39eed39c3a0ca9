/* The forms of dvt_matmul_with that tests use most. */
#ifndef MATMUL_FORMS_H
#define MATMUL_FORMS_H

static inline dvt_matmul_desc matmul_transposed(bool transpose_a, bool transpose_b) {
    dvt_matmul_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.transpose_a = transpose_a;
    desc.transpose_b = transpose_b;
    return desc;
}

static inline dvt_array *matmul_t(dvt_array *a, dvt_array *b, bool transpose_a, bool transpose_b) {
    const dvt_matmul_desc desc = matmul_transposed(transpose_a, transpose_b);
    return dvt_matmul_with(a, b, &desc);
}

static inline dvt_array *matmul_as(dvt_array *a, dvt_array *b, dvt_dtype dtype) {
    dvt_matmul_desc desc = matmul_transposed(false, false);
    desc.convert = true;
    desc.dtype = dtype;
    return dvt_matmul_with(a, b, &desc);
}

static inline dvt_array *matmul_into(dvt_array *out, dvt_array *a, dvt_array *b, bool transpose_a,
                                     bool transpose_b) {
    dvt_matmul_desc desc = matmul_transposed(transpose_a, transpose_b);
    desc.out = out;
    return dvt_matmul_with(a, b, &desc);
}

#endif
