/* Patterns for names of parameters, against POSIX extended expressions where both support the
   pattern. The input: the pattern, a newline, the name. */
#include "fuzz.h"
#include "6_nn/dvt_nn_internal.h"
#include <regex.h>

/* Tells whether both interpret the pattern in the same way. */
static int plain(const char *pattern) {
    size_t n = strlen(pattern);
    return n < 24 && strspn(pattern, "abc.|()*+?") == n && !strstr(pattern, "(?") &&
           !strstr(pattern, "?*") && !strstr(pattern, "*?") && !strstr(pattern, "+?") &&
           !strstr(pattern, "??");
}

DVT_FUZZ(pattern) {
    char text[400], anchored[64], *name;
    dvti_pattern pattern;
    regex_t regex;
    if (size >= sizeof text)
        return 0;
    fuzz_begin();
    memcpy(text, data, size);
    text[size] = 0;
    name = strchr(text, '\n');
    if (name)
        *name++ = 0;
    else
        name = text + strlen(text);
    if (dvti_pattern_compile("fuzz", text, &pattern)) {
        bool matches = dvti_pattern_match(&pattern, name);
        FUZZ_CHECK(dvti_pattern_match(&pattern, name) == matches);
        if (plain(text) && strlen(name) < 24 && !strchr(name, '\n')) {
            snprintf(anchored, sizeof anchored, "^(%.30s)", text);
            if (regcomp(&regex, anchored, REG_EXTENDED | REG_NOSUB) == 0) {
                FUZZ_CHECK((regexec(&regex, name, 0, NULL, 0) == 0) == matches);
                regfree(&regex);
            }
        }
        dvti_pattern_free(&pattern);
    } else
        FUZZ_CHECK(dvt_error_code() == DVT_ERR_VALUE || dvt_error_code() == DVT_ERR_HOST_MEMORY);
    fuzz_end();
    return 0;
}
