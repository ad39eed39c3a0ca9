/* The harness itself, dvt_test.c. */
#include "dvt_test.h"
#if defined(__linux__)
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>
#endif

/* Runs itself in another process, which gets SIGTERM as from a time limit. */
DVT_TEST(harness_says_where_it_was_stopped) {
#if defined(__linux__)
    char self[1000], command[1200], line[200];
    bool said = false; /* Clang's thread sanitizer prints what is in stdio's buffer after it */
    ssize_t length;
    FILE *output;
    int code;
    if (getenv("DVT_TEST_STOPPED")) {
        raise(SIGTERM);
        CHECK(!"stopped");
        return;
    }
    length = readlink("/proc/self/exe", self, sizeof self - 1);
    CHECK(length > 0);
    self[length > 0 ? length : 0] = 0;
    snprintf(command, sizeof command,
             "DVT_TEST_STOPPED=1 exec '%s' harness_says_where_it_was_stopped", self);
    output = popen(command, "r");
    CHECK(output != NULL);
    while (output && fgets(line, sizeof line, output))
        said = said || strcmp(line, "stopped in harness_says_where_it_was_stopped\n") == 0;
    code = output ? pclose(output) : -1;
    if (WIFEXITED(code) && (WEXITSTATUS(code) == 126 || WEXITSTATUS(code) == 127))
        SKIP("an emulator runs this program");
    CHECK_INT(code, 143 << 8);
    CHECK(said);
#else
    SKIP("needs /proc");
#endif
}
