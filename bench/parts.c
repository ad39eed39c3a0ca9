/* Measures what training in parts costs (dvt_trainer_set_parts): a step of LeNet on cpu() without
   parts, with 4 and with 12, interleaved in each round.

     DEVTENSOR_NUM_THREADS=1 make bench-parts */
#include "examples/lenet.h"

#define ROUNDS 25
#define WAYS 3

static const int parts_of[WAYS] = {0, 4, 12};

typedef struct way {
    dvt_block *net;
    dvt_trainer *trainer;
    double seconds[ROUNDS];
} way;

static way new_way(int parts) {
    way w;
    memset(&w, 0, sizeof w);
    dvt_seed(1);
    w.net = lenet();
    must(dvt_block_initialize(w.net, dvt_init_xavier(), DVT_CONTEXTS(dvt_cpu())) == DVT_OK &&
             dvt_block_infer_shapes(w.net, DVT_SHAPE(1, 1, 28, 28), DVT_F32, NULL) == DVT_OK,
         "the net");
    w.trainer = dvt_trainer_new(dvt_block_collect_params(w.net, NULL), dvt_optimizer_sgd(0.05));
    must(w.trainer && dvt_trainer_set_parts(w.trainer, parts) == DVT_OK, "the trainer");
    return w;
}

static void train_part(way *w, dvt_array *x, dvt_array *y) {
    dvt_array *loss = NULL;
    DVT_RECORD {
        loss = dvt_loss_softmax_cross_entropy(dvt_block_forward(w->net, x), y);
    }
    must(dvt_backward(loss) == DVT_OK, "dvt_backward");
}

static void step(way *w, bool in_parts, dvt_array *x, dvt_array *y) {
    dvt_array *px, *py;
    if (!in_parts)
        train_part(w, x, y);
    else
        DVT_FOR_TRAINER_PARTS(w->trainer, x, y, px, py) {
            train_part(w, px, py);
        }
    must(dvt_trainer_step(w->trainer, dvt_dim(x, 0)) == DVT_OK, "dvt_trainer_step");
}

static int by_size(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void measure(int64_t rows) {
    way ways[WAYS];
    dvt_array *x = dvt_uniform(0, 1, DVT_SHAPE(rows, 1, 28, 28), DVT_F32, dvt_cpu());
    dvt_array *y = dvt_randint(0, 10, DVT_SHAPE(rows), DVT_I32, dvt_cpu());
    int round, k;
    must(x && y, "the batch");
    for (k = 0; k < WAYS; k++)
        ways[k] = new_way(parts_of[k]);
    for (round = -2; round < ROUNDS; round++)
        for (k = 0; k < WAYS; k++)
            DVT_SCOPE {
                double begin = dvt_seconds();
                step(&ways[k], parts_of[k] > 0, x, y);
                if (round >= 0)
                    ways[k].seconds[round] = dvt_seconds() - begin;
            }
    printf("| %d |", (int)rows);
    for (k = 0; k < WAYS; k++) {
        qsort(ways[k].seconds, ROUNDS, sizeof(double), by_size);
        printf(k ? " %.2f |" : " %.2f ms |",
               ways[k].seconds[ROUNDS / 2] / (k ? ways[0].seconds[ROUNDS / 2] : 1e-3));
    }
    puts("");
}

int main(void) {
    static const int64_t rows[] = {48, 240, 768};
    size_t i;
    puts("| rows of a batch | without parts | 4 parts | 12 parts |\n|---|---|---|---|");
    for (i = 0; i < sizeof rows / sizeof rows[0]; i++)
        DVT_SCOPE {
            measure(rows[i]);
        }
    return 0;
}
