/* [dvt:loss] Losses: one value per sample, shape (N).

       loss = dvt_loss_softmax_cross_entropy(dvt_block_forward(net, x), y);
       dvt_backward(loss);
       dvt_trainer_step(trainer, dvt_dim(x, 0)); // divides by the batch size

   Gradients flow into prediction only, unless a comment says otherwise. Losses of float16 and
   bfloat16 are computed in float32 and rounded once. Any function that returns an array is a loss
   too. Errors: as operations. */

/* Computes -log softmax(prediction)[label] over the last axis, and its mean over all axes between.
   label holds class indices (N, ...) of any dtype, or probabilities in prediction's shape; its
   shape decides.
   Errors: RANGE (a class index on a CPU outside 0 .. classes - 1). A GPU is not asked, because that
   would wait: negative indices count from the end, others are clamped. */
DVT_API dvt_array *dvt_loss_softmax_cross_entropy(dvt_array *prediction, dvt_array *label);

/* Options of dvt_loss_softmax_cross_entropy_with. */
typedef struct dvt_cross_entropy_options {
    bool from_logits;       /* prediction has log-probabilities, as Gluon's from_logits=True */
    double label_smoothing; /* 0 to 1: this share of each label is spread evenly over the classes */
    dvt_array *class_weight; /* NULL, or (classes): factors on the labels' terms */
    bool ignore;             /* class indices that equal ignore_index do not count */
    int64_t ignore_index;    /* with `ignore`; any number, -1 for example */
} dvt_cross_entropy_options;

/* Does the same with options (NULL: all zeros). Each term of a label is multiplied by its class's
   weight, as in PyTorch.
   Shapes: the value of a sample is the sum of its terms divided by the number of its positions that
   count: weights do not change the divisor. A sample without such a position gives 0. PyTorch's
   mean over a batch divides by the weights of all positions instead. To get it, flatten prediction
   to (N * positions, classes), and divide the sum of the losses by that of the weights.
   Errors: RANGE (label_smoothing), SHAPE (class_weight), VALUE (ignore with probabilities). */
DVT_API dvt_array *dvt_loss_softmax_cross_entropy_with(dvt_array *prediction, dvt_array *label,
                                                       const dvt_cross_entropy_options *options);
/* Computes -prediction[label] of log-probabilities. label: as dvt_loss_softmax_cross_entropy. */
DVT_API dvt_array *dvt_loss_nll(dvt_array *prediction, dvt_array *label);

/* ---- prediction and label have as many elements. Labels are reshaped to prediction's shape, as in
   Gluon: (N) and (N, 1) are the same labels. The value is the mean over all axes but the first.
   ---- */
/* Compute |p - l|, and (p - l)^2 / 2. */
DVT_API dvt_array *dvt_loss_l1(dvt_array *prediction, dvt_array *label);
DVT_API dvt_array *dvt_loss_l2(dvt_array *prediction, dvt_array *label);
/* Computes d^2 / (2 rho) for |d| up to rho, and |d| - rho / 2 beyond. rho is 1 in Gluon. Errors:
   RANGE (rho <= 0). */
DVT_API dvt_array *dvt_loss_huber(dvt_array *prediction, dvt_array *label, double rho);
/* Computes the binary cross-entropy of logits: relu(p) - p l + log(1 + exp(-|p|)). */
DVT_API dvt_array *dvt_loss_sigmoid_bce(dvt_array *prediction, dvt_array *label);
/* Does the same with a factor on the terms of positive labels: -w l log(s) - (1 - l) log(1 - s), s
   = sigmoid(p). pos_weight broadcasts to prediction's shape. Errors: SHAPE. */
DVT_API dvt_array *dvt_loss_sigmoid_bce_weighted(dvt_array *prediction, dvt_array *label,
                                                 dvt_array *pos_weight);
/* Computes the Kullback-Leibler divergence l (log(l) - p) of probabilities l, 0 where l is 0.
   prediction has log-probabilities with from_logits, as in Gluon; otherwise log softmax over the
   last axis is applied first. The mean is over classes too: PyTorch's "batchmean" is the sum. */
DVT_API dvt_array *dvt_loss_kl_div(dvt_array *prediction, dvt_array *label, bool from_logits);
/* Compute max(0, margin - p l) for labels -1 and 1, and its square. margin is 1 in Gluon. */
DVT_API dvt_array *dvt_loss_hinge(dvt_array *prediction, dvt_array *label, double margin);
DVT_API dvt_array *dvt_loss_squared_hinge(dvt_array *prediction, dvt_array *label, double margin);
/* Computes the negative log-likelihood of counts without the term log(l!): exp(p) - l p with
   from_logits, where p is the logarithm of the rate; otherwise p - l log(p + 1e-8). */
DVT_API dvt_array *dvt_loss_poisson_nll(dvt_array *prediction, dvt_array *label, bool from_logits);

/* ---- of embeddings. Gradients flow into all of them. ---- */
/* Computes max(0, margin + sum((positive - prediction)^2 - (negative - prediction)^2)) over all
   axes but the first, as Gluon. margin is 1 there. Errors: SHAPE (three different shapes). */
DVT_API dvt_array *dvt_loss_triplet(dvt_array *prediction, dvt_array *positive, dvt_array *negative,
                                    double margin);
/* Computes 1 - cos for labels 1, and max(0, cos - margin) for others, with the cosine of the angle
   between a and b (N, ..., features) over the last axis. label has one value for each cosine.
   margin is 0 in Gluon. A vector of zeros has cosine 0. Errors: SHAPE. */
DVT_API dvt_array *dvt_loss_cosine_embedding(dvt_array *a, dvt_array *b, dvt_array *label,
                                             double margin);
