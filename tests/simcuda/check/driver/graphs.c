/* Stream capture, graphs, their launches and updates, and the calls that a capture forbids. */
#include "check.h"

enum { N = 64 };

static CUmodule m;
static CUfunction fill, add;
static CUstream a, b;
static CUdeviceptr x, y;
static CUevent e, f;

static CUresult set(CUstream s, CUdeviceptr p, float v) {
    int n = N;
    void *args[] = {&p, &v, &n};
    return CU(cuLaunchKernel)(fill, 1, 1, 1, N, 1, 1, 0, s, args, NULL);
}

static CUresult plus(CUstream s, CUdeviceptr p, CUdeviceptr q) {
    int n = N;
    void *args[] = {&p, &q, &n};
    return CU(cuLaunchKernel)(add, 1, 1, 1, N, 1, 1, 0, s, args, NULL);
}

static float first(CUdeviceptr p) {
    float v = 0;
    OK(CU(cuCtxSynchronize)());
    OK(CU(cuMemcpyDtoH_v2)(&v, p, 4));
    return v;
}

static void begin(void) {
    OK(CU(cuStreamBeginCapture_v2)(a, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
}

/* x = v; y = 2 on another stream; x += y after the join. */
static CUgraph fork_and_join(float v, int join) {
    CUgraph g = NULL;
    begin();
    OK(set(a, x, v));
    OK(CU(cuEventRecord)(e, a));
    OK(CU(cuStreamWaitEvent)(b, e, 0));
    OK(set(b, y, 2));
    OK(CU(cuEventRecord)(f, b));
    if (join)
        OK(CU(cuStreamWaitEvent)(a, f, 0));
    OK(plus(a, x, y));
    GIVES(join ? CUDA_SUCCESS : CUDA_ERROR_STREAM_CAPTURE_UNJOINED, CU(cuStreamEndCapture)(a, &g));
    return g;
}

static void launches(const char *policy, uint64_t seed) {
    CUgraph g, h;
    CUgraphExec exec;
    CUgraphNode nodes[8];
    CUgraphNodeType type;
    CUgraphExecUpdateResultInfo info;
    size_t count = 8;
    check_policy(policy, seed);
    OK(set(a, x, 100));
    g = fork_and_join(1, 1);
    CHECK(first(x) == 100, "nothing runs while it is captured");
    OK(CU(cuGraphGetNodes)(g, nodes, &count));
    CHECK(count == 3, "%zu nodes", count);
    OK(CU(cuGraphNodeGetType)(nodes[0], &type));
    CHECK(type == CU_GRAPH_NODE_TYPE_KERNEL, "type %d", (int)type);
    OK(CU(cuGraphInstantiateWithFlags)(&exec, g, 0));
    for (int i = 0; i < 3; i++) {
        OK(CU(cuGraphLaunch)(exec, a));
        CHECK(first(x) == 3, "%s %llu: x is %g", policy, (unsigned long long)seed, first(x));
    }
    h = fork_and_join(5, 1);
    OK(CU(cuGraphExecUpdate_v2)(exec, h, &info));
    OK(CU(cuGraphDestroy)(h));
    OK(CU(cuGraphLaunch)(exec, b));
    CHECK(first(x) == 7, "updated: x is %g", first(x));
    float v = 9;
    int n = N;
    void *args[] = {&x, &v, &n};
    CUDA_KERNEL_NODE_PARAMS p;
    memset(&p, 0, sizeof p);
    p.func = fill;
    p.gridDimX = p.gridDimY = p.gridDimZ = p.blockDimY = p.blockDimZ = 1;
    p.blockDimX = N;
    p.kernelParams = args;
    OK(CU(cuGraphExecKernelNodeSetParams_v2)(exec, nodes[0], &p));
    OK(CU(cuGraphLaunch)(exec, a));
    CHECK(first(x) == 11, "parameters set: x is %g", first(x));
    begin();
    OK(set(a, x, 1));
    OK(CU(cuStreamEndCapture)(a, &h));
    GIVES(CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE, CU(cuGraphExecUpdate_v2)(exec, h, &info));
    CHECK(info.result == CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED, "result %d",
          (int)info.result);
    OK(CU(cuGraphDestroy)(h));
    OK(CU(cuGraphLaunch)(exec, a));
    OK(CU(cuGraphExecDestroy)(exec)); /* queued work still runs */
    OK(CU(cuGraphDestroy)(g));
    CHECK(first(x) == 11, "x is %g", first(x));
}

/* Two nodes without an edge have no order: at least one policy must expose that. */
static void missing_edge(void) {
    CUgraph g;
    CUgraphExec exec;
    int wrong = 0;
    begin();
    OK(CU(cuEventRecord)(e, a));
    OK(CU(cuStreamWaitEvent)(b, e, 0));
    OK(set(a, y, 2));
    OK(plus(b, x, y)); /* should have waited for a */
    OK(CU(cuEventRecord)(f, b));
    OK(CU(cuStreamWaitEvent)(a, f, 0));
    OK(CU(cuStreamEndCapture)(a, &g));
    OK(CU(cuGraphInstantiateWithFlags)(&exec, g, 0));
    for (uint64_t seed = 0; seed < 50; seed++) {
        check_policy(seed ? "random" : "lazy", seed);
        OK(set(a, x, 1));
        OK(set(a, y, 1));
        OK(CU(cuGraphLaunch)(exec, a));
        wrong += first(x) != 3;
    }
    CHECK(wrong >= 10, "a missing edge shows in %d of 50", wrong);
    OK(CU(cuGraphExecDestroy)(exec));
    OK(CU(cuGraphDestroy)(g));
}

/* A host buffer is read when the graph is launched, not when it is captured. */
static void copies(void) {
    float in[N], out[N];
    CUgraph g;
    CUgraphExec exec;
    in[0] = 1;
    begin();
    OK(CU(cuMemcpyHtoDAsync_v2)(x, in, sizeof in, a));
    OK(CU(cuMemsetD32Async)(x + 4, 0, 1, a));
    OK(CU(cuMemcpyDtoHAsync_v2)(out, x, sizeof out, a));
    OK(CU(cuStreamEndCapture)(a, &g));
    OK(CU(cuGraphInstantiateWithFlags)(&exec, g, 0));
    for (int i = 2; i < 5; i++) {
        in[0] = (float)i;
        OK(CU(cuGraphLaunch)(exec, a));
        OK(CU(cuStreamSynchronize)(a));
        CHECK(out[0] == (float)i && out[1] == 0, "copied %g %g", out[0], out[1]);
    }
    OK(CU(cuGraphExecDestroy)(exec));
    OK(CU(cuGraphDestroy)(g));
}

/* Checks a call that a capture forbids: its error code, and that the capture becomes invalid. */
static void forbidden(CUresult code, CUresult got, const char *what) {
    CUgraph g;
    CUstreamCaptureStatus status;
    CHECK(got == code, "%s gave %d, expected %d", what, got, code);
    OK(CU(cuStreamIsCapturing)(a, &status));
    CHECK(status == CU_STREAM_CAPTURE_STATUS_INVALIDATED, "%s: status %d", what, (int)status);
    GIVES(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, set(a, x, 1));
    GIVES(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, CU(cuStreamEndCapture)(a, &g));
    CHECK(g == NULL, "no graph");
    OK(CU(cuStreamIsCapturing)(a, &status));
    CHECK(status == CU_STREAM_CAPTURE_STATUS_NONE, "%s: status %d", what, (int)status);
}

static void not_allowed(void) {
    CUdeviceptr p;
    CUgraph g;
    CUevent outside;
    CUstream blocking;
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    float h[N];
    begin();
    forbidden(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, CU(cuMemAlloc_v2)(&p, 4), "cuMemAlloc");
    begin();
    forbidden(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, CU(cuStreamSynchronize)(a),
              "cuStreamSynchronize");
    begin();
    forbidden(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, CU(cuCtxSynchronize)(), "cuCtxSynchronize");
    begin();
    forbidden(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, CU(cuStreamQuery)(a), "cuStreamQuery");
    OK(CU(cuEventCreate)(&outside, 0));
    OK(CU(cuEventRecord)(outside, b));
    begin();
    forbidden(CUDA_ERROR_STREAM_CAPTURE_ISOLATION, CU(cuStreamWaitEvent)(a, outside, 0),
              "an event from outside");
    OK(CU(cuEventDestroy_v2)(outside));
    begin();
    OK(CU(cuEventRecord)(e, a));
    GIVES(CUDA_ERROR_CAPTURED_EVENT, CU(cuEventQuery)(e));
    GIVES(CUDA_ERROR_CAPTURED_EVENT, CU(cuEventSynchronize)(e));
    OK(CU(cuThreadExchangeStreamCaptureMode)(&mode));
    OK(CU(cuMemAlloc_v2)(&p, 4)); /* the thread has opted out of the check */
    OK(CU(cuThreadExchangeStreamCaptureMode)(&mode));
    OK(CU(cuStreamEndCapture)(a, &g));
    OK(CU(cuGraphDestroy)(g));
    OK(CU(cuMemFree_v2)(p));
    CHECK(fork_and_join(1, 0) == NULL, "unjoined");
    OK(CU(cuStreamCreate)(&blocking, 0));
    OK(CU(cuStreamBeginCapture_v2)(blocking, CU_STREAM_CAPTURE_MODE_RELAXED));
    GIVES(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, CU(cuMemcpyHtoD_v2)(x, h, 4));
    GIVES(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, CU(cuStreamEndCapture)(blocking, &g));
    GIVES(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,
          CU(cuStreamBeginCapture_v2)(NULL, CU_STREAM_CAPTURE_MODE_RELAXED));
    OK(CU(cuStreamDestroy_v2)(blocking));
    GIVES(CUDA_ERROR_ILLEGAL_STATE, CU(cuStreamEndCapture)(a, &g));
    begin();
    OK(CU(cuEventRecord)(e, a));
    OK(CU(cuStreamWaitEvent)(b, e, 0));
    GIVES(CUDA_ERROR_STREAM_CAPTURE_UNMATCHED, CU(cuStreamEndCapture)(b, &g));
    GIVES(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, CU(cuStreamEndCapture)(a, &g));
}

static void information(void) {
    CUstreamCaptureStatus status;
    cuuint64_t id = 0;
    CUgraph g, same;
    const CUgraphNode *after;
    const CUgraphEdgeData *edges;
    size_t count = 0;
    begin();
    OK(set(a, x, 1));
    OK(CU(cuStreamGetCaptureInfo_v3)(a, &status, &id, &g, &after, &edges, &count));
    CHECK(status == CU_STREAM_CAPTURE_STATUS_ACTIVE && id && count == 1 && after[0], "%d %zu",
          (int)status, count);
    OK(CU(cuStreamEndCapture)(a, &same));
    CHECK(g == same, "the graph is the one that was told");
    OK(CU(cuGraphDestroy)(g));
    OK(CU(cuStreamGetCaptureInfo_v3)(a, &status, &id, &g, &after, &edges, &count));
    CHECK(status == CU_STREAM_CAPTURE_STATUS_NONE, "%d", (int)status);
}

int main(void) {
    check_start();
    m = check_module();
    fill = check_kernel(m, "fill");
    add = check_kernel(m, "add");
    OK(CU(cuStreamCreate)(&a, CU_STREAM_NON_BLOCKING));
    OK(CU(cuStreamCreate)(&b, CU_STREAM_NON_BLOCKING));
    OK(CU(cuEventCreate)(&e, 0));
    OK(CU(cuEventCreate)(&f, 0));
    OK(CU(cuMemAlloc_v2)(&x, 4 * N));
    OK(CU(cuMemAlloc_v2)(&y, 4 * N));
    launches("lazy", 1);
    launches("eager", 1);
    for (uint64_t seed = 1; seed <= 20; seed++)
        launches("random", seed);
    missing_edge();
    copies();
    not_allowed();
    information();
    return check_finish();
}
