/* [dvt:io] Printing and files. Values of an array on a GPU are copied to host memory first. */

/* Prints x to standard output in the style of dvt_set_print_style. The initial style prints x as
   NumPy does, then "<NDArray 2x3 @gpu(0)>". NULL prints "(null)". Copies: to host memory.  Waits:
   for x.  Errors: CONTEXT (transfer guard), HOST_MEMORY. */
DVT_API dvt_status dvt_print(dvt_array *x);
/* Prints x to a FILE *, passed as void * so that this header needs no <stdio.h>. */
DVT_API dvt_status dvt_print_file(void *file, dvt_array *x);

/* Libraries whose way of printing arrays and contexts is available. */
typedef enum dvt_print_style {
    DVT_PRINT_MXNET,  /* values, newline, <NDArray 2x3 @gpu(0)>: the style at the start */
    DVT_PRINT_NP,     /* array([[1., 1.]], ctx=gpu(0)): MXNet's np, NumPy's repr */
    DVT_PRINT_STR,    /* the values alone: NumPy's str */
    DVT_PRINT_JAX,    /* Array([[1., 1.]], dtype=float32) */
    DVT_PRINT_TORCH,  /* tensor([[1., 1.]], device='cuda:0') */
    DVT_PRINT_TF,     /* <tf.Tensor: shape=(1, 2), dtype=float32, numpy=array([[1., 1.]], ...)> */
    DVT_PRINT_DEFAULT /* what dvt_set_print_style has chosen */
} dvt_print_style;

/* Sets, for the whole process, the style of dvt_print and dvt_print_file, and of dvt_format without
   options. Returns the previous choice. That is DVT_PRINT_DEFAULT before the first one, and
   DVT_PRINT_DEFAULT also undoes a choice.
   After DVT_PRINT_MXNET was chosen, errors about arguments on different contexts begin with MXNet's
   own line. Waits: no. Errors: RANGE (then nothing changes). */
DVT_API dvt_print_style dvt_set_print_style(dvt_print_style style);
/* Writes the context as that library shows it into buffer, truncated to `size` bytes. Returns the
   length of the whole text:
     DVT_PRINT_MXNET, NP, STR   gpu(1)
     DVT_PRINT_JAX              CudaDevice(id=1)
     DVT_PRINT_TORCH            device(type='cuda', index=1)
     DVT_PRINT_TF               /job:localhost/replica:0/task:0/device:GPU:1
   dvt_ctx_parse reads them all. Waits: no. Errors: RANGE (the style; then 0 and an empty text). */
DVT_API size_t dvt_ctx_format(dvt_ctx ctx, dvt_print_style style, char *buffer, size_t size);

/* NumPy's print options. A field of 0 means the default below: NumPy's, or PyTorch's in its
   style. */
typedef struct dvt_print_options {
    dvt_print_style style;
    int precision;     /* 8 (PyTorch 4), at most 500; -1: the shortest digits that round-trip */
    int64_t threshold; /* 1000: arrays of more elements are summarized */
    int edge_items;    /* 3 at each end of a summarized axis */
    int line_width;    /* 75 (PyTorch 80) */
    bool suppress;     /* no exponents for small values */
    bool no_newline;   /* leave out the final newline */
} dvt_print_options;

/* Writes the text into buffer, truncated to `size` bytes with the final 0, and the length of the
   whole text to *length; either may be NULL. options may be NULL. Errors: RANGE (options), and
   those of dvt_print. */
DVT_API dvt_status dvt_format(dvt_array *x, const dvt_print_options *options, char *buffer,
                              size_t size, size_t *length);

/* Returns the number of arrays. */
DVT_API int dvt_array_list_len(const dvt_array_list *list);
/* Return the i-th array, and its name ("" if the file has no names). Owns: the list. Errors:
   RANGE. */
DVT_API dvt_array *dvt_array_list_at(dvt_array_list *list, int i);
DVT_API const char *dvt_array_list_name(const dvt_array_list *list, int i);
/* Returns the array of that name. Owns: the list. Errors: NAME. */
DVT_API dvt_array *dvt_array_list_find(dvt_array_list *list, const char *name);
/* Returns the file's text for that key; NULL, without an error, if it has none. Owns: the list. */
DVT_API const char *dvt_array_list_metadata(const dvt_array_list *list, const char *key);
/* Returns the i-th text and sets *key (which may be NULL) to its key; NULL, without an error, after
   the last one. Owns: the list. */
DVT_API const char *dvt_array_list_metadata_at(const dvt_array_list *list, int i, const char **key);

