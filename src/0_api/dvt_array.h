/* [dvt:array] Arrays: creation, inspection, views, copies.

   Unless a comment says otherwise, for each function here:
   Copies: never between contexts.  Waits: no.
   Owns: the result belongs to the innermost scope.
   Errors: NULL_ARGUMENT, and NULL is returned. Creation also gives HOST_MEMORY, DEVICE_MEMORY,
   NO_DEVICE, SHAPE (negative extents, more than 8, or more bytes than 2^63). */

/* ---- creation: shape, dtype, context; a zero dvt_ctx means the default context ---- */

/* Allocates an array whose values are not set. */
DVT_API dvt_array *dvt_empty(dvt_shape shape, dvt_dtype dtype, dvt_ctx ctx);
/* Create an array of zeros, of ones, of one value converted to the dtype. */
DVT_API dvt_array *dvt_zeros(dvt_shape shape, dvt_dtype dtype, dvt_ctx ctx);
DVT_API dvt_array *dvt_ones(dvt_shape shape, dvt_dtype dtype, dvt_ctx ctx);
DVT_API dvt_array *dvt_full(dvt_shape shape, double value, dvt_dtype dtype, dvt_ctx ctx);
/* Create an array with the shape, dtype and context of x. The values of x are not read. */
DVT_API dvt_array *dvt_zeros_like(dvt_array *x);
DVT_API dvt_array *dvt_ones_like(dvt_array *x);
DVT_API dvt_array *dvt_full_like(dvt_array *x, double value);
/* Creates an array of one element without axes. */
DVT_API dvt_array *dvt_scalar(double value, dvt_dtype dtype, dvt_ctx ctx);
/* Creates a (rows, columns) matrix with ones on diagonal k, else zeros. k 0 is the main diagonal;
   positive k are above it. */
DVT_API dvt_array *dvt_eye(int64_t rows, int64_t columns, int64_t k, dvt_dtype dtype, dvt_ctx ctx);
/* Creates start, start + step, ... before stop: max(0, ceil((stop - start) / step)) values. Errors:
   VALUE (step 0 or NaN). */
DVT_API dvt_array *dvt_arange(double start, double stop, double step, dvt_dtype dtype, dvt_ctx ctx);
/* Creates `num` evenly spaced values from start to stop, both included. Errors: RANGE (num < 0). */
DVT_API dvt_array *dvt_linspace(double start, double stop, int64_t num, dvt_dtype dtype,
                                dvt_ctx ctx);
/* Creates an array from the elements at `data`, in C order and of that dtype.
   Copies: from host memory to ctx.  Waits: only for the copy; data may be changed or freed
   afterwards. */
DVT_API dvt_array *dvt_from_host(const void *data, dvt_shape shape, dvt_dtype dtype, dvt_ctx ctx);

/* Returns memory to its owner. Runs on the thread that releases the last array on the memory. It
   may release arrays, and must not call other functions of the library. */
typedef void (*dvt_release_fn)(void *user);
/* Creates an array on memory of the caller. It is written by functions that write in place, and by
   no others. On cpu() and virtual GPUs this is host memory, on a CUDA GPU memory of that GPU.
   `data` points to the element whose indices are 0. `strides` are in elements and may be negative
   or 0; NULL: C order. bool elements are bytes of 0 or 1.
   The library calls release(user) once: when the last array, view and recorded operation that needs
   the memory is gone, and the queued work that uses it is done. A failed call never calls it. NULL:
   the memory outlives all of them.
   If several indices may reach one element, the array is for reading only, as a broadcast view. Two
   such arrays on the same memory count as different blocks: dvt_shares_memory returns false, and a
   backward pass does not notice writes through the other one (see dvt_mark_written).
   Copies: never.  Waits: no, but releasing it waits for its GPU.
   Owns: the caller owns the memory, which dvt_memory_query and memory limits leave out.
   Errors: VALUE (data is no multiple of the dtype's size; not memory of that GPU), RANGE (strides
   beyond the address space). */
DVT_API dvt_array *dvt_from_memory(void *data, dvt_shape shape, const int64_t *strides,
                                   dvt_dtype dtype, dvt_release_fn release, void *user,
                                   dvt_ctx ctx);

/* Creates an array from values in C order, one per element. The C type gives the dtype:
     dvt_array *x = DVT_ARRAY(float, DVT_SHAPE(2, 3), dvt_gpu(0), 1, 2, 3, 4, 5, 6);
   T is bool, float, double, signed or unsigned char, int, int32_t or int64_t. Other types do not
   compile, except larger unsigned integers in C, which give the error DTYPE.
   Errors: SHAPE (another number of values). */
