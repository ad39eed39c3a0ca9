#!/usr/bin/env python3
"""Writes src/0_api/dvt_call_sites.h and dvt_call_sites_off.h from the declarations in src/0_api.

Every public function that returns a new array or a status becomes a macro of the same name that also tells where the
call stands, so that errors can say "x made at main.c:42".

    tools/call_sites.py           write what is stale
    tools/call_sites.py --check   write nothing; fail when something is stale
"""
import os
import re
import sys

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
API = os.path.join(ROOT, "src", "0_api")
ON, OFF = "dvt_call_sites.h", "dvt_call_sites_off.h"
BANNER = "/* GENERATED from the declarations in src/0_api by tools/call_sites.py: do not edit. "

# These hand out what exists already, or are asked about an error: the call is not where it was made.
EXCEPT = {"dvt_note_site", "dvt_note_status", "dvt_grad", "dvt_param_data", "dvt_param_grad", "dvt_block_data",
          "dvt_array_list_at", "dvt_array_list_find", "dvt_error_code"}
COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.S)
MACRO = re.compile(r"^#define (DVT_DECLARE_\w+)\(name\)((?:.*\\\n)*.*)\n", re.M)
ROW = re.compile(r"^(DVT_DECLARE_\w+)\((\w+)\)", re.M)
FUNCTION = re.compile(r"^\s*DVT_API (dvt_array \*|dvt_status )(dvt_\w+)\(", re.M)


def functions():
    """[(name, does it return an array)] in the order of the declarations."""
    found, macros = [], {}
    for file in sorted(os.listdir(API)):
        if file in (ON, OFF):
            continue
        with open(os.path.join(API, file), encoding="utf-8") as opened:
            text = COMMENT.sub("", opened.read())
        for macro in MACRO.finditer(text):
            macros[macro[1]] = macro[2].replace("\\\n", "\n")
        text = MACRO.sub("", text)
        text = ROW.sub(lambda row: re.sub(r"(##)?\bname\b(##)?", row[2], macros[row[1]]).replace("##", ""), text)
        found += [(match[2], match[1] == "dvt_array *") for match in FUNCTION.finditer(text)]
    names = [name for name, _ in found]
    doubled = sorted({name for name in names if names.count(name) > 1})
    if doubled or len(found) < 100:
        sys.exit(f"call_sites: {len(found)} functions, declared twice: {doubled}\n"
                 "  Why: the declarations no longer look as this tool expects\n"
                 "  Fix: one `DVT_API type name(` per line, or teach FUNCTION in tools/call_sites.py")
    return [row for row in found if row[0] not in EXCEPT]


def generate():
    rows = functions()
    on = [BANNER + "*/\n",
          "/* Calls remember where they stand. The name without parentheses, as in `f = dvt_add` or\n"
          "   `(dvt_add)(a, b)`, is the function itself. */\n",
          "#define DVTI_CALL_SITES_ON\n"]
    for name, array in rows:
        note = "dvt_note_site" if array else "dvt_note_status"
        on.append(f"#define {name}(...) {note}({name}(__VA_ARGS__), __FILE__, __LINE__)\n")
    off = [BANNER + "*/\n", "/* The implementation defines the functions, so their names must be their own again. */\n",
           "#undef DVTI_CALL_SITES_ON\n"]
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
