/* The translator's memory, growing texts and error log. Memory is one list of chunks that is freed
   at once, so an error can longjmp from anywhere. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ptx.h"

typedef struct ptx_chunk {
    struct ptx_chunk *next;
    size_t used, capacity;
    _Alignas(16) char data[];
} ptx_chunk;

void ptx_leave(ptx_context *context, ptx_result reason) {
    context->reason = reason;
    longjmp(context->leave, 1);
}

void *ptx_new(ptx_context *context, size_t bytes) {
    bytes = (bytes + 15) & ~(size_t)15;
    ptx_chunk *chunk = context->chunks;
    if (!chunk || chunk->capacity - chunk->used < bytes) {
        size_t capacity = bytes > 65536 ? bytes : 65536;
        chunk = calloc(1, sizeof *chunk + capacity);
        if (!chunk)
            ptx_leave(context, PTX_NO_MEMORY);
        chunk->capacity = capacity;
        chunk->next = context->chunks;
        context->chunks = chunk;
    }
    void *memory = chunk->data + chunk->used;
    chunk->used += bytes;
    return memory;
}

static void free_chunks(ptx_context *context) {
    while (context->chunks) {
        ptx_chunk *next = context->chunks->next;
        free(context->chunks);
        context->chunks = next;
    }
}

char *ptx_copy(ptx_context *context, const char *text, size_t length) {
    char *copy = ptx_new(context, length + 1);
    memcpy(copy, text, length);
    return copy;
}

ptx_text *ptx_text_new(ptx_context *context) {
    ptx_text *text = ptx_new(context, sizeof *text);
    text->context = context;
    text->capacity = 256;
    text->data = ptx_new(context, text->capacity);
    return text;
}

static void reserve(ptx_text *text, size_t more) {
    if (text->size + more + 1 <= text->capacity)
        return;
    while (text->capacity < text->size + more + 1)
        text->capacity *= 2;
    char *data = ptx_new(text->context, text->capacity);
    memcpy(data, text->data, text->size);
    text->data = data;
}

void ptx_put_bytes(ptx_text *text, const char *data, size_t size) {
    reserve(text, size);
    memcpy(text->data + text->size, data, size);
    text->size += size;
    text->data[text->size] = 0;
}

static void put_list(ptx_text *text, const char *format, va_list list) {
    va_list again;
    va_copy(again, list);
    int length = vsnprintf(NULL, 0, format, list);
    reserve(text, (size_t)length);
    vsnprintf(text->data + text->size, (size_t)length + 1, format, again);
    text->size += (size_t)length;
    va_end(again);
}

void ptx_put(ptx_text *text, const char *format, ...) {
    va_list list;
    va_start(list, format);
    put_list(text, format, list);
    va_end(list);
}

char *ptx_format(ptx_context *context, const char *format, ...) {
    va_list list, again;
    va_start(list, format);
    va_copy(again, list);
    int length = vsnprintf(NULL, 0, format, list);
    char *text = ptx_new(context, (size_t)length + 1);
    vsnprintf(text, (size_t)length + 1, format, again);
    va_end(again);
    va_end(list);
    return text;
}

void ptx_error(ptx_context *context, const char *format, ...) {
    va_list list;
    va_start(list, format);
    if (context->errors++ < 50) { /* enough to see the pattern */
        put_list(context->log, format, list);
        ptx_put(context->log, "\n");
    }
    va_end(list);
}

ptx_result ptx_within(void (*work)(ptx_context *, void *user), void *user, char **log) {
    ptx_context context = {0};
    *log = NULL;
    if (setjmp(context.leave) == 0) {
        context.log = ptx_text_new(&context);
        work(&context, user);
    } else if (context.reason == PTX_UNSUPPORTED) {
        if (context.errors > 50)
            ptx_put(context.log, "and %d more\n", context.errors - 50);
        *log = strdup(context.log->data);
    }
    free_chunks(&context);
    return context.reason;
}
