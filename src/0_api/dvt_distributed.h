/* [dvt:distributed] Training in parts, whose result does not depend on the number of contexts; and
   training by several processes. docs/DISTRIBUTED.md has whole programs. */

/* ---- parts: the same bits for any number of contexts and processes ---- */
/* Cuts every batch into `parts` parts, whatever computes them; 0 (the default): off. 12 parts suit
   1, 2, 3, 4, 6 or 12 contexts. A batch of n rows begins part i at row floor(i n / parts). A step
   adds up the gradients of the parts in one fixed order, a binary tree over their numbers. So
   weights have the same bits on all lists of CPUs and virtual GPUs, and on all lists of GPUs of one
   model. Seed and ISA target must be equal.
   Random numbers of a part (dropout) depend on a key and the number of the part. The key comes from
   the stream of cpu(0), once per batch. Running statistics of batch normalization move once per
   batch: each part starts from those before the batch, and the step stores the mean of the results.
   The collection of the trainer must contain them to that end, as dvt_block_collect_params(net,
   NULL) does.
   Memory: up to 2 log2(parts) copies of the gradients.
   Errors: RANGE (parts: 0 to 4096, a multiple of the number of processes), VALUE (within a
   batch). */
DVT_API dvt_status dvt_trainer_set_parts(dvt_trainer *trainer, int parts);
/* Ends the part before, and starts the next one: writes the rows of x and y to *part_x and *part_y,
   on the context that computes it. Pass the same x and y until it returns false: at the end of the
   batch, or on errors, which dvt_error_code() distinguishes. dvt_trainer_step follows. Contexts
   take turns, so GPUs compute at the same time. Between the calls run forward and backward, once
   for each part. Parameters must have values and shapes: call dvt_block_infer_shapes before the
   first batch.
   Owns: the innermost scope.  Copies: rows to another context.  Waits: no.
   Errors: VALUE (parts are not set; another batch before the step), UNINITIALIZED, SHAPE (x and
   y). */
DVT_API bool dvt_trainer_next_part(dvt_trainer *trainer, dvt_array *x, dvt_array *y,
                                   dvt_array **part_x, dvt_array **part_y);
/* Loops over the parts of a batch, each in a scope of its own. Do not leave the loop before its
   end: the next step would fail, and random numbers would remain those of the part.
     DVT_FOR_TRAINER_PARTS(trainer, x, y, px, py) {
         dvt_array *loss;
         DVT_RECORD { loss = dvt_loss_l2(dvt_block_forward(net, px), py); }
         dvt_backward(loss);
         dvt_trainer_add_loss(trainer, loss);
     }
     dvt_trainer_step(trainer, dvt_dim(x, 0)); */
#define DVT_FOR_TRAINER_PARTS(trainer, x, y, part_x, part_y)                                       \
    DVT_FOR_EACH(dvt_trainer_next_part(trainer, x, y, &(part_x), &(part_y)))
/* Adds the sum of `losses`, in float64, to the losses of the part that runs. Waits: no. Errors:
   VALUE (no part runs). */
DVT_API dvt_status dvt_trainer_add_loss(dvt_trainer *trainer, dvt_array *losses);
/* Returns the losses of the last batch whose gradients were summed: their sum, in the order of the
   gradients, divided by the rows of the batch. NaN before. Copies: one number to host memory.
   Waits: yes. */
DVT_API double dvt_trainer_loss(const dvt_trainer *trainer);

