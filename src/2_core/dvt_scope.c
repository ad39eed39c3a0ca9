/* Objects and the scopes that own them. Each thread has one stack of objects; a mark is the
   position at which a scope begins.

     items   a b c | d e | f g h        marks of three scopes: 0, 3, 5

   dvt_keep swaps an object with the first one above the mark, and moves the mark. */
#include "2_core/dvt_core.h"

typedef struct dvti_scope_stack {
    dvti_thread_end end;
    dvti_object **items;
    size_t count, capacity;
    size_t *marks; /* where each open scope begins */
    size_t marks_capacity;
    /* The number of open scopes, and how many of them have a mark. The innermost have none if there
       was no memory for it; their objects belong to the scope outside. */
    size_t depth, marked;
} dvti_scope_stack;

#if DVTI_TLS_ENDS_EARLY
/* Objects of the spare stack are not released at thread end. */
static DVTI_TLS dvti_scope_stack *dvti_scopes_at, dvti_scopes_spare;

static dvti_scope_stack *dvti_scopes_here(void) {
    if (!dvti_scopes_at)
        dvti_scopes_at = (dvti_scope_stack *)dvti_thread_block(sizeof *dvti_scopes_at);
    if (!dvti_scopes_at)
        dvti_scopes_at = &dvti_scopes_spare;
    return dvti_scopes_at;
}

#define dvti_scopes (*dvti_scopes_here())
#else
static DVTI_TLS dvti_scope_stack dvti_scopes;
#endif

static void dvti_scopes_end_thread(dvti_thread_end *end) {
#if DVTI_TLS_ENDS_EARLY
    dvti_scopes_at = (dvti_scope_stack *)end;
#endif
    dvt_discard_all();
    dvti_free(dvti_scopes.items);
    dvti_free(dvti_scopes.marks);
    memset(&dvti_scopes, 0, sizeof dvti_scopes);
    dvti_small_end();
    dvti_count_end();
#if DVTI_TLS_ENDS_EARLY
    dvti_scopes_at = NULL;
    dvti_thread_block_free(end);
#else
    (void)end;
#endif
}

DVTI_FN void dvti_scopes_at_end(void) {
#if DVTI_TLS_ENDS_EARLY
    if (dvti_scopes_here() == &dvti_scopes_spare)
        return;
#endif
    dvti_scopes.end.run = dvti_scopes_end_thread;
    dvti_at_thread_end(&dvti_scopes.end);
    dvti_small_begin();
}

static size_t dvti_scope_floor(void) {
    return dvti_scopes.marked ? dvti_scopes.marks[dvti_scopes.marked - 1] : 0;
}

static bool dvti_scope_unmarked(void) {
    return dvti_scopes.marked < dvti_scopes.depth;
}

static DVTI_RARE bool dvti_scope_grow(void) {
    dvti_scopes_at_end();
    return dvti_grow((void **)&dvti_scopes.items, &dvti_scopes.capacity, dvti_scopes.count + 1,
                     sizeof *dvti_scopes.items);
}

static bool dvti_scope_reserve(void) {
    return dvti_scopes.count < dvti_scopes.capacity || dvti_scope_grow();
}

DVTI_FN void dvti_object_begin_unowned(void *object, void (*destroy)(void *)) {
    dvti_object *header = (dvti_object *)object;
    header->references = 1; /* no other thread knows the object yet */
    header->retains = 0;
    header->owned_at = 0;
    header->destroy = destroy;
    header->abandon = NULL;
}

DVTI_FN bool dvti_object_begin(void *object, void (*destroy)(void *), const char *function) {
    if (!dvti_scope_reserve()) {
        dvti_fail_memory(function, (int64_t)(sizeof(void *) * (dvti_scopes.count + 1)));
        return false;
    }
    dvti_object_begin_unowned(object, destroy);
    dvti_scopes.items[dvti_scopes.count++] = (dvti_object *)object;
    ((dvti_object *)object)->owned_at = (int64_t)dvti_scopes.count;
    return true;
}

static void dvti_scope_put(size_t at, dvti_object *object) {
    dvti_scopes.items[at] = object;
    dvti_atomic_publish(&object->owned_at, (int64_t)at + 1);
}

/* Returns the position of an object at `floor` or above, or `count` if it is not there. If the
   stack holds an object several times, owned_at is its last position. The others are then searched
   from the newest. */
static size_t dvti_scope_find(dvti_object *object, size_t floor) {
    size_t i = (size_t)dvti_atomic_load(&object->owned_at);
    if (i > floor && i <= dvti_scopes.count && dvti_scopes.items[i - 1] == object)
        return i - 1;
    for (i = dvti_scopes.count; i > floor; i--)
        if (dvti_scopes.items[i - 1] == object)
            return i - 1;
    return dvti_scopes.count;
}

/* Removes an item. Each scope above moves down by one: its newest item fills the free position
   below its oldest. */
