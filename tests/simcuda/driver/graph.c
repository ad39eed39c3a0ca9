/* Graphs: captured, instantiated, updated, launched. A launch queues the nodes on its stream in an
   order that the edges allow: as captured (eager), the latest possible first (lazy), any
   (random). */
#include "entry.h"
#include "graph.h"
#include <stdlib.h>
#include <string.h>

graph *graph_new(handle_kind kind) {
    return object_new(kind, NULL, sizeof(graph));
}

static void node_clear(node *n) {
    free(n->op.launch.params);
    free(n->op.staged);
    free(n->after);
    free(n);
}

void graph_destroy(graph *g) {
    for (int i = 0; i < g->count; i++)
        node_clear(g->nodes[i]);
    free(g->nodes);
    object_retire(g);
}

int graph_add(graph *g, const op *o, const int *after, int after_count) {
    node *n = calloc(1, sizeof *n);
    if (g->count == g->capacity) {
        g->capacity = g->capacity ? 2 * g->capacity : 16;
        g->nodes = realloc(g->nodes, (size_t)g->capacity * sizeof *g->nodes);
    }
    if (!n || !g->nodes || !(n->after = malloc(((size_t)after_count + 1) * sizeof *after)))
        abort();
    n->op = *o;
    n->after_count = after_count;
    if (after_count)
        memcpy(n->after, after, (size_t)after_count * sizeof *after);
    g->nodes[g->count] = n;
    return g->count++;
}

/* Copies an operation with its parameters; the graph keeps its own. */
static op copy_of(const op *o) {
    op copy = *o;
    if (o->launch.params) {
        uint32_t size = o->launch.function->kernel->params_size;
        copy.launch.params = malloc((size_t)size + 1);
        if (!copy.launch.params)
            abort();
        memcpy(copy.launch.params, o->launch.params, size);
    }
    return copy;
}

static graph *copy_graph(const graph *g, handle_kind kind) {
    graph *copy = graph_new(kind);
    for (int i = 0; copy && i < g->count; i++) {
        op o = copy_of(&g->nodes[i]->op);
        graph_add(copy, &o, g->nodes[i]->after, g->nodes[i]->after_count);
    }
    return copy;
}

/* ---- graphs ---- */

CUresult cuGraphCreate(CUgraph *out, unsigned flags) {
    graph *g;
    ENTER(NEED_INIT);
    if (!out || flags)
        return CUDA_ERROR_INVALID_VALUE;
    *out = (CUgraph)(g = graph_new(KIND_GRAPH));
    return g ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuGraphDestroy(CUgraph handle) {
    graph *g;
    ENTER(NEED_INIT);
    if (!(g = object_get(handle, KIND_GRAPH)))
        return CUDA_ERROR_INVALID_VALUE;
    graph_destroy(g);
    return CUDA_SUCCESS;
}

CUresult cuGraphGetNodes(CUgraph handle, CUgraphNode *nodes, size_t *count) {
    graph *g;
    ENTER(NEED_INIT);
    g = object_get(handle, KIND_GRAPH);
    if (!g || !count)
        return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; nodes && i < *count; i++)
        nodes[i] = i < (size_t)g->count ? (CUgraphNode)g->nodes[i] : NULL;
    if (!nodes || *count > (size_t)g->count)
        *count = (size_t)g->count;
    return CUDA_SUCCESS;
}

CUresult cuGraphNodeGetType(CUgraphNode handle, CUgraphNodeType *type) {
    const node *n = (const node *)handle;
    ENTER(NEED_INIT);
    if (!n || !type)
        return CUDA_ERROR_INVALID_VALUE;
    switch (n->op.kind) {
    case OP_KERNEL:
        *type = CU_GRAPH_NODE_TYPE_KERNEL;
        break;
    case OP_COPY:
        *type = CU_GRAPH_NODE_TYPE_MEMCPY;
        break;
    case OP_SET:
        *type = CU_GRAPH_NODE_TYPE_MEMSET;
        break;
    case OP_HOST:
        *type = CU_GRAPH_NODE_TYPE_HOST;
        break;
    default:
        *type = CU_GRAPH_NODE_TYPE_EMPTY;
        break;
    }
    return CUDA_SUCCESS;
}

