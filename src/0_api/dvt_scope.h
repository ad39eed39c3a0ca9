/* [dvt:scope] Who owns what. Every object that a call returns belongs to the innermost scope of the
   calling thread, or to the thread itself when there is none, and is released when that ends. So
   nested expressions never leak:

       for (...) {
           DVT_SCOPED;                     // until the closing brace, and on every other way out
           dvt_array *loss = dvt_mean(dvt_square(dvt_sub(a, b)), DVT_ALL, false);
           best = dvt_keep(loss);          // lives on in the enclosing scope
           if (dvt_item(loss) < 0.01)
               break;                      // leaves the loop, and ends the scope
       }

   DVT_SCOPE { ... } is a scope with a block of its own. It is a loop of one turn: break and continue
   leave that block, and not the loop around it. A break is warned of: by GCC and clang 14 at compile
   time where they optimize (GCC: unless the header lies in a folder of the system or of -isystem),
   and once per process in the log.

   An object that must outlive every scope, or travel to another thread, is retained: dvt_retain
   counts one more owner, dvt_release one fewer. */

typedef struct dvt_scope_guard {
    size_t mark;
    int depth;
    int once;
} dvt_scope_guard;

/* What DVT_SCOPED and DVT_SCOPE call; by hand, end what was begun, innermost first. NULL is fine.
   */
DVT_API dvt_scope_guard dvt_scope_begin(void);
DVT_API void dvt_scope_end(dvt_scope_guard *guard);

#if defined(__OPTIMIZE__) && defined(__has_attribute)
#if __has_attribute(__warning__)
/* A compiler that optimizes sees whether there is such a break: without one the call is dead. clang
   finds only calls that cannot throw. */
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
/* What a break out of a guard's own block calls: logs a warning, once per process. */
DVT_API DVT_BREAK_WARNS void dvt_note_break(const char *macro, const char *file, int line);

/* A guard ends on every way out of its block with GCC, Clang and every C++ compiler. With other C
   compilers leave the block of DVT_SCOPE only by its closing brace; they refuse DVT_SCOPED. */
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
/* Names what is missing, so that the compiler says it is undeclared. */
#define DVT_GUARD_DECLARED(type, name, begin, end)                                                 \
    this_compiler_cannot_end_a_scope_by_itself__use_DVT_SCOPE_and_its_block
#define DVT_GUARD_NEXT(end, guard) (end)(guard), (guard) = NULL
#endif
#if defined(DEVTENSOR_NO_CALL_SITES)
#define DVT_NOTE_BREAK(macro) dvt_note_break(macro, "", 0)
#else
#define DVT_NOTE_BREAK(macro) dvt_note_break(macro, __FILE__, __LINE__)
#endif
/* A name per line, so that nested guards do not hide each other (-Wshadow). */
#define DVT_GUARD_NAME_(name, line) name##line
#define DVT_GUARD_NAME(name, line) DVT_GUARD_NAME_(name, line)
/* The outer loop runs on a pointer to its guard, so that compilers see that its one turn is taken,
   and do not call what is set in it uninitialized. The block is the body of an inner loop that is
   entered at its label: its end and continue clear name##_left, break does not, return and goto do
   not come here. There is no path from the inner loop's condition to its body, so that constant
   propagation alone, as by gcc -Og, removes the call where there is no break. */
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
/* From here to the end of the enclosing block, whose braces must be there: a declaration. */
#define DVT_SCOPED                                                                                 \
    DVT_GUARD_DECLARED(dvt_scope_guard, DVT_GUARD_NAME(dvt_g_scoped, __LINE__), dvt_scope_begin(), \
                       dvt_scope_end)
/* In the block that follows. */
#define DVT_SCOPE                                                                                  \
    DVT_GUARDED("DVT_SCOPE", dvt_scope_guard, dvt_g_scope, dvt_scope_begin(), dvt_scope_end)

/* Moves an object to the enclosing scope and returns it. Without an enclosing scope, and for
   objects that this scope does not own, nothing changes. NULL stays NULL. */
DVT_API void *dvt_keep(void *object);
/* One more owner; returns the object. Pair with dvt_release. Any thread may do either. */
DVT_API void *dvt_retain(void *object);
/* Undoes one dvt_retain; the last owner frees the object. Without a dvt_retain to undo, it gives up
   the share of this thread's scope: an object that nobody else owns is freed now, and not at the
   scope's end. That share is one, also of an array that several calls returned: dvt_as_in_ctx(x,
   ...) may be x itself, and releasing both releases x. NULL is fine. Errors: VALUE, and nothing
   changes, where neither is there: the object is borrowed (dvt_grad, dvt_block_at, dvt_params_at,
   ...), or a scope of another thread owns it. */
DVT_API void dvt_release(void *object);
/* Releases everything this thread's scopes own, in particular what a program without any DVT_SCOPE
   made. A thread that ends, and the process at exit, do this by themselves. */
DVT_API void dvt_release_all(void);

#ifdef __cplusplus
extern "C++" {
template <class T> inline T *dvt_keep(T *object) {
    return static_cast<T *>((dvt_keep)(static_cast<void *>(object)));
}

template <class T> inline T *dvt_retain(T *object) {
    return static_cast<T *>((dvt_retain)(static_cast<void *>(object)));
}
}
#endif
