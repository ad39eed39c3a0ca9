/* Tensor maps: cuTensorMapEncodeTiled checks its arguments as the manual of CUDA 13.0 demands, and
   writes what bulk copies of modules read (sim_module.h). Simulated: plain tiles without element
   strides, with the swizzle of 128 bytes or none. */
#include "entry.h"
#include <string.h>

_Static_assert(sizeof(sim_tensor_map) <= sizeof(CUtensorMap), "a map fits");

static uint32_t element_bytes(CUtensorMapDataType type) {
    switch (type) {
    case CU_TENSOR_MAP_DATA_TYPE_UINT8:
        return 1;
    case CU_TENSOR_MAP_DATA_TYPE_UINT16:
    case CU_TENSOR_MAP_DATA_TYPE_FLOAT16:
    case CU_TENSOR_MAP_DATA_TYPE_BFLOAT16:
        return 2;
    case CU_TENSOR_MAP_DATA_TYPE_UINT32:
    case CU_TENSOR_MAP_DATA_TYPE_INT32:
    case CU_TENSOR_MAP_DATA_TYPE_FLOAT32:
        return 4;
    default:
        return 0;
    }
}

/* Returns what is wrong with an axis, or NULL. before: the bytes from one position of the previous
   axis to the next. */
static const char *axis_mistake(const sim_tensor_map *m, uint32_t axis, uint64_t before) {
    uint64_t stride = axis ? m->stride[axis - 1] : 0;
    if (m->dim[axis] == 0 || m->dim[axis] > (uint64_t)1 << 32)
        return "an extent is 1 to 2^32";
    if (m->box[axis] == 0 || m->box[axis] > 256)
        return "an extent of the box is 1 to 256";
    if (axis && (stride % 16 || stride >= (uint64_t)1 << 40))
        return "a stride is a multiple of 16 bytes, below 2^40";
    if (axis == 1 && stride < m->dim[0] * m->element)
        return "the first stride is at least a line";
    if (axis > 1 && (stride % before || stride < m->dim[axis - 1] * before))
        return "a stride is a multiple of the previous one, and covers its axis";
    return NULL;
}

static const char *mistake(const sim_tensor_map *m, const void *to) {
    uint32_t inner = m->box[0] * m->element;
    if ((uintptr_t)to % 64)
        return "the map lies at a multiple of 64 bytes";
    if (m->address % 16)
        return "the address is a multiple of 16 bytes";
    for (uint32_t i = 0; i < m->rank; i++) {
        const char *why = axis_mistake(m, i, i > 1 ? m->stride[i - 2] : m->element);
        if (why)
            return why;
    }
    if (inner % 16)
        return "a line of the box is a multiple of 16 bytes";
    if (m->swizzle && inner > 128)
        return "a line of the box has at most the bytes of the swizzle";
    return NULL;
}

CUresult cuTensorMapEncodeTiled(CUtensorMap *to, CUtensorMapDataType type, cuuint32_t rank,
                                void *address, const cuuint64_t *dim, const cuuint64_t *stride,
                                const cuuint32_t *box, const cuuint32_t *step,
                                CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,
                                CUtensorMapL2promotion promotion, CUtensorMapFloatOOBfill fill) {
    sim_tensor_map m = {.mark = SIM_TENSOR_MAP_MARK, .address = (uintptr_t)address};
    const char *why;
    ENTER(NEED_INIT);
    if (!to || !dim || !box || !step || rank == 0 || rank > 5 || (rank > 1 && !stride) ||
        (unsigned)promotion > CU_TENSOR_MAP_L2_PROMOTION_L2_256B)
        return CUDA_ERROR_INVALID_VALUE;
    m.element = (uint8_t)element_bytes(type);
    m.rank = (uint8_t)rank;
    m.swizzle = swizzle == CU_TENSOR_MAP_SWIZZLE_128B;
    for (uint32_t i = 0; i < rank; i++) {
        m.dim[i] = dim[i];
        m.box[i] = box[i] > 256 ? 0 : (uint16_t)box[i];
        if (i)
            m.stride[i - 1] = stride[i - 1];
        if (step[i] != 1)
            return fail(CUDA_ERROR_NOT_SUPPORTED,
                        "cuTensorMapEncodeTiled: element strides are not simulated");
    }
    if (!m.element || interleave != CU_TENSOR_MAP_INTERLEAVE_NONE ||
        fill != CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE || (swizzle && !m.swizzle))
        return fail(CUDA_ERROR_NOT_SUPPORTED, "cuTensorMapEncodeTiled: this form is not simulated");
    why = mistake(&m, to);
    if (why)
        return fail(CUDA_ERROR_INVALID_VALUE, "cuTensorMapEncodeTiled: %s", why);
    memset(to, 0, sizeof *to);
    memcpy(to, &m, sizeof m);
    return CUDA_SUCCESS;
}
