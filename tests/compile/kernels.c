/* The CUDA source as a table of lines must be accepted by C and C++ compilers. */
#include <stddef.h>
#include <string.h>

static const char *const lines[] = {
#include "devtensor_kernels.cu.inc"
};

int main(void) {
    size_t i, n = sizeof lines / sizeof lines[0];
    for (i = 0; i + 1 < n; i++)
        if (!lines[i] || lines[i][strlen(lines[i]) - 1] != '\n')
            return 1;
    return lines[n - 1] == NULL ? 0 : 2;
}
