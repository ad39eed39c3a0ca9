/* The cache of compiled modules in the directory $SIMCUDA_CACHE; disabled without that variable. */
#ifndef PTX_CACHE_H
#define PTX_CACHE_H

#include <stddef.h>

__extension__ typedef unsigned __int128 ptx_hash; /* FNV-1a of 128 bits */

ptx_hash ptx_hash_begin(void);
ptx_hash ptx_hash_add(ptx_hash, const void *data, size_t size);
void ptx_hash_text(ptx_hash, char text[40]); /* 32 digits */

void *ptx_cache_get(const char *key, size_t *size); /* NULL when it is missing or damaged */
void ptx_cache_put(const char *key, const void *container, size_t size);

char *ptx_read_file(const char *path,
                    size_t *size); /* with a zero after the last byte; NULL with errno */
int ptx_write_file(const char *path, const void *data, size_t size);

#endif
