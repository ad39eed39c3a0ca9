/* A locale with a decimal comma, for tests of text that must not depend on the locale. */
#ifndef COMMA_LOCALE_H
#define COMMA_LOCALE_H
#include "dvt_test.h"
#include <locale.h>
#if !defined(_WIN32)
#include <unistd.h>
#endif

#define NO_COMMA_LOCALE                                                                            \
    "no locale with a decimal comma is installed or can be made; the C locale was checked"

/* Makes a locale by localedef of the GNU C library, which needs Debian's package `locales`, and
   sets it. */
static int make_comma_locale(void) {
#if !defined(_WIN32)
    static const char steps[] =
        "cd %s && printf 'LC_NUMERIC\ndecimal_point \",\"\nthousands_sep \"\"\ngrouping -1\n"
        "END LC_NUMERIC\n' >comma && localedef -c -i comma ./made >/dev/null 2>&1";
    char folder[] = "/tmp/dvt_locale_XXXXXX", command[400];
    const char *before = getenv("LOCPATH");
    int found;
    if (!mkdtemp(folder))
        return 0;
    snprintf(command, sizeof command, steps, folder);
    (void)!system(command); /* localedef warns, because there are no other categories */
    setenv("LOCPATH", folder, 1);
    found = setlocale(LC_NUMERIC, "made") != NULL;
    if (before)
        setenv("LOCPATH", before, 1);
    else
        unsetenv("LOCPATH");
    snprintf(command, sizeof command, "rm -rf %s", folder);
    CHECK_INT(system(command), 0);
    return found;
#else
    return 0;
#endif
}

/* Returns whether numbers now have a decimal comma. setlocale(LC_ALL, "C") ends it. */
static int set_comma_locale(void) {
    static const char *const names[] = {"de_DE.UTF-8", "de_DE.utf8", "fr_FR.UTF-8", "de_DE",
                                        "fr_FR"};
    char text[8];
    int i;
    for (i = 0; i < 5; i++)
        if (setlocale(LC_ALL, names[i]))
            break;
    if (i == 5 && !make_comma_locale())
        return 0;
    snprintf(text, sizeof text, "%.1f", 1.5);
    return strcmp(text, "1,5") == 0;
}

#endif
