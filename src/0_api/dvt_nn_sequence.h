/* [dvt:sequence] Blocks and operations for sequences: recurrent layers, attention.

   Owns: new objects belong to the innermost scope. */

/* ---- recurrent layers, with Gluon's names and PyTorch's formulas ---- */
/* Selects the order of axes. */
typedef enum dvt_sequence_layout {
    DVT_TNC, /* (time, batch, channels), Gluon's default */
    DVT_NTC  /* (batch, time, channels) */
} dvt_sequence_layout;

/* Create recurrent layers on (T, N, C), with results (T, N, hidden_size) and zeros as first states:

     RNN    h' = tanh(i2h(x) + h2h(h))
     LSTM   i, f, o = sigmoid(..), g = tanh(..) of i2h(x) + h2h(h), in the order i, f, g, o
            c' = f c + i g,  h' = o tanh(c')
     GRU    r, z = sigmoid(i2h(x) + h2h(h)), n = tanh(i2h(x) + r h2h(h)), in the order r, z, n
            h' = (1 - z) n + z h

   Parameters: l0_i2h_weight (gates * hidden_size, C), l0_h2h_weight (gates * hidden_size,
   hidden_size), l0_i2h_bias, l0_h2h_bias, and l1_.. of the next layer. r0_.. belong to the reverse
   direction. The biases begin at 0. PyTorch calls them weight_ih_l0, weight_hh_l0, bias_ih_l0,
   bias_hh_l0, weight_ih_l0_reverse: dvt_load_options.map.
   Errors of forward: SHAPE (no axes T, N, C; no time step).
   Source: Elman, 1990; Hochreiter and Schmidhuber, 1997; Cho et al., 2014, with the reset gate
   after the product, as cuDNN. */
DVT_API dvt_block *dvt_nn_rnn(int64_t hidden_size);
DVT_API dvt_block *dvt_nn_lstm(int64_t hidden_size);
DVT_API dvt_block *dvt_nn_gru(int64_t hidden_size);

/* Options of recurrent layers. */
typedef struct dvt_nn_recurrent_desc {
    int64_t hidden_size; /* required */
    int64_t input_size;  /* 0: inferred */
    int layers;          /* 0: 1 */
    /* a second pass from the last step to the first; results and states have both directions */
    bool bidirectional;
    double dropout; /* of the results between two layers, in train mode */
    dvt_sequence_layout layout;
    dvt_activation activation; /* of dvt_nn_rnn: DVT_TANH (also 0) or DVT_RELU, Gluon's default */
    bool no_bias;
    dvt_init i2h_weight_init, h2h_weight_init, i2h_bias_init, h2h_bias_init;
    dvt_dtype dtype;
} dvt_nn_recurrent_desc;

/* Create the blocks with all options. The results of both directions are joined on the last axis:
   (T, N, 2 * hidden_size). */
DVT_API dvt_block *dvt_nn_rnn_with(const dvt_nn_recurrent_desc *desc);
DVT_API dvt_block *dvt_nn_lstm_with(const dvt_nn_recurrent_desc *desc);
DVT_API dvt_block *dvt_nn_gru_with(const dvt_nn_recurrent_desc *desc);

/* Does dvt_block_forward from the given states and also returns the last ones. n is the number of
   states: 1 (h), or 2 (h, c) for an LSTM. Each has the shape (layers * directions, N, hidden_size);
   the direction changes first, then the layer. The states are those after the last step of each
   direction.
   states: NULL means zeros.  next: NULL, or receives n states; it may be `states`. It is not
   written if the call fails.
   Differentiable. Detach the states (dvt_detach) to end gradients between two parts of a sequence.
   Errors: as dvt_block_forward, VALUE (block is no recurrent layer), RANGE (n), SHAPE (a state). */
DVT_API dvt_array *dvt_recurrent_forward(dvt_block *block, dvt_array *x, dvt_array *const *states,
                                         int n, dvt_array **next);

/* ---- attention ---- */
/* Options of dvt_attention. */
typedef struct dvt_attention_options {
    /* query i sees the keys up to i + Tk - Tq: the last query sees all keys. PyTorch's is_causal
       aligns the first query with the first key; both are the same for Tq == Tk. */
    bool causal;
    double scale;   /* of the products q k'; 0: 1 / sqrt(size) */
    double dropout; /* of the weights, in train mode */
} dvt_attention_options;

/* Computes softmax(scale q k' + mask) v, as PyTorch's scaled_dot_product_attention.
   mask: NULL, bool (true: attend), or float, which is added. -INFINITY in it forbids a key. It
   broadcasts to (N, heads, Tq, Tk). A query without any allowed key gives zeros.
   Shapes: q (N, heads, Tq, size), k (N, groups, Tk, size), v (N, groups, Tk, values) give (N,
   heads, Tq, values). groups divides heads; groups < heads means that consecutive heads share keys.
   Dtypes: float16 and bfloat16 are computed in float32 and rounded once.
   Differentiable.  Waits: no.  Errors: SHAPE, DTYPE (mask), RANGE (options).
   Source: Vaswani et al., 2017. */
DVT_API dvt_array *dvt_attention(dvt_array *q, dvt_array *k, dvt_array *v, dvt_array *mask,
                                 const dvt_attention_options *options);

/* Options of dvt_rotary. */
typedef struct dvt_rotary_options {
    /* NULL: offset, offset + 1, ..; else it broadcasts to x's shape without the last axis */
    dvt_array *positions;
    int64_t offset;
    double base;      /* 0: 10000 */
    bool interleaved; /* pairs of adjacent elements; false: element i and i + size / 2 */
} dvt_rotary_options;

/* Rotates pair i of each row of x (..., T, size) by the angle position * base^(-2i / size).
   `options` may be NULL. Angles are computed in float64; float16 and bfloat16 are computed in
   float32 and rounded once. Differentiable in x.  Waits: no.  Errors: SHAPE (an odd size,
   positions), RANGE (base).
   Source: Su et al., 2021. */
DVT_API dvt_array *dvt_rotary(dvt_array *x, const dvt_rotary_options *options);
