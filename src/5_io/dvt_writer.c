/* Growing byte buffers, to which printing and the file writers append text and integers. */
#include "5_io/dvt_io_internal.h"

DVTI_FN dvti_writer dvti_writer_begin(void) {
    dvti_writer writer;
    memset(&writer, 0, sizeof writer);
    return writer;
}

DVTI_FN void dvti_writer_free(dvti_writer *writer) {
    dvti_free(writer->at);
    memset(writer, 0, sizeof *writer);
}

static bool dvti_writer_reserve(dvti_writer *writer, size_t n) {
    if (writer->failed || n > SIZE_MAX - 1 - writer->length ||
        !dvti_grow((void **)&writer->at, &writer->capacity, writer->length + n + 1, 1))
        writer->failed = true;
    return !writer->failed;
}

DVTI_FN void dvti_writer_bytes(dvti_writer *writer, const void *bytes, size_t n) {
    if (!n || !dvti_writer_reserve(writer, n))
        return;
    memcpy(writer->at + writer->length, bytes, n);
    writer->length += n;
}

DVTI_FN void dvti_writer_text(dvti_writer *writer, const char *text) {
    dvti_writer_bytes(writer, text, strlen(text));
}

DVTI_FN void dvti_writer_repeat(dvti_writer *writer, char c, int64_t times) {
    if (times <= 0 || !dvti_writer_reserve(writer, (size_t)times))
        return;
    memset(writer->at + writer->length, c, (size_t)times);
    writer->length += (size_t)times;
}

DVTI_FN void dvti_writer_int(dvti_writer *writer, int64_t value) {
    char text[24];
    snprintf(text, sizeof text, "%lld", (long long)value);
    dvti_writer_text(writer, text);
}

DVTI_FN void dvti_writer_le(dvti_writer *writer, uint64_t value, int bytes) {
    unsigned char raw[8];
    int i;
    for (i = 0; i < bytes; i++)
        raw[i] = (unsigned char)(value >> 8 * i);
    dvti_writer_bytes(writer, raw, (size_t)bytes);
}
