/* [dvt:macros] Expansions of the macros above. Programs do not call these directly. */

/* ---- counting arguments: up to 16, and 17 for 17 to 32, which the functions refuse ---- */
#define DVT_EXPAND(...) __VA_ARGS__
#define DVT_COUNT(...)                                                                             \
    DVT_ARG33(__VA_ARGS__, 17, 17, 17, 17, 17, 17, 17, 17, 17, 17, 17, 17, 17, 17, 17, 17, 16, 15, \
              14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0)
#define DVT_ARG33(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, a1, b1, c1, d1, e1, f1, g1, h1,  \
                  i1, j1, k1, l1, m1, n1, o1, p1, q, ...)                                          \
    q
#define DVT_FIRST8(a, b, c, d, e, f, g, h, ...) a, b, c, d, e, f, g, h
#define DVT_FIRST16(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, ...)                           \
    a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p
/* Calls function(n, a0 .. a7) with the n arguments, padded by fillers. */
#define DVT_CALL_8(function, filler, ...)                                                          \
    function(DVT_COUNT(__VA_ARGS__),                                                               \
             DVT_EXPAND(DVT_FIRST8(__VA_ARGS__, filler, filler, filler, filler, filler, filler,    \
                                   filler, filler, filler)))
#define DVT_CALL_16(function, first, ...)                                                          \
    function(first, DVT_COUNT(__VA_ARGS__),                                                        \
             DVT_EXPAND(DVT_FIRST16(__VA_ARGS__, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL,   \
                                    NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)))

/* ---- functions behind DVT_SHAPE, DVT_AXES, DVT_CONTEXTS and DVT_NN_ADD: they use the first n
   ---- */
DVT_API dvt_shape dvt_shape_make(int ndim, int64_t d0, int64_t d1, int64_t d2, int64_t d3,
                                 int64_t d4, int64_t d5, int64_t d6, int64_t d7);
DVT_API dvt_axes dvt_axes_make(int n, int a0, int a1, int a2, int a3, int a4, int a5, int a6,
                               int a7);
DVT_API dvt_ctx_list dvt_ctx_list_make(int n, dvt_ctx c0, dvt_ctx c1, dvt_ctx c2, dvt_ctx c3,
                                       dvt_ctx c4, dvt_ctx c5, dvt_ctx c6, dvt_ctx c7);
#if !defined(DEVTENSOR_NO_NN)
DVT_API dvt_status dvt_nn_sequential_add(dvt_block *net, int n, dvt_block *b0, dvt_block *b1,
                                         dvt_block *b2, dvt_block *b3, dvt_block *b4, dvt_block *b5,
                                         dvt_block *b6, dvt_block *b7, dvt_block *b8, dvt_block *b9,
                                         dvt_block *b10, dvt_block *b11, dvt_block *b12,
                                         dvt_block *b13, dvt_block *b14, dvt_block *b15);
#endif

/* ---- DVT_ARRAY: values, their number, and the dtype of a C type ---- */
DVT_API dvt_array *dvt_from_values(const void *data, int64_t count, dvt_shape shape,
                                   dvt_dtype dtype, dvt_ctx ctx);
#define DVT_DTYPE_UNSIGNED 15 /* DVT_DTYPE_OF of larger unsigned integers; not a dtype */
#ifdef __cplusplus
extern "C++" {
template <class T> struct dvt_dtype_for; /* not defined: a type without a dtype */
#define DVT_DTYPE_FOR(T, dtype)                                                                    \
    template <> struct dvt_dtype_for<T> { static const dvt_dtype value = dtype; };
DVT_DTYPE_FOR(bool, DVT_BOOL)
DVT_DTYPE_FOR(float, DVT_F32)
DVT_DTYPE_FOR(double, DVT_F64)
DVT_DTYPE_FOR(char, static_cast<char>(-1) < 0 ? DVT_I8 : DVT_U8)
DVT_DTYPE_FOR(signed char, DVT_I8)
DVT_DTYPE_FOR(unsigned char, DVT_U8)
DVT_DTYPE_FOR(int, DVT_I32)
DVT_DTYPE_FOR(long, sizeof(long) == 4 ? DVT_I32 : DVT_I64)
DVT_DTYPE_FOR(long long, DVT_I64)
#undef DVT_DTYPE_FOR

/* Return the address of a braced list's values, and a reference to an array of as many char. */
template <class T, size_t N> inline const void *dvt_values(const T (&values)[N]) {
    return values;
}
template <class T, size_t N> char (&dvt_values_count(const T (&values)[N]))[N];

/* Returns the address of a braced list of kernel arguments. */
template <size_t N> inline const dvt_kernel_arg *dvt_args(const dvt_kernel_arg (&args)[N]) {
    return args;
}
}
#define DVT_ARGS_OF(...)                                                                           \
    dvt_args({__VA_ARGS__}),                                                                       \
        static_cast<int64_t>(sizeof(dvt_values_count<dvt_kernel_arg>({__VA_ARGS__})))