#define DVT_ARRAY(T, shape, ctx, ...)                                                              \
    dvt_from_values(DVT_VALUES(T, __VA_ARGS__), shape, DVT_DTYPE_OF(T), ctx)

/* ---- inspection; NULL gives an empty shape, 0, or the zero value. Copies: never. Waits: no.
   ---- */

/* Return the shape and the number of axes. */
DVT_API dvt_shape dvt_shape_of(const dvt_array *x);
DVT_API int dvt_ndim(const dvt_array *x);
/* Returns the extent of one axis; negative axes count from the end. Errors: AXIS, and -1 is
   returned. */
DVT_API int64_t dvt_dim(const dvt_array *x, int axis);
/* Return the number of elements, their bytes (dvt_size times the bytes of one element), the dtype,
   the context. */
DVT_API int64_t dvt_size(const dvt_array *x);
DVT_API int64_t dvt_nbytes(const dvt_array *x);
DVT_API dvt_dtype dvt_dtype_of(const dvt_array *x);
DVT_API dvt_ctx dvt_ctx_of(const dvt_array *x);
/* Returns the distance between adjacent elements along an axis, in elements. Errors: AXIS, and 0 is
   returned. */
DVT_API int64_t dvt_stride(const dvt_array *x, int axis);
/* Returns whether the elements are contiguous in C order. */
DVT_API bool dvt_is_contiguous(const dvt_array *x);
/* Returns whether both arrays use the same buffer. Their elements need not overlap. */
DVT_API bool dvt_shares_memory(const dvt_array *a, const dvt_array *b);
/* Returns the source location of the call that created x, "main.c:42"; "" if unknown. Owns: x. */
DVT_API const char *dvt_made_at(const dvt_array *x);
/* Returns the address of the first element in host memory, to read or write in place by the
   strides. Valid while x lives. dvt_cuda_address is the same for CUDA GPUs.
   The library does not see these writes: a backward pass that needs a recorded value silently uses
   the new one, unless dvt_mark_written is called after the write.
   Waits: for x.  Errors: CONTEXT for arrays on a GPU (use dvt_to_host or dvt_copyto). */
DVT_API void *dvt_data(dvt_array *x);
/* Declares that elements of x, or of an array that shares its memory, were written through
   dvt_data. A backward pass that needs the old values then fails with GRAD, as after dvt_fill or
   dvt_copy_into. Waits: no.  Errors: NULL_ARGUMENT. */
DVT_API dvt_status dvt_mark_written(dvt_array *x);

/* ---- reading values ---- */

/* Writes all elements in C order to dst, which may have any alignment. `bytes` must be
   dvt_nbytes(x). After a failure, dst may hold a part.
   Copies: to host memory.  Waits: for x.  Errors: RANGE (bytes differ), CONTEXT (transfer
   guard). */
DVT_API dvt_status dvt_to_host(dvt_array *x, void *dst, int64_t bytes);
/* Writes values in C order from host memory into x. `bytes` must be dvt_nbytes(x).
   Copies: to x's context.  Waits: only for the copy.  Errors: RANGE (bytes differ), GRAD (x belongs
   to a recorded computation). */
DVT_API dvt_status dvt_set_from_host(dvt_array *x, const void *src, int64_t bytes);
/* Return the value of an array of one element. Copies: to host memory.  Waits: for x.
   Errors: SHAPE (not exactly one element), CONTEXT (transfer guard); NaN or 0 is returned. */
DVT_API double dvt_item(dvt_array *x);
DVT_API int64_t dvt_item_int(dvt_array *x);
/* Returns the value at an index, one number per axis: dvt_item_at(x, DVT_SHAPE(1, -1)). Negative
   numbers count from the end. Copies, Waits: as dvt_item.  Errors: SHAPE, RANGE, CONTEXT (transfer
   guard); NaN is returned. */
DVT_API double dvt_item_at(dvt_array *x, dvt_shape index);

/* ---- views: another shape and other strides on the same memory. Copies: never. Differentiable.
   ---- */

/* Returns the view x[..., start:stop:step, ...] along one axis, with Python's rules for negative
   and large bounds. Reverses an axis by dvt_slice(x, axis, -1, DVT_END, -1).
   DVT_END as stop means "to the end" in the direction of step. Errors: AXIS, VALUE (step 0). */
