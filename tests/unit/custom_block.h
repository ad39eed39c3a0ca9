/* A block of one forward function, and what tests of such blocks share. */
#ifndef CUSTOM_BLOCK_H
#define CUSTOM_BLOCK_H
#include "dvt_test.h"
#if !defined(DEVTENSOR_NO_NN)

static inline dvt_init usual(void) {
    dvt_init init;
    memset(&init, 0, sizeof init);
    return init;
}

static inline int error_begins(const char *begin, const char *part) {
    int good = strncmp(dvt_error(), begin, strlen(begin)) == 0 && strstr(dvt_error(), part);
    return dvt_test_check(good, __FILE__, __LINE__, "the error is <<%s>>, expected <<%s...%s>>",
                          dvt_error(), begin, part);
}

static inline dvt_block *custom(dvt_array *(*forward)(dvt_block *, void *, dvt_array *),
                                void *user) {
    dvt_block_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.kind = "Custom";
    desc.forward = forward;
    desc.user = user;
    return dvt_block_new(&desc);
}

#endif
#endif