#define DVT_DTYPE_OF(T) (dvt_dtype_for<T>::value)
#define DVT_VALUES(T, ...)                                                                         \
    dvt_values<T>({__VA_ARGS__}), static_cast<int64_t>(sizeof(dvt_values_count<T>({__VA_ARGS__})))
#else
#define DVT_DTYPE_KNOWN(T) (sizeof(T) == 1 || sizeof(T) == 4 || sizeof(T) == 8)
#define DVT_DTYPE_OF(T)                                                                            \
    ((dvt_dtype)(DVT_DTYPE_OF_(T) + 0 * (int)sizeof(char[DVT_DTYPE_KNOWN(T) ? 1 : -1])))
#define DVT_DTYPE_OF_(T)                                                                           \
    ((T)2 == (T)1     ? (int)DVT_BOOL                                                              \
     : (T)0.5 != (T)0 ? (int)(sizeof(T) == 4 ? DVT_F32 : DVT_F64)                                  \
     : sizeof(T) == 1 ? (int)((T)-1 < (T)1 ? DVT_I8 : DVT_U8)                                      \
     : (T)-1 > (T)1   ? DVT_DTYPE_UNSIGNED                                                         \
     : sizeof(T) == 4 ? (int)DVT_I32                                                               \
                      : (int)DVT_I64)
#define DVT_ARGS_OF(...) DVT_VALUES(dvt_kernel_arg, __VA_ARGS__)
#define DVT_VALUES(T, ...)                                                                         \
    (const T[]){__VA_ARGS__}, (int64_t)(sizeof((const T[]){__VA_ARGS__}) / sizeof(T))
#endif

/* ---- guards: DVT_SCOPE, DVT_RECORD, DVT_WITH_CTX and their declarations ---- */
#if defined(__GNUC__) || defined(__clang__)
#define DVT_CLEANUP(function) __attribute__((__cleanup__(function)))
#define DVT_PRINTF(text, first) __attribute__((__format__(__printf__, text, first)))
#else
#define DVT_CLEANUP(function)
#define DVT_PRINTF(text, first)
#endif
#if defined(__OPTIMIZE__) && defined(__has_attribute)
#if __has_attribute(__warning__)
/* An optimizing compiler removes the call if the block has no break. clang finds only calls that
   cannot throw. */
#define DVT_BREAK_WARNS                                                                            \
    __attribute__((__warning__("break leaves only the block of DVT_SCOPE, DVT_RECORD or "          \
                               "DVT_WITH_CTX, not the loop around it: declare DVT_SCOPED, "        \
                               "DVT_RECORD_SCOPED or DVT_CTX_SCOPED in the loop's own block"),     \
                   __nothrow__, __noinline__))
#endif
#endif
#if !defined(DVT_BREAK_WARNS)
#define DVT_BREAK_WARNS
#endif
/* Logs a warning, once per process. A break out of a guard's own block calls it. */
DVT_API DVT_BREAK_WARNS void dvt_note_break(const char *macro, const char *file, int line);

#if defined(__GNUC__) || defined(__clang__)
#define DVT_GUARD(type, name, begin, end) type name DVT_CLEANUP(end) = begin
#define DVT_GUARD_DECLARED(type, name, begin, end)                                                 \
    type name __attribute__((__unused__)) DVT_CLEANUP(end) = begin