/* ---- processes: data parallelism over many machines ----

   One program runs as n processes, the ranks 0 .. n-1, each with contexts of its own. Compile the
   implementation with MPI's compiler and DEVTENSOR_MPI, and start the program with its launcher:

       mpicc -O2 -c -x c -DDEVTENSOR_MPI -DDEVTENSOR_IMPLEMENTATION devtensor.h -o devtensor.o
       mpicc train.c devtensor.o -o train -lm -ldl -lpthread
       mpirun -np 4 ./train

   After dvt_distributed_init, the same training loop trains one model on all of them:
   - A loader gives each rank its share of every batch, rows floor(r n / ranks) to
     floor((r + 1) n / ranks) of n. The batches and their order are those of one process.
   - A trainer sends the parameters of rank 0 to all ranks, at its first step or part. Every step
     sums gradients and batch sizes over the ranks, so dvt_trainer_step(trainer, dvt_dim(x, 0)) is
     right for any number of ranks. Sums have a fixed order, whatever MPI does: all ranks keep the
     same bits. With dvt_trainer_set_parts they are those of one process. Only with NCCL on GPUs
     (DEVTENSOR_NCCL=1) the order is that of NCCL, and the bits are still the same on all ranks.
   All ranks must make the same calls in the same order. A call that waits for another rank longer
   than DEVTENSOR_RANK_TIMEOUT seconds (600) fails with RANK_LOST, which names that rank. */

/* Joins the processes. Call it before gpu(i) is used. Without DEVTENSOR_MPI it fails, and the
   functions below are those of a single process. If the program has initialized MPI, that is used,
   and the program ends it. Then it may be called again after dvt_distributed_end; trainers that
   outlive a run send the parameters of rank 0 again. Only the thread that called it may call the
   functions that communicate.
   Errors: NOT_BUILT, RANK_LOST (MPI's message), VALUE (called twice). */
DVT_API dvt_status dvt_distributed_init(void);
/* Waits for all ranks and ends MPI. A rank that failed ends all processes instead of waiting.
   Without dvt_distributed_init it does nothing. */
DVT_API dvt_status dvt_distributed_end(void);
/* Return the number of this process, 0 for a single one, and of all processes, 1 for a single
   one. */
DVT_API int dvt_rank(void);
DVT_API int dvt_num_ranks(void);
/* Replaces the values of x on every rank by the sum over the ranks, in a fixed order. x has the
   same shape and dtype on all ranks, and may be on different contexts. Does nothing for one rank.
   Copies: through host memory.  Waits: yes.
   Errors: RANK_LOST, VALUE (ranks with different calls), DTYPE (bool), HOST_MEMORY. */
DVT_API dvt_status dvt_all_reduce_ranks(dvt_array *x);
/* Replaces the values of x on every rank by those on rank `root`. Errors: as above; RANGE
   (root). */
DVT_API dvt_status dvt_broadcast_ranks(dvt_array *x, int root);
/* Waits until every rank has called it. Errors: RANK_LOST. */
DVT_API dvt_status dvt_barrier_ranks(void);
/* Returns the bytes that this process has sent to other ranks so far, or has begun to send. */
DVT_API int64_t dvt_rank_bytes(void);
/* Sets the bytes of the buckets in which a trainer sends gradients while backward runs, 4 MiB by
   default. 0: it sends them in the step. Sums by messages have the same bits. From the third
   step on, a bucket is sent when backward has completed its gradients on all contexts of the
   process; dvt_param_grad is that of this rank until the step. GPUs copy a bucket to host memory,
   or sum it with NCCL, while they compute. Gradients that backward adds (DVT_GRAD_ADD) and those of
   parts are sent in the step. If a gradient changes before the step, because backward runs again or
   the program writes it, the step sends all again. After two such steps in a row, gradients are
   sent in the step until this function sets another value. The same holds when a rank has no memory
   for a bucket. The value of rank 0 counts, up to 1 GiB, but 0 on any rank counts for all. Ranks
   may have the passes of several trainers in different orders: buckets start in that of rank 0.
   Copies: never. Later backward passes copy gradients to buckets on their contexts, and buckets of
   GPUs to host memory.  Waits: no, and neither does backward for other ranks.
   Errors: RANGE (negative). dvt_backward may fail with RANK_LOST while it sends. */
DVT_API dvt_status dvt_trainer_set_bucket_bytes(dvt_trainer *trainer, int64_t bytes);
