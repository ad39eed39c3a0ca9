#!/usr/bin/env python3
"""Writes src/0_api/dvt_call_sites.h and dvt_call_sites_off.h from the declarations in src/0_api.

Every public function that returns an object or a status becomes a macro of the same name, and so
do the others that can fail. The macro also passes the location of the call, so that errors can say
"x made at main.c:42".

    tools/call_sites.py           write stale files
    tools/call_sites.py --check   write nothing; fail when a file is stale
"""
import os
import re
import sys

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
API = os.path.join(ROOT, "src", "0_api")
ON, OFF = "dvt_call_sites.h", "dvt_call_sites_off.h"
BANNER = "/* GENERATED from the declarations in src/0_api by tools/call_sites.py: do not edit. "

# These note the location themselves, or cannot fail: NULL is their argument, or a valid result.
EXCEPT = {
    "dvt_note_site", "dvt_note_status", "dvt_note_pointer", "dvt_error_code", "dvt_keep",
    "dvt_retain", "dvt_cuda_stream"
}
# These return existing arrays: the call did not create them, but it may fail.
HAND_OUT = {
    "dvt_grad", "dvt_param_data", "dvt_param_grad", "dvt_block_data", "dvt_array_list_at",
    "dvt_array_list_find"
}
# These return numbers and can fail, which they report by NaN, 0, a negative number or false.
NUMBERS = {
    "dvt_dim", "dvt_stride", "dvt_item", "dvt_item_int", "dvt_item_at", "dvt_trim_memory",
    "dvt_cuda_address", "dvt_params_len", "dvt_block_len", "dvt_schedule_rate",
    "dvt_trainer_learning_rate", "dvt_clip_global_norm", "dvt_trainer_clip_global_norm",
    "dvt_loader_next", "dvt_checkpoint_latest", "dvt_metric_get", "dvt_allclose", "dvt_array_equal"
}
NOTES = {
    "double": "dvt_note_double", "int": "dvt_note_int", "int64_t": "dvt_note_int64",
    "uint64_t": "dvt_note_uint64", "bool": "dvt_note_bool"
}
COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.S)
MACRO = re.compile(r"^#define (DVT_DECLARE_\w+)\(name\)((?:.*\\\n)*.*)\n", re.M)
ROW = re.compile(r"^(DVT_DECLARE_\w+)\((\w+)\)", re.M)
FUNCTION = re.compile(r"^\s*DVT_API (\w+ \*?)(dvt_\w+)\(", re.M)


def functions():
    """Returns [(name, return type)] of the functions that become macros, in declaration order."""
    found, macros = [], {}
    for file in sorted(os.listdir(API)):
        if file in (ON, OFF):
            continue
        with open(os.path.join(API, file), encoding="utf-8") as opened:
            text = COMMENT.sub("", opened.read())
        for macro in MACRO.finditer(text):
            macros[macro[1]] = macro[2].replace("\\\n", "\n")
        text = MACRO.sub("", text)
        text = ROW.sub(
            lambda row: re.sub(r"(##)?\bname\b(##)?", row[2], macros[row[1]]).replace("##", ""),
            text)
        found += [(match[2], match[1].replace(" ", "")) for match in FUNCTION.finditer(text)]
    names = [name for name, _ in found]
    doubled = sorted({name for name in names if names.count(name) > 1})
    unknown = sorted((EXCEPT | HAND_OUT | NUMBERS) - set(names))
    if doubled or unknown or len(found) < 100:
        sys.exit(
            f"call_sites: {len(found)} functions, declared twice: {doubled}, "
            f"not declared: {unknown}\n"
            "  Why: the declarations no longer look as this tool expects\n"
            "  Fix: one `DVT_API type name(` per line, or teach FUNCTION in tools/call_sites.py")
    return [
        (name, kind) for name, kind in found
        if name not in EXCEPT and (kind == "dvt_status" or kind.endswith("*") or name in NUMBERS)
    ]


def noted(name, kind):
    """Returns the call with its location."""
    call = f"{name}(__VA_ARGS__)"
    if kind == "dvt_array*" and name not in HAND_OUT:
        return f"dvt_note_site({call}, __FILE__, __LINE__)"
    if kind.endswith("*"):
        return f"DVT_NOTE_POINTER({kind[:-1]}, {call})"
    note = "dvt_note_status" if kind == "dvt_status" else NOTES[kind]
    return f"{note}({call}, __FILE__, __LINE__)"


def generate():
    rows = functions()
    on = [
        BANNER + "*/\n",
        "/* Calls remember where they stand. The name without parentheses, as in `f = dvt_add` or\n"
        "   `(dvt_add)(a, b)`, is the function itself. */\n", "#define DVTI_CALL_SITES_ON\n"
    ]
    on += [f"#define {name}(...) {noted(name, kind)}\n" for name, kind in rows]
    off = [
        BANNER + "*/\n",
        "/* The implementation defines the functions, so their names must be their own again. */\n",
        "#undef DVTI_CALL_SITES_ON\n"
    ]
    off += [f"#undef {name}\n" for name, _ in rows]
    return {ON: "".join(on), OFF: "".join(off)}


def main():
    stale = []
    for file, text in generate().items():
        path = os.path.join(API, file)
        old = open(path, encoding="utf-8").read() if os.path.exists(path) else None
        if old == text:
            continue
        stale.append(file)
        if "--check" not in sys.argv:
            with open(path, "w", encoding="utf-8", newline="\n") as opened:
                opened.write(text)
            print("wrote src/0_api/" + file)
    if stale and "--check" in sys.argv:
        sys.exit(f"call_sites: stale: {', '.join(stale)}\n"
                 "  Why: the declarations in src/0_api changed and their macros did not\n"
                 "  Fix: run `make header` and commit the result")


if __name__ == "__main__":
    main()
