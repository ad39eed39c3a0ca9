/* Not an NVRTC: it says that it was opened. */
#include <stdio.h>

__attribute__((constructor)) static void opened(void) {
    puts("NVRTC was opened");
}
