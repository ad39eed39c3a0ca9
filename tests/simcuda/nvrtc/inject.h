/* Injected failures. SIMNVRTC_FAIL="nvrtcCompileProgram@2=6,..." makes the second call return 6.
   The symbols below, which the double exports for tests, do the same at run time. */
#ifndef INJECT_H
#define INJECT_H

#define EXPORT __attribute__((visibility("default")))

/* Counts a call of `name` and returns the error code that it must return; 0: none. */
int inject(const char *name);

/* Makes the nth call of `name` from now (1: the next one) return `code`, once. nth 0: all calls do,
   until code 0 is set. */
EXPORT void sim_nvrtc_fail(const char *name, int nth, int code);
/* Returns the calls of `name` since the start or the last reset; NULL: of all entry points. */
EXPORT unsigned sim_nvrtc_calls(const char *name);
/* Removes all planned failures and resets all counts. */
EXPORT void sim_nvrtc_reset(void);

#endif
