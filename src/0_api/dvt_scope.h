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

   DVT_SCOPE { ... } is a scope with a block of its own. It is a loop of one iteration: break and
   continue leave that block, not the loop around it. GCC and clang 14 warn of such a break at
   compile time when they optimize (GCC: unless the header lies in a system directory), others once
   per process in the log.

   An object that must outlive every scope, or go to another thread, is retained: dvt_retain counts
   one more owner, dvt_release one fewer. dvt_discard frees what only a scope owns before it ends.

   A guard ends on every way out of its block with GCC, Clang and every C++ compiler. With other C
   compilers leave the block of DVT_SCOPE only by its closing brace; they refuse DVT_SCOPED. */

typedef struct dvt_scope_guard {
    size_t mark;
    int depth;
    int once;
} dvt_scope_guard;

/* What DVT_SCOPED and DVT_SCOPE call; by hand, end what was begun, innermost first. NULL is fine.
   */
DVT_API dvt_scope_guard dvt_scope_begin(void);
DVT_API void dvt_scope_end(dvt_scope_guard *guard);

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
/* One more owner; returns the object. Any thread may call it. NULL stays NULL. */
DVT_API void *dvt_retain(void *object);
/* Undoes one dvt_retain; the last owner frees the object. Any thread may call it. NULL is fine.
   Errors: VALUE, and nothing changes (there is no dvt_retain to undo). */
DVT_API void dvt_release(void *object);
/* Frees an object before its scope ends: gives up the share of this thread's scope. An object that
   dvt_retain or another object owns too lives on. The share is one, also of an array that several
   calls returned: dvt_as_in_ctx(x, ...) may be x itself. NULL is fine. Errors: VALUE, and nothing
   changes (no scope of this thread owns the object, which may be borrowed: dvt_grad, dvt_block_at,
   dvt_params_at, ...). */
DVT_API void dvt_discard(void *object);
/* Discards everything that this thread's scopes own, in particular what a program without any
   DVT_SCOPE made. A thread that ends, and the process at exit, do this by themselves. */
DVT_API void dvt_discard_all(void);
