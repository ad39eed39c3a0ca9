/* Graphs as capture.c writes them and graph.c runs them: operations with the indices of their
   dependencies. */
#ifndef SIM_GRAPH_H
#define SIM_GRAPH_H

#include "sim.h"

typedef struct node {
    op op; /* owns its parameters */
    int *after;
    int after_count;
} node;

struct graph { /* KIND_GRAPH, or KIND_EXEC for an executable one */
    object object;
    node **nodes; /* the handle of a node is its address */
    int count, capacity;
};

graph *graph_new(handle_kind kind);
void graph_destroy(graph *g);
/* Adds a node and returns its number. The node takes ownership of the operation's memory. */
int graph_add(graph *g, const op *o, const int *after, int after_count);

#endif
