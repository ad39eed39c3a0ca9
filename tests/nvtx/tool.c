/* A tool as profilers are: the library takes its callbacks for ranges by NVTX's protocol. With
   WITH_NVTX the types are those of the toolkit's header, without they are written here. Appends
   each call to the file RANGES_LOG. */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#ifdef WITH_NVTX
#include <nvtx3/nvToolsExt.h>
#define PUSH NVTX_CBID_CORE_RangePushA
#define POP NVTX_CBID_CORE_RangePop
#define CORE NVTX_CB_MODULE_CORE
#define CALLBACKS NVTX_ETID_CALLBACKS
#define VERSION NVTX_ETID_VERSIONINFO
#define CORE_SIZE NVTX_CBID_CORE_SIZE
#else
typedef void (*NvtxFunctionPointer)(void);
typedef NvtxFunctionPointer **NvtxFunctionTable;

typedef struct NvtxExportTableCallbacks {
    size_t struct_size;
    int (*GetModuleFunctionTable)(int module, NvtxFunctionTable *table, unsigned *size);
} NvtxExportTableCallbacks;

typedef struct NvtxExportTableVersionInfo {
    size_t struct_size;
    uint32_t version, reserved0;
    void (*SetInjectionNvtxVersion)(uint32_t version);
} NvtxExportTableVersionInfo;

typedef const void *(*NvtxGetExportTableFunc_t)(uint32_t id);
#define PUSH 9
#define POP 11
#define CORE 1
#define CALLBACKS 1
#define VERSION 3
#define CORE_SIZE 16
#endif

static void write_line(const char *word, const char *name) {
    FILE *file = fopen(getenv("RANGES_LOG"), "a");
    fprintf(file, "%s %s\n", word, name);
    fclose(file);
}

static int push(const char *name) {
    write_line("push", name);
    return 0;
}

static int pop(void) {
    write_line("pop", "-");
    return 0;
}

int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t get);

int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t get) {
    const NvtxExportTableCallbacks *callbacks = get(CALLBACKS);
    const NvtxExportTableVersionInfo *version = get(VERSION);
    NvtxFunctionTable table = NULL;
    unsigned size = 0;
    if (!callbacks || callbacks->struct_size != sizeof *callbacks || get(77))
        return 0;
    if (!version || version->struct_size != sizeof *version || version->version < 3)
        return 0;
    version->SetInjectionNvtxVersion(3);
    if (callbacks->GetModuleFunctionTable(CORE + 1, &table, &size) ||
        !callbacks->GetModuleFunctionTable(CORE, &table, &size) || size != CORE_SIZE)
        return 0;
    *table[PUSH] = (NvtxFunctionPointer)push;
    *table[POP] = (NvtxFunctionPointer)pop;
    write_line("tool", "-");
    return getenv("TOOL_FAILS") == NULL;
}
