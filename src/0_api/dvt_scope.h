/* [dvt:scope] Who owns what. Every object that a call returns belongs to the innermost DVT_SCOPE of
   the calling thread, or to the thread itself when there is none, and is released when that ends.
   So nested expressions never leak:

       for (...) DVT_SCOPE {
           dvt_array *loss = dvt_mean(dvt_square(dvt_sub(a, b)), DVT_ALL, false);
           best = dvt_keep(loss);          // lives on in the enclosing scope
       }

   A scope is a loop of one turn: break and continue leave the scope, and not the loop around it.

   An object that must outlive every scope, or travel to another thread, is retained: dvt_retain
   counts one more owner, dvt_release one fewer. */

typedef struct dvt_scope_guard {
    size_t mark;
    int depth;
    int once;
} dvt_scope_guard;

/* What DVT_SCOPE calls; by hand, end what was begun, innermost first. */
DVT_API dvt_scope_guard dvt_scope_begin(void);
DVT_API void dvt_scope_end(dvt_scope_guard *guard);

/* With GCC and Clang, and in C++, a guard ends on every way out of its block. Elsewhere leave the
   block only by its closing brace. */
#if defined(__GNUC__) || defined(__clang__)
#define DVT_GUARD_NEXT(end, guard) (guard) = NULL
#else
#define DVT_GUARD_NEXT(end, guard) (end)(guard), (guard) = NULL
#endif
/* A name per line, so that nested guards do not hide each other (-Wshadow). */
#define DVT_GUARD_NAME_(name, line) name##line
#define DVT_GUARD_NAME(name, line) DVT_GUARD_NAME_(name, line)
/* The loop runs on a pointer to its guard, so that compilers see that its one turn is taken, and do
   not call what is set in it uninitialised. */
#define DVT_GUARDED(type, name, begin, end)                                                        \
    for (type DVT_GUARD_NAME(name, __LINE__)                                                       \
             DVT_CLEANUP(end) = begin,                                                             \
             *DVT_GUARD_NAME(name##_turn, __LINE__) = &DVT_GUARD_NAME(name, __LINE__);             \
         DVT_GUARD_NAME(name##_turn, __LINE__);                                                    \
         DVT_GUARD_NEXT(end, DVT_GUARD_NAME(name##_turn, __LINE__)))
#define DVT_SCOPE DVT_GUARDED(dvt_scope_guard, dvt_g_scope, dvt_scope_begin(), dvt_scope_end)

/* Moves an object to the enclosing scope and returns it. Without an enclosing scope, and for
   objects that this scope does not own, nothing changes. NULL stays NULL. */
DVT_API void *dvt_keep(void *object);
/* One more owner; returns the object. Pair with dvt_release. Any thread may do either. */
DVT_API void *dvt_retain(void *object);
/* One owner fewer; the last one frees the object. Without a dvt_retain to undo, it is the share of
   this thread's scope that is given up: the object is freed now, and not at the scope's end. Only
   while nobody else owns it; what a trainer, a loader, a dataset or a block was given, or what was
   retained for another thread, is left to its scope. NULL is fine. VALUE (nothing changes): only a
   scope of another thread owns it. */
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
