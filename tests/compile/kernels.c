/* The CUDA source must be accepted by C and C++ compilers, in literals of the length that ISO C
   guarantees. The files of functions stand for all: the generator treats them alike. */
#include <stddef.h>
#include <string.h>
#if defined(__GNUC__)
#pragma GCC diagnostic ignored "-Wunused-variable"
#endif
#if defined(__clang__)
#pragma clang diagnostic ignored "-Wunused-const-variable"
#endif
#include "devtensor_kernels.cu.inc"

int main(void) {
    size_t file;
    for (file = 0; dvti_cuda_math_texts[file]; file++) {
        const char *text = dvti_cuda_math_texts[file];
        if (strncmp(text, "#line 1 \"", 9) != 0)
            return 1;
        for (; *text; text += strlen(text) + 1)
            if (strlen(text) > 4095 || text[strlen(text) - 1] != '\n')
                return 2;
    }
    return file > 0 ? 0 : 3;
}