/* ---- files. Readers compare the header with the size of the file before they allocate. They need
   at most 200 KiB beyond the arrays and what describes them (Fortran order: 1 MiB more; images: 300
   KiB and two rows). From a pipe they read at most 1 GiB; .npz files are not read from pipes.
   Writers write a temporary file in the same directory, sync it and rename it. So a failure keeps
   the old file. The new file gets the old one's mode, owner and group where the process may set
   them. Symbolic links are followed; other hard links keep the old file. Read-only files are not
   replaced. Devices, pipes, /dev/stdout and /dev/fd/N are written in place.
   Copies: arrays on a GPU pass through host memory.  Waits: yes.  Errors: IO, FORMAT, memory,
   NOT_BUILT. ---- */

/* Write and read NumPy .npy files, version 1.0: any dtype but bfloat16, which is written as
   float32. Reads versions 1 to 3, either byte order and Fortran order; refuses pickled objects. */
DVT_API dvt_status dvt_save_npy(const char *path, dvt_array *x);
DVT_API dvt_array *dvt_load_npy(const char *path, dvt_ctx ctx);
/* Write and read Apache MXNet .params files. Writes version 2 (arrays without axes or elements:
   version 3), reads versions 0 to 3. names may be NULL; names must differ. Errors also: NAME,
   NULL_ARGUMENT. */
DVT_API dvt_status dvt_save_params(const char *path, dvt_array *const *arrays,
                                   const char *const *names, int n);
DVT_API dvt_array_list *dvt_load_params(const char *path, dvt_ctx ctx);
/* Write and read safetensors files. `metadata` is NULL, or pairs of key and text and then a NULL. A
   file keeps the order of the arrays. Reads every dtype of the library; 16-bit integers become
   int32, larger unsigned ones int64; 8-bit floats are refused. A path to the index of a model in
   several files (.safetensors.index.json) reads them all. Errors also: NAME (names and keys that
   occur twice, "__metadata__", text that is not UTF-8), NULL_ARGUMENT, VALUE (metadata). */
DVT_API dvt_status dvt_save_safetensors(const char *path, dvt_array *const *arrays,
                                        const char *const *names, int n,
                                        const char *const *metadata);
DVT_API dvt_array_list *dvt_load_safetensors(const char *path, dvt_ctx ctx);
/* Writes a model in several safetensors files and their index, `path`, which must end with
   .safetensors.index.json: m.safetensors.index.json gives m-00001-of-00003.safetensors and so on in
   the same directory. A file has at most `bytes` of elements, or one array. Each gets the metadata.
   Without arrays there is no file for it. All files are on the disk before the first is renamed: a
   failure until then keeps the older model. If older files are replaced, their index goes first and
   the new one comes last. A later failure, or a kill, leaves no index rather than a mixture. Higher
   numbered files of an older model stay.
   Errors as dvt_save_safetensors, also VALUE (the path), RANGE (bytes below 1). */
DVT_API dvt_status dvt_save_safetensors_shards(const char *path, dvt_array *const *arrays,
                                               const char *const *names, int n,
                                               const char *const *metadata, int64_t bytes);
/* Write GGUF, version 3, and read version 2 or 3, little-endian, of tensors that are not quantized.
   Shapes are in row-major order: the reverse of the file's. `metadata` is NULL, or pairs of key and
   text and then a NULL. In files that are read, texts, numbers and bools become text ("true",
   "1e-05"); arrays are left out. Metadata is written as text, without general.alignment; llama.cpp
   needs numbers, so it does not load a model that was read and written again. Written are dtypes
   but uint8 and bool, at most 4 axes, at least one element, and names of at most 63 bytes, as ggml
   reads them. Errors also: NAME (also keys that begin with "GGUF."), DTYPE, SHAPE, NULL_ARGUMENT,
   VALUE (metadata). */
DVT_API dvt_status dvt_save_gguf(const char *path, dvt_array *const *arrays,
                                 const char *const *names, int n, const char *const *metadata);
DVT_API dvt_array_list *dvt_load_gguf(const char *path, dvt_ctx ctx);
/* Reads a file of arrays in any of these formats, by its content: safetensors and its index, GGUF,
   .npz, .params. */
DVT_API dvt_array_list *dvt_load_arrays(const char *path, dvt_ctx ctx);
/* Writes the format that the path ends with: .safetensors, .gguf, .npz or .params, in small or
   capital letters. Errors also: VALUE (another end), and those of that format. */
DVT_API dvt_status dvt_save_arrays(const char *path, dvt_array *const *arrays,
                                   const char *const *names, int n);
