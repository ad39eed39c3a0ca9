/* Names the language of lines of text, C, Python, shell or English, with an LSTM that PyTorch has
   trained on the files of this repository:

     language [weights [line...]]

   Without lines, the program reads those in the file of the weights, and compares its results after
   each character with PyTorch's. */
#define DEVTENSOR_IMPLEMENTATION
#include "devtensor.h"
#include <stdio.h>
#include <string.h>

enum { LONGEST = 48 }; /* characters of a line that the net reads */

/* Creates the net and loads its weights: tokens (N, T) give logits (N, T, languages). PyTorch's
   names of an LSTM's parameters lead to those of the net. */
static dvt_block *load(const char *path, dvt_array_list *file, dvt_ctx dev) {
    static const char *const map[] = {"embedding.*",
                                      "0.*",
                                      "lstm.weight_ih_l0",
                                      "1.l0_i2h_weight",
                                      "lstm.weight_hh_l0",
                                      "1.l0_h2h_weight",
                                      "lstm.bias_ih_l0",
                                      "1.l0_i2h_bias",
                                      "lstm.bias_hh_l0",
                                      "1.l0_h2h_bias",
                                      "lstm.weight_ih_l1",
                                      "1.l1_i2h_weight",
                                      "lstm.weight_hh_l1",
                                      "1.l1_h2h_weight",
                                      "lstm.bias_ih_l1",
                                      "1.l1_i2h_bias",
                                      "lstm.bias_hh_l1",
                                      "1.l1_h2h_bias",
                                      "head.*",
                                      "2.*",
                                      "test.*",
                                      "",
                                      NULL};
    dvt_array *embedding = dvt_array_list_find(file, "embedding.weight");
    dvt_array *hidden = dvt_array_list_find(file, "lstm.weight_hh_l0");
    dvt_array *bias = dvt_array_list_find(file, "head.bias");
    dvt_nn_recurrent_desc lstm = {0};
    dvt_nn_dense_desc head = {0};
    dvt_load_options options = {0};
    dvt_block *net = dvt_nn_sequential();
    if (!embedding || !hidden || !bias)
        return NULL;
    lstm.hidden_size = dvt_dim(hidden, 1);
    lstm.layers = 2;
    lstm.layout = DVT_NTC; /* batch_first=True */
    head.units = dvt_dim(bias, 0);
    head.no_flatten = true;
    DVT_NN_ADD(net, dvt_nn_embedding(dvt_dim(embedding, 0), dvt_dim(embedding, 1)),
               dvt_nn_lstm_with(&lstm), dvt_nn_dense_with(&head));
    options.map = map;
    options.cast_dtype = true; /* from float16 */
    return dvt_block_load_with(net, path, &options, DVT_CONTEXTS(dev)) == DVT_OK ? net : NULL;
}

/* Returns the logits (T, languages) after each character. Characters that the net does not know
   count as blanks. */
static dvt_array *read_line(dvt_block *net, const char *line, const char *known, dvt_ctx dev) {
    int64_t tokens[LONGEST];
    int n;
    for (n = 0; n < LONGEST && line[n] && line[n] != '\n'; n++) {
        const char *at = strchr(known, line[n]);
        tokens[n] = at ? at - known : 0;
    }
    if (n == 0)
        tokens[n++] = 0; /* an empty line counts as a blank */
    return dvt_index(dvt_block_forward(net, dvt_from_host(tokens, DVT_SHAPE(1, n), DVT_I64, dev)),
                     0);
}

/* Prints the most probable language after the last character. `languages` has one on each line. */
static void print_language(dvt_array *logits, const char *line, const char *languages) {
    dvt_array *p = dvt_softmax(dvt_index(logits, -1), 0), *index = NULL;
    dvt_array *best = dvt_topk(p, 1, 0, DVT_LARGEST, &index);
    int64_t i = best ? dvt_item_int(index) : 0;
    for (; i > 0 && strchr(languages, '\n'); i--)
        languages = strchr(languages, '\n') + 1;
    if (best)
        printf("%-7.*s %5.1f %%  %.*s\n", (int)strcspn(languages, "\n"), languages,
               100 * dvt_item(best), (int)strcspn(line, "\n"), line);
}

int main(int argc, char **argv) {
    const char *path = argc > 1 ? argv[1] : "tests/golden/torch/language.safetensors";
    const char *known = NULL, *languages = NULL, *line = NULL;
    dvt_ctx dev = dvt_try_gpu(0);
    dvt_array_list *file = dvt_load_safetensors(path, dvt_cpu());
    dvt_block *net = file ? load(path, file, dev) : NULL;
    bool same = true;
    int i;
    if (net) {
        known = dvt_array_list_metadata(file, "characters");
        languages = dvt_array_list_metadata(file, "languages");
        line = dvt_array_list_metadata(file, "lines");
    }
    if (!known || !languages || !line) {
        if (!file) {
            fprintf(stderr, "language: %s\n", dvt_error());
            return 1;
        }
        fprintf(stderr,
                "language: %s is not a net of characters; expected a file of "
                "tests/golden/make_torch_trained.py. %s\n",
                path, dvt_error());
        return 1;
    }
    for (i = 2; i < argc; i++)
        print_language(read_line(net, argv[i], known, dev), argv[i], languages);
    for (i = 0; argc <= 2 && line; i++) {
        char name[16];
        dvt_array *logits = read_line(net, line, known, dev), *expected;
        snprintf(name, sizeof name, "test.%d", i);
        expected = dvt_array_list_find(file, name);
        print_language(logits, line, languages);
        same &=
            dvt_allclose(dvt_as_in_ctx(logits, dvt_cpu()), expected, 1e-5, 1e-4, DVT_NAN_DIFFERS);
        line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL;
    }
    if (argc <= 2)
        printf("%d lines, %s\n", i, same ? "all logits as PyTorch's" : "other logits than PyTorch");
    if (dvt_error_code() != DVT_OK)
        fprintf(stderr, "language: %s\n", dvt_error());
    return dvt_error_code() != DVT_OK || !same;
}