/* ---- executable graphs ---- */

static CUresult instantiate(CUgraphExec *out, CUgraph handle) {
    graph *g = object_get(handle, KIND_GRAPH), *exec;
    if (!g || !out)
        return CUDA_ERROR_INVALID_VALUE;
    *out = (CUgraphExec)(exec = copy_graph(g, KIND_EXEC));
    return exec ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuGraphInstantiateWithFlags(CUgraphExec *out, CUgraph handle, unsigned long long flags) {
    ENTER(NEED_HEALTHY);
    if (flags & ~(unsigned long long)(CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH |
                                      CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY))
        return CUDA_ERROR_INVALID_VALUE;
    return instantiate(out, handle);
}

CUresult cuGraphInstantiateWithParams(CUgraphExec *out, CUgraph handle,
                                      CUDA_GRAPH_INSTANTIATE_PARAMS *params) {
    CUresult code;
    ENTER(NEED_HEALTHY);
    if (!params)
        return CUDA_ERROR_INVALID_VALUE;
    code = instantiate(out, handle);
    params->hErrNode_out = NULL;
    params->result_out =
        code == CUDA_SUCCESS ? CUDA_GRAPH_INSTANTIATE_SUCCESS : CUDA_GRAPH_INSTANTIATE_ERROR;
    return code;
}

CUresult cuGraphExecDestroy(CUgraphExec handle) {
    graph *g;
    ENTER(NEED_INIT);
    if (!(g = object_get(handle, KIND_EXEC)))
        return CUDA_ERROR_INVALID_VALUE;
    graph_destroy(g);
    return CUDA_SUCCESS;
}

static bool same_shape(const node *a, const node *b) {
    return a->op.kind == b->op.kind && a->after_count == b->after_count &&
           memcmp(a->after, b->after, (size_t)a->after_count * sizeof *a->after) == 0;
}

static CUresult update(CUgraphExec exec_handle, CUgraph handle,
                       CUgraphExecUpdateResultInfo *result) {
    graph *exec, *g;
    exec = object_get(exec_handle, KIND_EXEC);
    g = object_get(handle, KIND_GRAPH);
    if (!exec || !g || !result)
        return CUDA_ERROR_INVALID_VALUE;
    memset(result, 0, sizeof *result);
    result->result = CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED;
    if (exec->count != g->count)
        return CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
    for (int i = 0; i < g->count; i++) {
        const op *a = &exec->nodes[i]->op, *b = &g->nodes[i]->op;
        result->errorNode = (CUgraphNode)g->nodes[i];
        if (!same_shape(exec->nodes[i], g->nodes[i]))
            return CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
        if (a->kind == OP_KERNEL &&
            a->launch.function->object.ctx != b->launch.function->object.ctx) {
            result->result = CU_GRAPH_EXEC_UPDATE_ERROR_UNSUPPORTED_FUNCTION_CHANGE;
            return CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
        }
    }
    for (int i = 0; i < g->count; i++) {
        free(exec->nodes[i]->op.launch.params);
        exec->nodes[i]->op = copy_of(&g->nodes[i]->op);
    }
    result->errorNode = NULL;
    result->result = CU_GRAPH_EXEC_UPDATE_SUCCESS;
    return CUDA_SUCCESS;
}

CUresult cuGraphExecUpdate_v2(CUgraphExec exec, CUgraph handle,
                              CUgraphExecUpdateResultInfo *result) {
    ENTER(NEED_HEALTHY);
    return update(exec, handle, result);
}

CUresult old_exec_update(CUgraphExec exec, CUgraph handle, CUgraphNode *culprit,
                         CUgraphExecUpdateResult *result) {
    CUgraphExecUpdateResultInfo info;
    CUresult code;
    ENTER_AS("cuGraphExecUpdate", NEED_HEALTHY);
    if (!culprit || !result)
        return CUDA_ERROR_INVALID_VALUE;
    code = update(exec, handle, &info);
    *culprit = info.errorNode;
    *result = info.result;
    return code;
}

/* ---- kernel nodes ---- */

/* Finds the node of the executable graph that corresponds to the given one of the original
   graph. */
CUresult cuGraphExecKernelNodeSetParams_v2(CUgraphExec exec_handle, CUgraphNode handle,
                                           const CUDA_KERNEL_NODE_PARAMS *p) {
    graph *exec;
    node *target = NULL;
    launch_plan plan = {0};
    CUresult code;
    ENTER(NEED_HEALTHY);
    exec = object_get(exec_handle, KIND_EXEC);
    if (!exec || !handle || !p)
        return CUDA_ERROR_INVALID_VALUE;
    for (object *o = object_first(); o; o = o->next)
        for (int i = 0; o->kind == KIND_GRAPH && i < ((graph *)o)->count && i < exec->count; i++)
            if ((CUgraphNode)((graph *)o)->nodes[i] == handle)
                target = exec->nodes[i];
    plan.function = object_get(p->func, KIND_FUNCTION);
    if (!target || target->op.kind != OP_KERNEL || !plan.function ||
        plan.function->object.ctx != target->op.launch.function->object.ctx)
        return CUDA_ERROR_INVALID_VALUE;
    plan.grid = (sim_u3){p->gridDimX, p->gridDimY, p->gridDimZ};
    plan.block = (sim_u3){p->blockDimX, p->blockDimY, p->blockDimZ};
    plan.dynamic = p->sharedMemBytes;
    plan.cooperative = target->op.launch.cooperative;
    code = launch_plan_make(&plan, p->kernelParams, p->extra);
    if (code != CUDA_SUCCESS)
        return code;
    free(target->op.launch.params);
    target->op.launch = plan;
    return CUDA_SUCCESS;
}

/* ---- launching ---- */

static bool ready(const graph *g, int i, const bool *done) {
    for (int k = 0; k < g->nodes[i]->after_count; k++)
        if (!done[g->nodes[i]->after[k]])
            return false;
    return !done[i];
}

static int choose(const graph *g, const bool *done) {
    int chosen = -1;
    uint64_t seen = 0;
    for (int i = 0; i < g->count; i++) {
        if (!ready(g, i, done))
            continue;
        if (settings.policy == POLICY_EAGER)
            return i;
        if (settings.policy == POLICY_LAZY || random_next() % ++seen == 0)
            chosen = i;
    }
    return chosen;
}

CUresult cuGraphLaunch(CUgraphExec handle, CUstream stream_handle) {
    graph *g;
    stream *s;
    bool *done;
    CUresult code = CUDA_SUCCESS;
    ENTER(NEED_HEALTHY);
    g = object_get(handle, KIND_EXEC);
    s = stream_get(stream_handle);
    if (!g || !s)
        return g ? CUDA_ERROR_INVALID_HANDLE : CUDA_ERROR_INVALID_VALUE;
    if (s->capture)
        return capture_forbids_stream(s); /* child graphs are not simulated */
    if (!(done = calloc((size_t)g->count + 1, sizeof *done)))
        return CUDA_ERROR_OUT_OF_MEMORY;
    for (int n = 0; n < g->count && code == CUDA_SUCCESS; n++) {
        int i = choose(g, done);
        op o = copy_of(&g->nodes[i]->op);
        done[i] = true;
        if (o.kind == OP_COPY && o.copy.dst_host)
            copy_spoil(&o.copy);
        code = stream_push(s, &o);
    }
    free(done);
    return code;
}

CUresult cuGraphUpload(CUgraphExec handle, CUstream stream_handle) {
    ENTER(NEED_HEALTHY);
    return object_get(handle, KIND_EXEC) && stream_get(stream_handle) ? CUDA_SUCCESS
                                                                      : CUDA_ERROR_INVALID_VALUE;
}