#define DVT_END INT64_MIN
DVT_API dvt_array *dvt_slice(dvt_array *x, int axis, int64_t start, int64_t stop, int64_t step);
/* Return the views x[start:stop] on axis 0, and x[i], which drops axis 0. Errors: SHAPE (x has no
   axis), RANGE (i). */
DVT_API dvt_array *dvt_rows(dvt_array *x, int64_t start, int64_t stop);
DVT_API dvt_array *dvt_index(dvt_array *x, int64_t i);
/* Returns the transpose of a matrix; an array with one or no axis is returned as it is. Errors:
   SHAPE (more than 2 axes: dvt_swapaxes(x, -1, -2) transposes a batch of matrices). */
DVT_API dvt_array *dvt_t(dvt_array *x);
/* Permutes the axes: axis i of the result is axis order[i] of x. DVT_ALL reverses the order.
   Errors: AXIS. */
DVT_API dvt_array *dvt_transpose(dvt_array *x, dvt_axes order);
/* Exchanges two axes. Errors: AXIS. */
DVT_API dvt_array *dvt_swapaxes(dvt_array *x, int axis1, int axis2);
/* Returns the same elements in C order under another shape; one extent may be -1, which is
   computed.
   Copies: within the context if the strides require it.  Errors: SHAPE. */
DVT_API dvt_array *dvt_reshape(dvt_array *x, dvt_shape shape);
/* Reshapes to (n, rest), where n is the first extent; a scalar gives (1, 1). Copies: as
   dvt_reshape. */
DVT_API dvt_array *dvt_flatten(dvt_array *x);
/* Inserts an axis of extent 1 at position `axis` of the result. Errors: AXIS. */
DVT_API dvt_array *dvt_expand_dims(dvt_array *x, int axis);
/* Removes axes of extent 1: the named ones, or all of them with DVT_ALL. Errors: AXIS, SHAPE. */
DVT_API dvt_array *dvt_squeeze(dvt_array *x, dvt_axes axes);
/* Repeats x along new axes and axes of extent 1 by strides of 0. Writing into the result is an
   error. Errors: SHAPE. */
DVT_API dvt_array *dvt_broadcast_to(dvt_array *x, dvt_shape shape);
/* Returns x itself if it is contiguous, else a copy on its context. */
DVT_API dvt_array *dvt_contiguous(dvt_array *x);

/* ---- copies: the result is new memory unless the comment says otherwise ---- */

/* Copies x to ctx. The result is always new memory, even if x is on ctx. Same dtype.
   Differentiable.
   Copies: to ctx.  Waits: no.  Errors: NO_DEVICE, DEVICE_MEMORY, HOST_MEMORY. */
DVT_API dvt_array *dvt_copyto(dvt_array *x, dvt_ctx ctx);
/* Returns x itself if it is on ctx, else dvt_copyto(x, ctx). Differentiable. */
DVT_API dvt_array *dvt_as_in_ctx(dvt_array *x, dvt_ctx ctx);
/* Copies x into new memory on its own context. Differentiable. */
DVT_API dvt_array *dvt_copy(dvt_array *x);
/* Writes src into dst and returns dst: NumPy's dst[...] = src. Write into a part of x by
   dvt_copy_into(dvt_slice(x, ...), src). The contexts may differ, the dtype is converted, and the
   arrays may overlap. With dst == src nothing is written.
   Shapes: src broadcasts to dst's shape; surplus leading extents of 1 of src are dropped. dst never
   broadcasts.
   Copies: to dst's context, before broadcasting.  Waits: no.
   Errors: SHAPE (src does not broadcast to dst), VALUE (dst is a broadcast view), GRAD (dst is
   recorded; or src is recorded and other arrays share dst's memory, because their gradient would
   miss src). */
DVT_API dvt_array *dvt_copy_into(dvt_array *dst, dvt_array *src);
/* Converts x to a dtype in new memory on x's context, as NumPy's astype. Float to integer drops the
   fraction and clamps values out of range; NaN gives 0. Differentiable between floats. */
DVT_API dvt_array *dvt_astype(dvt_array *x, dvt_dtype dtype);
/* Returns x itself if it has that dtype, else dvt_astype(x, dtype). */
DVT_API dvt_array *dvt_as_in_dtype(dvt_array *x, dvt_dtype dtype);
/* Sets every element to `value` and returns x. Errors: GRAD (x is recorded), VALUE (broadcast
   view). */
DVT_API dvt_array *dvt_fill(dvt_array *x, double value);
