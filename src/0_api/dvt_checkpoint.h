/* [dvt:checkpoint] Checkpoints: the whole state of a training run in one file.

       dvt_checkpoint c = {0};
       c.net = net;
       c.trainer = trainer;
       c.loader = loader;
       char path[1024];
       if (dvt_checkpoint_latest("run", path, sizeof path))
           dvt_checkpoint_load(&c, path);
       ... train; between two steps:
       c.epoch = epoch;
       c.metric = accuracy;
       dvt_checkpoint_keep_best(&c, "run", 3, DVT_LARGEST);

   Files are safetensors with metadata and a checksum of everything in them. A file is replaced when
   the new one is complete and on the disk: a killed process leaves the old or the new one. On the
   same contexts, a resumed run computes the same bits as one that was not interrupted. */

/* The parts of a run. All zeros is an empty checkpoint with the random state. Saving reads the
   fields. Loading fills the objects, arrays and numbers that they name, and sets epoch, step and
   metric. Parts of a file that the descriptor does not name are skipped: with net alone and
   no_random, a checkpoint gives the net for inference. */
typedef struct dvt_checkpoint {
    dvt_block *net;           /* values of all parameters; of every context where they differ */
    dvt_trainer *trainer;     /* states and step counts, learning rate, settings of the optimizer,
                                 the loss scale of mixed precision */
    dvt_loader *loader;       /* epoch, position and seed */
    int64_t epoch;            /* the caller's; a loader has its own */
    int64_t step;             /* the caller's; 0, or still loaded_step: the steps of the trainer */
    double metric;            /* for dvt_checkpoint_keep_best */
    dvt_array *const *arrays; /* the caller's arrays: loading writes into them */
    const char *const *array_names;
    int n_arrays;
    double *numbers; /* the caller's numbers */
    const char *const *number_names;
    int n_numbers;
    bool no_random; /* leave out the streams and seeds of random numbers (dropout uses them) */
    /* loading */
    dvt_ctx_list ctxs;   /* of the net; an empty list: where it is, or the default context */
    bool other_settings; /* keep the optimizer's settings where they differ from the file's */
    int64_t loaded_step; /* set by loading: the step, if it is that of the trainer, else 0 */
} dvt_checkpoint;

/* Saves the parts to a file, as safetensors whatever its name ends with. Call it between two steps:
   gradients are not saved. Copies: to host memory.  Waits: yes.
   Errors: IO, NAME (names of arrays and numbers), UNINITIALIZED (a parameter without values),
   NULL_ARGUMENT, memory. */
DVT_API dvt_status dvt_checkpoint_save(const dvt_checkpoint *c, const char *path);
/* Restores the parts from a file. The net need not be initialized. Nothing changes on failure, and
   one error lists all that differs: names, shapes, dtypes, the number of parameters, and settings
   of the optimizer and the loader. The base learning rate is the file's.
   On another number of contexts than before, copies that differed (running statistics) become their
   mean. Later bits then depend on how batches are split. Call dvt_block_set_mixed_precision before.
   Errors: IO, FORMAT (no checkpoint, or damaged), NAME, SHAPE, DTYPE, VALUE (settings), CONTEXT;
   UNINITIALIZED (a trainer whose parameters have no values). */
DVT_API dvt_status dvt_checkpoint_load(dvt_checkpoint *c, const char *path);
/* Finds the complete checkpoint of the directory that is furthest in training: by step, then epoch,
   then time. Writes its path and returns true. Returns false without an error if there is none, or
   no directory. Files that are damaged or cannot be read are skipped, with a warning in the log.
   Errors: IO (the directory, or no checkpoint in it, can be read), RANGE (a longer path than
   `size`), memory. */
DVT_API bool dvt_checkpoint_latest(const char *folder, char *path, size_t size);
/* Saves to checkpoint-STEP.safetensors in a directory, which is created with its parents if it does
   not exist. When the file is on the disk, deletes other checkpoints with such names, except the n
   with the best metrics: the largest, or the smallest. The file just saved always stays, for
   dvt_checkpoint_latest. Also deletes temporary files, .devtensor-*, whose process is not on this
   machine or that have not changed for a day: let one machine write to the directory.
   Errors: RANGE (n < 0), and those of dvt_checkpoint_save; IO also when the directory cannot be
   listed. */
DVT_API dvt_status dvt_checkpoint_keep_best(const dvt_checkpoint *c, const char *folder, int n,
                                            dvt_extreme best);