static void dvti_scope_drop_item(size_t at) {
    size_t m, hole = at;
    dvti_atomic_publish(&dvti_scopes.items[at]->owned_at, 0);
    for (m = 0; m < dvti_scopes.marked; m++)
        if (dvti_scopes.marks[m] > at) {
            size_t last = --dvti_scopes.marks[m];
            if (last != hole)
                dvti_scope_put(hole, dvti_scopes.items[last]);
            hole = last;
        }
    if (--dvti_scopes.count != hole)
        dvti_scope_put(hole, dvti_scopes.items[dvti_scopes.count]);
}

DVTI_FN void dvti_scope_take(void *object) {
    size_t at = dvti_scope_find((dvti_object *)object, dvti_scope_floor());
    /* An outer scope owns it, or a scope without a mark: keep that reference and add one. */
    if (at == dvti_scopes.count || dvti_scope_unmarked())
        dvti_own(object);
    else
        dvti_scope_drop_item(at);
}

DVTI_FN bool dvti_scope_give(void *object) {
    if (!dvti_scope_reserve())
        return false;
    dvti_scope_put(dvti_scopes.count++, (dvti_object *)object);
    return true;
}

DVTI_FN void *dvti_own(void *object) {
    if (object)
        dvti_atomic_add(&((dvti_object *)object)->references, 1);
    return object;
}

static int64_t dvti_owners(int64_t references) {
    return references & (DVTI_HOLD - 1);
}

DVTI_FN void dvti_hold(void *object) {
    dvti_atomic_add(&((dvti_object *)object)->references, DVTI_HOLD);
}

DVTI_FN void dvti_unhold(void *object) {
    dvti_object *header = (dvti_object *)object;
    if (dvti_atomic_add(&header->references, -DVTI_HOLD) == 0)
        header->destroy(object);
}

DVTI_FN bool dvti_retain_owned(void *object) {
    dvti_object *header = (dvti_object *)object;
    int64_t was;
    do {
        was = dvti_atomic_load(&header->references);
        if (dvti_owners(was) == 0)
            return false;
    } while (!dvti_atomic_swap(&header->references, was, was + 1));
    return true;
}

/* Drops an owner. The last owner of an object with holds has to abandon it, and holds it meanwhile.
   If this is the only reference, no atomic step is needed: no other thread can add one. */
DVTI_FN dvti_last dvti_disown_step(dvti_object *object) {
    int64_t was, now;
    bool last;
    if (dvti_atomic_load(&object->references) == 1)
        return DVTI_LAST_DESTROYS;
    do {
        was = dvti_atomic_load(&object->references);
        last = object->abandon && was > DVTI_HOLD && dvti_owners(was) == 1;
        now = was - 1 + (last ? DVTI_HOLD : 0);
    } while (!dvti_atomic_swap(&object->references, was, now));
    return last ? DVTI_LAST_ABANDONS : now == 0 ? DVTI_LAST_DESTROYS : DVTI_NOT_LAST;
}

DVTI_FN void dvti_disown(void *object) {
    dvti_object *header = (dvti_object *)object;
    dvti_last last = header ? dvti_disown_step(header) : DVTI_NOT_LAST;
    if (last == DVTI_LAST_DESTROYS)
        header->destroy(object);
    if (last == DVTI_LAST_ABANDONS) {
        header->abandon(object);
        dvti_unhold(object);
    }
}

DVT_API void *dvt_retain(void *object) {
    if (object) {
        dvti_own(object);
        dvti_atomic_add(&((dvti_object *)object)->retains, 1);
    }
    return object;
}

/* Undoes one dvt_retain of any thread. Returns false if there is none. */
static bool dvti_undo_retain(dvti_object *object) {
    int64_t was;
    do {
        was = dvti_atomic_load(&object->retains);
        if (was == 0)
            return false;
    } while (!dvti_atomic_swap(&object->retains, was, was - 1));
    return true;
}

/* Reports why a thread cannot give up an ownership that it does not have. */
static void dvti_fail_share(const char *function, dvti_object *object) {
    if (dvti_atomic_load(&object->owned_at) != 0)
        dvti_fail(DVT_ERR_VALUE,
                  "%s: only a scope of another thread still owns the object; dvt_retain it before "
                  "it goes to this thread, and dvt_release it once for that",
                  function);
    else if (dvti_atomic_load(&object->retains) != 0)
        dvti_fail(DVT_ERR_VALUE,
                  "%s: no scope owns the object, which dvt_retain keeps: call dvt_release",
                  function);
    else
        dvti_fail(
            DVT_ERR_VALUE,
            "%s: the object is borrowed, or given up already: another object owns it, as an "
            "array its gradient, a block its parameters and children, a list its arrays; give "
            "up once, and only what dvt_retain or a scope of this thread owns",
            function);
}

