/* conv_mma. */
#include "3_cuda/dvt_cuda.h"

DVTI_FN void dvti_cuda_describe_conv_mma(uint64_t variant, dvti_text *text) {
    dvti_text_add(text, "#define VARIANT %d\n", (int)variant);
}
