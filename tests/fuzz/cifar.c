/* CIFAR's binary files, in the form that the first byte chooses. */
#include "fuzz.h"

DVT_FUZZ(cifar) {
    dvt_array *x = NULL, *y = NULL;
    dvt_status status;
    if (!size)
        return 0;
    fuzz_begin();
    DVT_SCOPE {
        status = data[0] % 3 == 0
                     ? dvt_read_cifar10(data + 1, size - 1, &x, &y)
                     : dvt_read_cifar100(data + 1, size - 1, (dvt_cifar100_labels)(data[0] % 3 - 1),
                                         &x, &y);
        FUZZ_CHECK(status == dvt_error_code());
        FUZZ_CHECK(status == DVT_OK ? x && y && dvt_size(x) == 3072 * dvt_size(y)
                                    : status == DVT_ERR_FORMAT && !x && !y);
    }
    fuzz_end();
    return 0;
}
