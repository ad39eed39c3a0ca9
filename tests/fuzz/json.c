/* JSON: skipping a text and walking through it accept the same texts, from memory and from files.
   What the walk reads can be written and read again. */
#include "fuzz.h"

/* Writes a text as JSON and reads it back. */
static bool survives(const char *text, size_t length) {
    dvti_writer writer = dvti_writer_begin();
    dvti_source in;
    dvti_json json;
    bool same;
    dvti_json_write(&writer, text);
    dvti_source_memory(&in, "fuzz", writer.at, writer.length);
    dvti_json_begin(&json, &in, (int64_t)writer.length);
    same = dvti_json_string(&json) && dvti_json_end(&json) && json.text.length == length &&
           memcmp(json.text.at, text, length) == 0;
    dvti_json_free(&json);
    dvti_writer_free(&writer);
    return same;
}

static bool walk(dvti_json *json) {
    switch (dvti_json_value(json)) {
    case DVTI_JSON_OBJECT:
        while (dvti_json_member(json)) {
            FUZZ_CHECK(survives(json->text.at, json->text.length));
            if (!walk(json))
                return false;
        }
        break;
    case DVTI_JSON_ARRAY:
        while (dvti_json_item(json))
            if (!walk(json))
                return false;
        break;
    case DVTI_JSON_STRING:
        FUZZ_CHECK(dvti_utf8_valid(json->text.at) && strlen(json->text.at) == json->text.length);
        FUZZ_CHECK(survives(json->text.at, json->text.length));
        break;
    case DVTI_JSON_NUMBER:
        FUZZ_CHECK(strspn(json->text.at, "-+.eE0123456789") == json->text.length);
        break;
    default:
        break;
    }
    return !json->failed;
}

static bool accepts(dvti_source *in, bool walks) {
    dvti_json json;
    bool good;
    dvti_json_begin(&json, in, dvti_source_left(in));
    good = (walks ? walk(&json) : dvti_json_skip(&json)) && dvti_json_end(&json);
    FUZZ_CHECK(good == !json.failed);
    FUZZ_CHECK(!good || json.depth == 0);
    dvti_json_free(&json);
    FUZZ_CHECK(good || dvt_error_code() == DVT_ERR_FORMAT);
    dvt_clear_error();
    return good;
}

DVT_FUZZ(json) {
    dvti_source in;
    const char *path;
    bool good;
    fuzz_begin();
    dvti_source_memory(&in, "fuzz", data, size);
    good = accepts(&in, false);
    dvti_source_memory(&in, "fuzz", data, size);
    FUZZ_CHECK(accepts(&in, true) == good);
    path = fuzz_file(data, size);
    if (*path) {
        FUZZ_TRICKLE(size > 2000 ? 0 : (unsigned)size * 2654435761u | 1);
        FUZZ_CHECK(dvti_source_open(&in, "fuzz", path) && accepts(&in, true) == good);
        FUZZ_TRICKLE(0);
        dvti_source_close(&in);
    }
    fuzz_end();
    return 0;
}
