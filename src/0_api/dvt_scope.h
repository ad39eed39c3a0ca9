/* [dvt:scope] Ownership. Every object that a call returns belongs to the innermost scope of the
   calling thread, or to the thread itself if it has no scope. The end of the scope or thread
   releases the object. So nested expressions never leak:

       for (...) {
           DVT_SCOPED;                     // ends at the closing brace, break, return, ...
           dvt_array *loss = dvt_mean(dvt_square(dvt_sub(a, b)), DVT_ALL);
           best = dvt_keep(loss);          // moves to the enclosing scope
           if (dvt_item(loss) < 0.01)
               break;                      // leaves the loop, and ends the scope
       }

   DVT_SCOPE { ... } is a scope with a block of its own. It is a loop of one iteration: break and
   continue leave that block, not the loop around it. GCC and clang 14 warn about such a break at
   compile time if they optimize (GCC: unless the header is in a system directory). With other
   compilers the log has a warning, once per process.

   Retain an object that must outlive every scope, or that another thread uses: dvt_retain adds an
   owner, dvt_release removes one. dvt_discard releases an object before its scope ends.

   With GCC, Clang and every C++ compiler a scope ends however its block is left. With other C
   compilers, leave the block of DVT_SCOPE only by its closing brace; they refuse DVT_SCOPED. */

/* State of a scope; its fields are private. */
typedef struct dvt_scope_guard {
    size_t mark;
    int depth;
    int once;
} dvt_scope_guard;

/* Begin and end a scope, as DVT_SCOPED and DVT_SCOPE do. In code without the macros, end scopes in
   reverse order. NULL is allowed. */
DVT_API dvt_scope_guard dvt_scope_begin(void);
DVT_API void dvt_scope_end(dvt_scope_guard *guard);

/* Begins a scope that lasts until the end of the enclosing block. It is a declaration, so the block
   needs braces. */
#define DVT_SCOPED                                                                                 \
    DVT_GUARD_DECLARED(dvt_scope_guard, DVT_GUARD_NAME(dvt_g_scoped, __LINE__), dvt_scope_begin(), \
                       dvt_scope_end)
/* Makes the block that follows a scope. */
#define DVT_SCOPE                                                                                  \
    DVT_GUARDED("DVT_SCOPE", dvt_scope_guard, dvt_g_scope, dvt_scope_begin(), dvt_scope_end)

/* Moves an object to the enclosing scope and returns it. Does nothing if there is no enclosing
   scope, or if the innermost scope does not own the object. NULL stays NULL. */
DVT_API void *dvt_keep(void *object);
/* Adds an owner and returns the object. Any thread may call it. NULL stays NULL. */
DVT_API void *dvt_retain(void *object);
/* Undoes one dvt_retain; the last owner frees the object. Any thread may call it. NULL is allowed.
   Errors: VALUE, and nothing changes (there is no dvt_retain to undo). */
DVT_API void dvt_release(void *object);
/* Gives up the ownership of this thread's scope before the scope ends. The object lives on if
   dvt_retain or another object owns it too. A scope owns an object once, also if several calls
   returned it: dvt_as_in_ctx(x, ...) may be x itself. NULL is allowed.
   Errors: VALUE, and nothing changes (no scope of this thread owns the object; it may be borrowed,
   as from dvt_grad, dvt_block_at or dvt_params_at). */
DVT_API void dvt_discard(void *object);
/* Discards everything that this thread's scopes own, including objects created outside of any
   scope. The end of a thread, and exit, do this too. */
DVT_API void dvt_discard_all(void);