/* Writes an IDX file of uint8, int8, int32, float32 or float64 with at least one axis. Errors also:
   DTYPE, SHAPE (no axis), RANGE (an extent of 2^32 or more), VALUE (a path that ends with .gz),
   NULL_ARGUMENT. */
DVT_API dvt_status dvt_save_idx(const char *path, dvt_array *x);
/* Reads an IDX file, plain or .gz (by content): unsigned and signed bytes, int32, float32, float64;
   16-bit integers become int32. */
DVT_API dvt_array *dvt_load_idx(const char *path, dvt_ctx ctx);
/* Write and read NumPy .npz files: zip archives of .npy files. dvt_save_npz stores the arrays, and
   dvt_save_npz_compressed deflates them. names may be NULL: then they are "arr_0", "arr_1", ... as
   NumPy's; names must differ. Elements that are not compressed are aligned for dvt_map_arrays.
   Reading gives the names without ".npy"; it skips directories, checks every CRC and refuses
   encrypted, overlapping and equally named members. Errors also: NAME, NULL_ARGUMENT. */
DVT_API dvt_status dvt_save_npz(const char *path, dvt_array *const *arrays,
                                const char *const *names, int n);
DVT_API dvt_status dvt_save_npz_compressed(const char *path, dvt_array *const *arrays,
                                           const char *const *names, int n);
DVT_API dvt_array_list *dvt_load_npz(const char *path, dvt_ctx ctx);
/* Reads a PNG, PGM or PPM image, found by content: (height, width, channels), uint8, or int32 if
   samples have 16 bits. Gray has 1 channel, RGB 3, and alpha is one more; transparency of PNG
   becomes alpha. Palettes and depths below 8 bits are expanded to 0..255, and Netpbm's samples are
   scaled to 0..255 or 0..65535. Gamma and color profiles are ignored. */
DVT_API dvt_array *dvt_load_image(const char *path, dvt_ctx ctx);
/* Writes an image of shape (height, width) or (height, width, channels), by the extension of path:
   .png (1 to 4 channels), .ppm (3) or .pgm (1). uint8 gives samples of 8 bits, and int32 gives
   samples of 16 bits: values outside 0..65535 are refused. Floats in 0..1 give 8 bits: they are
   clipped to 0..1, multiplied by 255 and rounded; NaN gives 0. Errors also: SHAPE, DTYPE, RANGE,
   NAME (the extension), NULL_ARGUMENT. */
DVT_API dvt_status dvt_save_image(const char *path, dvt_array *x);
/* Read the same formats from memory, which may be freed afterwards. */
DVT_API dvt_array *dvt_read_npy(const void *data, size_t bytes, dvt_ctx ctx);
DVT_API dvt_array_list *dvt_read_params(const void *data, size_t bytes, dvt_ctx ctx);
DVT_API dvt_array_list *dvt_read_safetensors(const void *data, size_t bytes, dvt_ctx ctx);
DVT_API dvt_array_list *dvt_read_gguf(const void *data, size_t bytes, dvt_ctx ctx);
DVT_API dvt_array_list *dvt_read_arrays(const void *data, size_t bytes, dvt_ctx ctx);
DVT_API dvt_array *dvt_read_idx(const void *data, size_t bytes, dvt_ctx ctx);
DVT_API dvt_array_list *dvt_read_npz(const void *data, size_t bytes, dvt_ctx ctx);
DVT_API dvt_array *dvt_read_image(const void *data, size_t bytes, dvt_ctx ctx);

/* ---- comma-separated values (RFC 4180), plain or .gz (by content). Cells may be in quotes, with
   delimiters, line ends and doubled quotes inside. Lines end in LF, CRLF or CR. Blank lines and a
   UTF-8 mark at the beginning are skipped. Numbers do not depend on the locale, and are rounded
   once to the dtype; nan, inf and infinity are numbers. Quotes and blanks around them are
   allowed.
   Errors name the row and the column, counted from 1, as a spreadsheet shows them: headers,
   comments and blank lines count as rows. Reading needs up to three times the memory of the
   arrays. ---- */

/* Options of the readers. All zeros: a matrix of float32, without a header. */
typedef struct dvt_csv_options {
    char delimiter;      /* 0: ',' */
    char decimal_point;  /* 0: '.'; ',' with another delimiter, as in parts of Europe */
    char comment;        /* rows that begin with this character are skipped; 0: none */
    int header_rows;     /* rows to skip; -1: the first row if it has text and no number */
    dvt_dtype dtype;     /* integers and bool: exact, without fraction */
    const char *missing; /* NaN (floats only): a cell of this text, as well as an empty one */
    bool skip_text;      /* leave out columns whose first cell that is not missing is no number */
} dvt_csv_options;

