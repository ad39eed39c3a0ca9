/* A decoder-only transformer as in Llama: RMS norms, rotary positions, grouped heads, SwiGLU. Reads
   the weights that tests/golden/make_torch_transformer.py saves from PyTorch. */
#ifndef TRANSFORMER_H
#define TRANSFORMER_H
#include "devtensor.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TRANSFORMER_LAYERS = 64, TRANSFORMER_PARTS = 9 }; /* most layers; children of a layer */

typedef struct transformer_layer {
    int64_t heads, groups;
    bool remember;
    dvt_array *keys, *values; /* of all tokens so far: (N, groups, T, size) */
} transformer_layer;

static inline dvt_array *transformer_part(dvt_block *layer, int i, dvt_array *x) {
    return dvt_block_forward(dvt_block_at(layer, i), x);
}

/* Returns x (N, T, heads * size) as (N, heads, T, size). */
static inline dvt_array *transformer_heads(dvt_array *x, int64_t heads) {
    if (!x)
        return NULL;
    x = dvt_reshape(x, DVT_SHAPE(dvt_dim(x, 0), dvt_dim(x, 1), heads, dvt_dim(x, 2) / heads));
    return dvt_transpose(x, DVT_AXES(0, 2, 1, 3));
}

/* Appends x to *all, which outlives the caller's scope, and returns all of it. */
static inline dvt_array *transformer_append(dvt_array **all, dvt_array *x) {
    dvt_array *both[2];
    both[0] = *all;
    both[1] = x;
    if (*all)
        x = dvt_concat(both, 2, 2);
    if (x) {
        dvt_retain(x);
        if (*all)
            dvt_release(*all);
        *all = x;
    }
    return x;
}

static inline dvt_array *transformer_layer_forward(dvt_block *self, void *user, dvt_array *x) {
    transformer_layer *layer = (transformer_layer *)user;
    dvt_rotary_options position;
    dvt_attention_options attention;
    dvt_array *h = transformer_part(self, 0, x), *q, *k, *v;
    memset(&position, 0, sizeof position);
    memset(&attention, 0, sizeof attention);
    position.offset = layer->keys ? dvt_dim(layer->keys, 2) : 0;
    attention.causal = true;
    q = dvt_rotary(transformer_heads(transformer_part(self, 1, h), layer->heads), &position);
    k = dvt_rotary(transformer_heads(transformer_part(self, 2, h), layer->groups), &position);
    v = transformer_heads(transformer_part(self, 3, h), layer->groups);
    if (layer->remember) {
        k = transformer_append(&layer->keys, k);
        v = transformer_append(&layer->values, v);
    }
    h = dvt_transpose(dvt_attention(q, k, v, NULL, &attention), DVT_AXES(0, 2, 1, 3));
    x = dvt_add(x, transformer_part(self, 4, dvt_reshape(h, dvt_shape_of(x))));
    h = transformer_part(self, 5, x);
    h = dvt_mul(dvt_silu(transformer_part(self, 6, h)), transformer_part(self, 7, h));
    return dvt_add(x, transformer_part(self, 8, h));
}

static inline void transformer_forget(transformer_layer *layer) {
    if (layer->keys)
        dvt_release(layer->keys);
    if (layer->values)
        dvt_release(layer->values);
    layer->keys = layer->values = NULL;
}

static inline void transformer_layer_release(void *user) {
    transformer_forget((transformer_layer *)user);
    free(user);
}

static inline dvt_block *transformer_dense(int64_t units) {
    dvt_nn_dense_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.units = units;
    desc.no_bias = desc.no_flatten = true;
    return dvt_nn_dense_with(&desc);
}

static inline dvt_block *transformer_layer_new(int64_t units, int64_t heads, int64_t groups,
                                               int64_t hidden) {
    dvt_block_desc desc;
    dvt_block *self;
    transformer_layer *layer = (transformer_layer *)calloc(1, sizeof *layer);
    if (!layer)
        return NULL;
    layer->heads = heads;
    layer->groups = groups;
    memset(&desc, 0, sizeof desc);
    desc.kind = "TransformerLayer";
    desc.forward = transformer_layer_forward;
    desc.release = transformer_layer_release;
    desc.user = layer;
    self = dvt_block_new(&desc);
    if (!self) {
        free(layer);
        return NULL;
    }
    dvt_block_add_child(self, dvt_nn_rms_norm(1e-5));
    dvt_block_add_child(self, transformer_dense(units));
    dvt_block_add_child(self, transformer_dense(units / heads * groups));
    dvt_block_add_child(self, transformer_dense(units / heads * groups));
    dvt_block_add_child(self, transformer_dense(units));
    dvt_block_add_child(self, dvt_nn_rms_norm(1e-5));
    dvt_block_add_child(self, transformer_dense(hidden));
    dvt_block_add_child(self, transformer_dense(hidden));
    dvt_block_add_child(self, transformer_dense(units));
    return self;
}

