/* Reports each leaf's gradient as soon as a backward pass has it complete: when the last operation
   that reads the leaf has passed its gradient on. Training by several processes sends it then. */
#include "5_grad/dvt_grad.h"

static DVTI_TLS const dvti_grad_watch *dvti_grad_the_watch;

DVTI_FN void dvti_watch_gradients(const dvti_grad_watch *watch) {
    dvti_grad_the_watch = watch;
}

DVTI_FN void dvti_watch_begin(dvti_graph *graph) {
    size_t at;
    int i;
    graph->watched = dvti_grad_the_watch != NULL;
    for (at = 0; graph->watched && at < graph->count; at++) {
        const dvti_node *node = graph->slots[at].node;
        for (i = 0; node && i < node->n_in; i++) {
            dvti_slot *input = dvti_graph_slot(graph, node, node->in[i]);
            if (input && input->leaf)
                input->last = at + 1;
        }
    }
}

DVTI_FN bool dvti_watch_step(dvti_graph *graph, size_t at) {
    const dvti_node *node = graph->slots[at].node;
    bool good = true;
    int i;
    for (i = 0; node && i < node->n_in && good; i++) {
        dvti_slot *input = dvti_graph_slot(graph, node, node->in[i]);
        if (!input || !input->leaf || input->last != at + 1)
            continue;
        input->last = 0; /* the node may read it twice */
        if (input->grad && !dvti_leaf_adds(input->leaf))
            good = dvti_grad_the_watch->complete(dvti_grad_the_watch->user, graph->name,
                                                 input->leaf, input->grad);
    }
    return good;
}
