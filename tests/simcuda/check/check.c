/* Counting, reporting, random numbers. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "check.h"
#include "covered.h"

static int passed, failed, skipped;

int check_that(int ok, const char *format, ...) {
    if (ok) {
        passed++;
        return 1;
    }
    failed++;
    va_list list;
    va_start(list, format);
    printf("FAIL ");
    vprintf(format, list);
    printf("\n");
    va_end(list);
    return 0;
}

void check_skip(const char *name, const char *reason) {
    skipped++;
    printf("SKIP %s: %s\n", name, reason);
}

int check_end(void) {
    if (!covered_write())
        check_that(0, "the forms cannot be written to $SIMCUDA_FORMS");
    printf("%d passed, %d failed, %d skipped\n", passed, failed, skipped);
    return failed != 0;
}

int check_message(const char *message, const char *text, const char *what) {
    return check_that(message && strstr(message, text),
                      "%s: the message is \"%s\", expected \"%s\" in it", what,
                      message ? message : "(none)", text);
}

uint64_t check_random(void) { /* xorshift64* */
    static uint64_t state = 0x9e3779b97f4a7c15u;
    state ^= state >> 12;
    state ^= state << 25;
    state ^= state >> 27;
    return state * 0x2545f4914f6cdd1du;
}