/* Forgets all tokens. With `on`, each forward call continues the tokens of the calls before: a
   character of a text then takes one token's work, not that of the whole text. */
static inline void transformer_remember(dvt_block *net, bool on) {
    int i;
    for (i = 1; i < dvt_block_len(net) - 2; i++) {
        transformer_layer *layer = (transformer_layer *)dvt_block_user(dvt_block_at(net, i));
        transformer_forget(layer);
        layer->remember = on;
    }
}

static inline int64_t transformer_number(const dvt_array_list *file, const char *key) {
    const char *text = dvt_array_list_metadata(file, key);
    return text ? strtoll(text, NULL, 10) : 0;
}

/* Creates the net of that file, which `file` lists, and loads its weights to `ctx`. Tokens (N, T)
   give logits (N, T, vocabulary). Returns NULL if the file does not fit. */
static inline dvt_block *transformer_load(const char *path, dvt_array_list *file, dvt_ctx ctx) {
    static const char *const parts[TRANSFORMER_PARTS] = {
        "input_norm",       "attention.q_proj", "attention.k_proj",
        "attention.v_proj", "attention.o_proj", "output_norm",
        "mlp.gate_proj",    "mlp.up_proj",      "mlp.down_proj"};
    static char names[TRANSFORMER_LAYERS * TRANSFORMER_PARTS][2][64];
    static const char *map[2 * (TRANSFORMER_LAYERS * TRANSFORMER_PARTS + 3) + 1];
    dvt_array *embedding = dvt_array_list_find(file, "embedding.weight");
    dvt_array *gate = dvt_array_list_find(file, "layers.0.mlp.gate_proj.weight");
    int64_t layers = transformer_number(file, "layers"), units;
    int64_t heads = transformer_number(file, "heads"), groups = transformer_number(file, "groups");
    char norm[64], head[64];
    dvt_load_options options;
    dvt_block *net = dvt_nn_sequential();
    int i, j, n = 0;
    if (!net || !embedding || dvt_ndim(embedding) != 2 || !gate || layers < 1 ||
        layers > TRANSFORMER_LAYERS || heads < 1 || groups < 1 || heads % groups)
        return NULL;
    units = dvt_dim(embedding, 1);
    if (units % heads)
        return NULL;
    dvt_block_add_child(net, dvt_nn_embedding(dvt_dim(embedding, 0), units));
    for (i = 0; i < (int)layers; i++) {
        dvt_block_add_child(net, transformer_layer_new(units, heads, groups, dvt_dim(gate, 0)));
        for (j = 0; j < TRANSFORMER_PARTS; j++, n++) {
            char *from = names[n][0], *to = names[n][1];
            snprintf(from, 64, "layers.%d.%s.weight", i, parts[j]);
            snprintf(to, 64, "%d.%d.%s", i + 1, j, j == 0 || j == 5 ? "gamma" : "weight");
            map[2 * n] = from;
            map[2 * n + 1] = to;
        }
    }
    dvt_block_add_child(net, dvt_nn_rms_norm(1e-5));
    dvt_block_add_child(net, transformer_dense(dvt_dim(embedding, 0)));
    snprintf(norm, sizeof norm, "%d.gamma", i + 1);
    snprintf(head, sizeof head, "%d.weight", i + 2);
    n *= 2;
    map[n++] = "norm.weight";
    map[n++] = norm;
    map[n++] = "embedding.weight"; /* sets both parameters */
    map[n++] = "0.weight";
    map[n++] = "embedding.weight";
    map[n++] = head;
    map[n] = NULL;
    memset(&options, 0, sizeof options);
    options.map = map;
    options.cast_dtype = true; /* from float16 */
    return dvt_block_load_with(net, path, &options, DVT_CONTEXTS(ctx)) == DVT_OK ? net : NULL;
}

#endif
