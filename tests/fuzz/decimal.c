/* Numbers from text: what is read as a number, strtod and strtof read as the same one. */
#include "fuzz.h"

DVT_FUZZ(decimal) {
    static char text[5000];
    dvti_parsed parsed;
    double wide = 0, expected;
    float narrow = 0, expected_narrow;
    int64_t whole = 0;
    char *end;
    if (size >= sizeof text || memchr(data, 0, size))
        return 0;
    fuzz_begin();
    if (size)
        memcpy(text, data, size);
    text[size] = 0;
    parsed = dvti_number_parse(text, size, '.', DVT_F64, &wide, 0);
    FUZZ_CHECK(parsed != DVTI_PARSED_OUTSIDE);
    FUZZ_CHECK(dvti_number_parse(text, size, '.', DVT_F32, &narrow, 0) == parsed);
    expected = strtod(text, &end);
    if (parsed == DVTI_PARSED) {
        expected_narrow = strtof(text, NULL);
        FUZZ_CHECK(size > 0 && end == text + size);
        FUZZ_CHECK(expected != expected ? wide != wide
                                        : memcmp(&wide, &expected, sizeof wide) == 0);
        FUZZ_CHECK(expected_narrow != expected_narrow
                       ? narrow != narrow
                       : memcmp(&narrow, &expected_narrow, sizeof narrow) == 0);
        parsed = dvti_number_parse(text, size, '.', DVT_I64, &whole, 0);
        FUZZ_CHECK(parsed != DVTI_PARSED_TEXT);
        if (parsed == DVTI_PARSED)
            FUZZ_CHECK((double)whole == expected);
        else
            FUZZ_CHECK(expected != floor(expected) || !(expected < INFINITY) ||
                       fabs(expected) > 9007199254740992.0 || strpbrk(text, ".eE-"));
    } else
        FUZZ_CHECK(!size || end != text + size || strpbrk(text, "xX( \t\n\v\f\r"));
    fuzz_end();
    return 0;
}