#define DVT_GUARD_NEXT(end, guard) (guard) = NULL
#elif defined(__cplusplus)
extern "C++" {
template <class T, void (*End)(T *)> struct dvt_guard_object : T {
    explicit dvt_guard_object(const T &begun) : T(begun) {
    }

    dvt_guard_object(const dvt_guard_object &) = delete;
    dvt_guard_object &operator=(const dvt_guard_object &) = delete;

    void operator=(const T &begun) {
        static_cast<T &>(*this) = begun;
    }

    ~dvt_guard_object() {
        End(this);
    }
};
}
#define DVT_GUARD(type, name, begin, end) dvt_guard_object<type, end> name(begin)
#define DVT_GUARD_DECLARED DVT_GUARD
#define DVT_GUARD_NEXT(end, guard) (guard) = NULL
#else
#define DVT_GUARD(type, name, begin, end) type name = begin
/* The undeclared name is the compiler's message. */
#define DVT_GUARD_DECLARED(type, name, begin, end)                                                 \
    this_compiler_cannot_end_a_scope_by_itself__use_DVT_SCOPE_and_its_block
#define DVT_GUARD_NEXT(end, guard) (end)(guard), (guard) = NULL
#endif
#if defined(DEVTENSOR_NO_CALL_SITES)
#define DVT_NOTE_BREAK(macro) dvt_note_break(macro, "", 0)
#else
#define DVT_NOTE_BREAK(macro) dvt_note_break(macro, __FILE__, __LINE__)
#endif
/* The line number in the name keeps nested guards from hiding each other (-Wshadow). */
#define DVT_GUARD_NAME_(name, line) name##line
#define DVT_GUARD_NAME(name, line) DVT_GUARD_NAME_(name, line)
/* A loop of one iteration around the block, with the guard as its variable.
   The loop condition is a pointer to the guard. So compilers see that the body runs once, and do
   not warn that variables set in it are uninitialized.
   The block is the body of an inner loop that is entered at its label. Its end and continue clear
   name##_left; break does not; return and goto do not come here. The inner loop's condition is a
   constant 0, so constant propagation alone, as in gcc -Og, removes the call where there is no
   break. */
#define DVT_GUARDED(macro, type, name, begin, end)                                                 \
    for (DVT_GUARD(type, DVT_GUARD_NAME(name, __LINE__), begin, end),                              \
         *DVT_GUARD_NAME(name##_turn, __LINE__) = &DVT_GUARD_NAME(name, __LINE__),                 \
                                      *DVT_GUARD_NAME(name##_left, __LINE__) =                     \
                                          &DVT_GUARD_NAME(name, __LINE__);                         \
         DVT_GUARD_NAME(name##_turn, __LINE__);                                                    \
         DVT_GUARD_NAME(name##_left, __LINE__) ? DVT_NOTE_BREAK(macro) : (void)0,                  \
                                      DVT_GUARD_NEXT(end, DVT_GUARD_NAME(name##_turn, __LINE__)))  \
        switch (0)                                                                                 \
            for (; DVT_GUARD_NAME(name##_left, __LINE__) = NULL, 0;)                               \
            default:

/* ---- call sites: the macros that have the names of functions, see DEVTENSOR_NO_CALL_SITES. These
   functions record where x was made, or where the failed call is, and return their first argument.
   Owns: `file` must live as long as x. ---- */
DVT_API dvt_array *dvt_note_site(dvt_array *x, const char *file, int line);
DVT_API dvt_status dvt_note_status(dvt_status status, const char *file, int line);
/* Do the same for other objects and numbers: NULL, NaN, 0, negative numbers and false may mean a
   failure. */
DVT_API void *dvt_note_pointer(const void *object, const char *file, int line);
DVT_API double dvt_note_double(double value, const char *file, int line);
DVT_API int dvt_note_int(int value, const char *file, int line);
DVT_API int64_t dvt_note_int64(int64_t value, const char *file, int line);
DVT_API uint64_t dvt_note_uint64(uint64_t value, const char *file, int line);
DVT_API bool dvt_note_bool(bool value, const char *file, int line);
#ifdef __cplusplus
extern "C++" {
template <class T> inline T *dvt_note_pointer(T *object, const char *file, int line) {
    return static_cast<T *>((dvt_note_pointer)(static_cast<const void *>(object), file, line));
}

template <class T> inline T *dvt_keep(T *object) {
    return static_cast<T *>((dvt_keep)(static_cast<void *>(object)));
}

template <class T> inline T *dvt_retain(T *object) {
    return static_cast<T *>((dvt_retain)(static_cast<void *>(object)));
}
}
#define DVT_NOTE_POINTER(T, call) dvt_note_pointer(call, __FILE__, __LINE__)
#else
#define DVT_NOTE_POINTER(T, call) ((T *)dvt_note_pointer(call, __FILE__, __LINE__))
#endif
