/* Writes text with a transformer that PyTorch has trained on the documents of this repository:

     generate [weights [prompt [characters [temperature]]]]

   Temperature 0 always takes the most probable character. */
#define DEVTENSOR_IMPLEMENTATION
#include "transformer.h"

static const char *alphabet;

/* Returns the text as tokens (1, T); NULL if it has a character that the net does not know. */
static dvt_array *encode(const char *text, dvt_ctx ctx) {
    int64_t n = (int64_t)strlen(text), i;
    int64_t *tokens = (int64_t *)malloc((size_t)n * sizeof *tokens + 1);
    dvt_array *x = NULL;
    for (i = 0; tokens && i < n; i++) {
        const char *at = strchr(alphabet, text[i]);
        if (!at) {
            fprintf(stderr,
                    "generate: the net does not know the byte 0x%02x of the prompt; use only %s\n",
                    (unsigned)(unsigned char)text[i], alphabet);
            break;
        }
        tokens[i] = at - alphabet;
    }
    if (tokens && n > 0 && i == n)
        x = dvt_from_host(tokens, DVT_SHAPE(1, n), DVT_I64, ctx);
    free(tokens);
    return x;
}

/* Draws a token from logits (1, T, vocabulary) at the last place, by the Gumbel-max trick. */
static int64_t draw(dvt_array *logits, double temperature) {
    dvt_array *last = dvt_slice(logits, 1, -1, DVT_END, 1);
    if (last && temperature > 0) {
        dvt_array *u = dvt_uniform(0, 1, dvt_shape_of(last), DVT_F32, dvt_ctx_of(last));
        last = dvt_sub(dvt_mul_scalar(last, 1 / temperature), dvt_log(dvt_neg(dvt_log(u))));
    }
    return dvt_item_int(dvt_argmax(last, DVT_ALL));
}

int main(int argc, char **argv) {
    const char *path = argc > 1 ? argv[1] : "tests/golden/torch/transformer.safetensors";
    const char *prompt = argc > 2 ? argv[2] : "The library ";
    long characters = argc > 3 ? strtol(argv[3], NULL, 10) : 300, i;
    double temperature = argc > 4 ? strtod(argv[4], NULL) : 0.5;
    char next[2] = {0, 0};
    dvt_ctx dev = dvt_try_gpu(0);
    dvt_array_list *file = dvt_load_safetensors(path, dvt_cpu());
    dvt_block *net = file ? transformer_load(path, file, dev) : NULL;
    alphabet = file ? dvt_array_list_metadata(file, "vocabulary") : NULL;
    if (!net || !alphabet) {
        if (!file) {
            fprintf(stderr, "generate: %s\n", dvt_error());
            return 1;
        }
        fprintf(stderr,
                "generate: %s is not a transformer of characters; expected a file of "
                "tests/golden/make_torch_transformer.py. %s\n",
                path, dvt_error());
        return 1;
    }
    if (!*prompt) {
        fputs("generate: the prompt is empty; give at least one character\n", stderr);
        return 1;
    }
    if (!encode(prompt, dev))
        return 1;
    transformer_remember(net, true);
    fputs(prompt, stdout);
    for (i = 0; i < characters; i++) {
        DVT_SCOPED;
        dvt_array *x = encode(prompt, dev), *logits = x ? dvt_block_forward(net, x) : NULL;
        int64_t token = logits ? draw(logits, temperature) : -1;
        if (token < 0 || token >= (int64_t)strlen(alphabet)) {
            if (dvt_error_code() != DVT_OK)
                fprintf(stderr, "generate: %s\n", dvt_error());
            return 1;
        }
        next[0] = alphabet[token];
        prompt = next; /* the net remembers what came before */
        fputs(next, stdout);
        fflush(stdout);
    }
    putchar('\n');
    return dvt_error_code() != DVT_OK;
}