/* Read a matrix (rows, columns); dvt_read_csv from memory, which may be freed afterwards. options
   may be NULL. Errors also: FORMAT (rows of different lengths, a cell that is no number, nothing to
   read), RANGE, DTYPE (options). */
DVT_API dvt_array *dvt_load_csv(const char *path, const dvt_csv_options *options, dvt_ctx ctx);
DVT_API dvt_array *dvt_read_csv(const void *data, size_t bytes, const dvt_csv_options *options,
                                dvt_ctx ctx);
/* Read one array (rows) per column of numbers. The last header row has their names, the first
   array of a name is found by it. Columns of text are left out, as with skip_text. At most 65536
   columns. */
DVT_API dvt_array_list *dvt_load_csv_columns(const char *path, const dvt_csv_options *options,
                                             dvt_ctx ctx);
DVT_API dvt_array_list *dvt_read_csv_columns(const void *data, size_t bytes,
                                             const dvt_csv_options *options, dvt_ctx ctx);
/* Writes x, (rows, columns) or (rows), with the shortest digits that read back as the same elements
   of its dtype. column_names: one for each column, or NULL. Bools are 1 and 0. Errors: SHAPE (other
   shapes, no elements), VALUE (a path that ends with .gz). */
DVT_API dvt_status dvt_save_csv(const char *path, dvt_array *x, const char *const *column_names);

/* ---- bytes ---- */
/* Reads all bytes of a file as they are, compressed or not: uint8 (bytes). */
DVT_API dvt_array *dvt_load_bytes(const char *path, dvt_ctx ctx);
/* Writes the elements of x, uint8 of any shape, and nothing else. Errors: DTYPE. */
DVT_API dvt_status dvt_save_bytes(const char *path, dvt_array *x);

/* ---- files as memory. These read as the functions without "map" in their name do, but arrays on
   CPUs use the pages of the file: the system reads a page when it is first used, and processes
   share it. A write into an array copies its page, and never reaches the file. So every operation
   works. Elements are copied, as by reading, where a page does not have them as memory does: bools,
   dtypes that are converted, the other byte order, compressed members, and elements at an address
   that is no multiple of their size. Files that this library writes have aligned elements. Fortran
   order becomes strides. CRCs of members that are not compressed are not checked. A file that
   cannot be mapped, a pipe for example, is read.
   The file must keep its length while an array uses it: access beyond a new end stops the process
   (SIGBUS). Writers that rename a complete file, as those of this library, are safe; on Windows
   they fail until the arrays are gone.
   Copies: never on CPUs, but for the elements above; GPUs get a copy, without another one in host
   memory.  Waits: no.  Owns: the file stays mapped until its last array is released;
   dvt_memory_query leaves it out. ---- */
/* Map what dvt_load_arrays, dvt_load_npy and dvt_load_bytes read. */
DVT_API dvt_array_list *dvt_map_arrays(const char *path, dvt_ctx ctx);
DVT_API dvt_array *dvt_map_npy(const char *path, dvt_ctx ctx);
DVT_API dvt_array *dvt_map_bytes(const char *path, dvt_ctx ctx);

/* ---- CIFAR: dvt_dataset_cifar10 and dvt_dataset_cifar100 read whole directories ---- */
/* Selects the labels of CIFAR-100. */
typedef enum dvt_cifar100_labels { DVT_CIFAR100_FINE, DVT_CIFAR100_COARSE } dvt_cifar100_labels;

/* Write a binary file: images x, uint8 (N, 32, 32, 3), and integer labels (N), those of CIFAR-100
   both coarse and fine. Copies: as all writers.  Waits: yes.  Errors: SHAPE, DTYPE, RANGE (a label
   that is no class), NULL_ARGUMENT, IO, memory. */
DVT_API dvt_status dvt_save_cifar10(const char *path, dvt_array *x, dvt_array *y);
DVT_API dvt_status dvt_save_cifar100(const char *path, dvt_array *x, dvt_array *coarse,
                                     dvt_array *fine);
/* Read the content of a binary file from memory: images *x, uint8 (N, 32, 32, 3), and labels *y,
   int32 (N), on cpu(0). CIFAR-100 has 100 fine and 20 coarse labels. Errors: FORMAT (a wrong number
   of bytes, a label that is no class), NULL_ARGUMENT, VALUE (labels). */
DVT_API dvt_status dvt_read_cifar10(const void *data, size_t bytes, dvt_array **x, dvt_array **y);
DVT_API dvt_status dvt_read_cifar100(const void *data, size_t bytes, dvt_cifar100_labels labels,
                                     dvt_array **x, dvt_array **y);