DVT_API void dvt_release(void *object) {
    dvti_object *header = (dvti_object *)object;
    if (!header)
        return;
    if (dvti_undo_retain(header))
        dvti_disown(object);
    else if (dvti_scope_find(header, 0) != dvti_scopes.count)
        dvti_fail(
            DVT_ERR_VALUE,
            "dvt_release: there is no dvt_retain to undo, and a scope of this thread owns the "
            "object: call dvt_discard to free it before the scope ends");
    else
        dvti_fail_share("dvt_release", header);
}

DVT_API void dvt_discard(void *object) {
    dvti_object *header = (dvti_object *)object;
    size_t at;
    if (!header)
        return;
    at = dvti_scope_find(header, 0);
    if (at == dvti_scopes.count) {
        dvti_fail_share("dvt_discard", header);
        return;
    }
    dvti_scope_drop_item(at);
    dvti_disown(object);
}

/* Moves the object to the enclosing scope: swaps it with the first one above this scope's mark, and
   moves the mark above it. */
DVT_API void *dvt_keep(void *object) {
    size_t at, first;
    if (!object || !dvti_scopes.depth || dvti_scope_unmarked())
        return object;
    at = dvti_scope_find((dvti_object *)object, dvti_scope_floor());
    if (at == dvti_scopes.count)
        return object;
    first = dvti_scopes.marks[dvti_scopes.marked - 1]++;
    dvti_scope_put(at, dvti_scopes.items[first]);
    dvti_scope_put(first, (dvti_object *)object);
    return object;
}

DVTI_FN int64_t dvti_scope_outermost(void (*destroy)(void *)) {
    size_t end = dvti_scopes.marked > 1 ? dvti_scopes.marks[1] : dvti_scopes.count, i;
    int64_t n = 0;
    for (i = 0; i < end; i++)
        n += dvti_scopes.items[i]->destroy == destroy;
    return n;
}

/* Releases the objects of the scope at that depth and those inside it, newest first; -1:
   everything. A destroy function never opens a scope or creates an object. It may release objects
   of an outer scope, which moves the mark. */
static void dvti_scope_drop(int depth) {
    while (dvti_scopes.count > (depth < 0 ? 0 : dvti_scopes.marks[depth])) {
        dvti_object *object = dvti_scopes.items[--dvti_scopes.count];
        dvti_atomic_publish(&object->owned_at, 0);
        dvti_disown(object);
    }
}

/* Scopes without a mark get one when memory is available again: they own the objects created from
   then on. */
DVT_API dvt_scope_guard dvt_scope_begin(void) {
    dvt_scope_guard guard;
    guard.once = 1;
    guard.mark = dvti_scopes.count;
    guard.depth = (int)dvti_scopes.depth++;
    if (dvti_scopes.depth > dvti_scopes.marks_capacity)
        dvti_scopes_at_end();
    else if (dvti_scopes.marked + 1 == dvti_scopes.depth) {
        dvti_scopes.marks[dvti_scopes.marked++] = guard.mark;
        return guard;
    }
    if (dvti_grow((void **)&dvti_scopes.marks, &dvti_scopes.marks_capacity, dvti_scopes.depth,
                  sizeof *dvti_scopes.marks))
        while (dvti_scope_unmarked())
            dvti_scopes.marks[dvti_scopes.marked++] = dvti_scopes.count;
    return guard;
}

/* Also ends inner scopes that are still open (possible only with compilers without automatic
   guards). */
DVT_API void dvt_scope_end(dvt_scope_guard *guard) {
    if (!guard)
        return;
    guard->once = 0;
    if (guard->depth < 0 || (size_t)guard->depth >= dvti_scopes.depth)
        return;
    if ((size_t)guard->depth < dvti_scopes.marked) {
        dvti_scope_drop(guard->depth);
        dvti_scopes.marked = (size_t)guard->depth;
    }
    dvti_scopes.depth = (size_t)guard->depth;
    guard->depth = -1;
}

DVT_API DVT_BREAK_WARNS void dvt_note_break(const char *macro, const char *file, int line) {
    static int64_t noted;
    if (dvti_atomic_add(&noted, 1) != 1)
        return;
    if (line)
        dvti_log(DVT_LOG_WARNING,
                 "%s:%d: break left only the block of %s, not the loop around it; declare "
                 "DVT_SCOPED, DVT_RECORD_SCOPED or DVT_CTX_SCOPED in the loop's own block instead",
                 file, line, macro);
    else
        dvti_log(DVT_LOG_WARNING,
                 "break left only the block of %s, not the loop around it; declare DVT_SCOPED, "
                 "DVT_RECORD_SCOPED or DVT_CTX_SCOPED in the loop's own block instead",
                 macro);
}

DVT_API void dvt_discard_all(void) {
    dvti_scopes.depth = dvti_scopes.marked = 0;
    dvti_scope_drop(-1);
}

#undef dvti_scopes
