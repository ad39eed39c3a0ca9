/* Opening NVRTC. */
#include "3_cuda/dvt_cuda.h"

static dvti_mutex dvti_nvrtc_lock = DVTI_MUTEX_INIT;

static bool dvti_nvrtc_resolve(void *library, dvti_nvrtc *rtc) {
    void *symbol;
#define DVTI_NVRTC_RESOLVE(name, arguments)                                                        \
    symbol = dvti_library_symbol(library, #name);                                                  \
    if (!symbol)                                                                                   \
        return false;                                                                              \
    memcpy(&rtc->name, &symbol, sizeof symbol);
    DVTI_NVRTC_TABLE(DVTI_NVRTC_RESOLVE)
#undef DVTI_NVRTC_RESOLVE
    symbol = dvti_library_symbol(library, "nvrtcGetErrorString");
    memcpy(&rtc->nvrtcGetErrorString, &symbol, sizeof symbol);
    return symbol != NULL;
}

DVTI_FN const dvti_nvrtc *dvti_nvrtc_open(const char *function) {
    static dvti_nvrtc rtc;
    static bool usable;
    static const char *const names[] = {"libnvrtc.so.13", "libnvrtc.so.12"};
    int i;
    dvti_mutex_lock(&dvti_nvrtc_lock);
    for (i = 0; i < DVTI_LENGTH(names) && !usable; i++) {
        void *library = dvti_library_open(names[i]);
        usable = library && dvti_nvrtc_resolve(library, &rtc);
    }
    dvti_mutex_unlock(&dvti_nvrtc_lock);
    if (usable)
        return &rtc;
    dvti_fail(DVT_ERR_ENVIRONMENT, "%s: NVRTC was not found (%s); install the CUDA toolkit",
              function, names[0]);
    return NULL;
}
