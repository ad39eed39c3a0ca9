#!/usr/bin/env python3
"""Writes the generated part of python/devtensor.py from the declarations in src/0_api.

The part has the signatures of all public functions as letters, and the values of all enumerators.
Functions with structs that python/devtensor.py does not lay out are left out, and named there.

    tools/python_api.py           write the part if it is stale
    tools/python_api.py --check   write nothing; fail when the part is stale
"""
import os
import re
import sys
import textwrap

import call_sites

MODULE = os.path.join(call_sites.ROOT, "python", "devtensor.py")
BEGIN, END = "# ---- generated: begin ----\n", "# ---- generated: end ----\n"
# These return objects that another object owns, as call_sites.HAND_OUT.
BORROWED = call_sites.HAND_OUT | {
    "dvt_block_at", "dvt_block_param", "dvt_block_add_param", "dvt_params_at", "dvt_params_find"
}
# Programs do not call these.
PRIVATE = {"dvt_note_" + name for name in
           "site status pointer double int int64 uint64 bool break".split()}
LETTERS = {
    "void": "v", "bool": "?", "int": "i", "uint32_t": "I", "int64_t": "q", "uint64_t": "Q",
    "size_t": "z", "double": "d", "const char*": "s", "dvt_shape": "S", "dvt_axes": "X",
    "dvt_ctx": "C", "dvt_ctx_list": "L", "dvt_key": "K", "dvt_scope_guard": "G",
    "dvt_ctx_guard": "H", "dvt_record_guard": "R", "dvt_stats": "T", "dvt_init": "N",
    "dvt_schedule": "U", "dvt_optimizer": "O"
}
FUNCTION = re.compile(
    r"^\s*DVT_API (?:DVT_BREAK_WARNS )?([\w ]+?[ *]+)(dvt_\w+)\(([^;{]*)\)", re.M)
PARAMETER = re.compile(r"^(.*?[ *])\w+$")
ENUM = re.compile(r"typedef enum dvt_\w+ \{(.*?)\} dvt_(\w+);", re.S)


def declarations():
    """Returns the text of the declarations without comments, with macros of rows expanded."""
    text, macros = "", {}
    for file in sorted(os.listdir(call_sites.API)):
        if file not in (call_sites.ON, call_sites.OFF):
            with open(os.path.join(call_sites.API, file), encoding="utf-8") as opened:
                text += call_sites.COMMENT.sub("", opened.read())
    for macro in call_sites.MACRO.finditer(text):
        macros[macro[1]] = macro[2].replace("\\\n", "\n")
    text = call_sites.MACRO.sub("", text)
    return call_sites.ROW.sub(
        lambda row: re.sub(r"(##)?\bname\b(##)?", row[2], macros[row[1]]).replace("##", ""), text)


def constants(text):
    """Returns the values of enumerators by their names without DVT_, and the enums' types."""
    values, enums = {}, set()
    for number in re.finditer(r"^\s*X\((\w+), (\d+), \"", text, re.M):
        values["ERR_" + number[1]] = int(number[2])
    for body, name in ENUM.findall(text):
        enums.add("dvt_" + name)
        following = 0
        if name == "status":
            continue
        for item in filter(None, (item.strip() for item in body.split(","))):
            name, _, value = item.partition("=")
            following = int(value) if value else following
            values[name.strip()[4:]] = following
            following += 1
    return values, enums


def letter(kind, enums, result):
    """Returns the letter of a type, or the name of an object's type as result; None: unknown."""
    kind = re.sub(r"\s*\*", "*", kind.strip())
    if kind in LETTERS:
        return LETTERS[kind]
    if kind == "dvt_status" and result:
        return "e"
    if kind in enums:
        return "i"
    if result and kind == "dvt_array*":
        return "a"
    if result and re.match(r"dvt_[a-z_]+\*$", kind):
        return kind[4:-1] if not kind.startswith("dvt_dl_") else "p"
    return "p" if kind.endswith("*") or kind.endswith("*const") or kind.endswith("_fn") else None


def signatures(text, enums):
    """Returns the rows "name:result:arguments" and the names that are left out."""
    rows, left_out = [], []
    for kind, name, inside in FUNCTION.findall(text):
        if name in PRIVATE:
            continue
        letters = [letter(kind, enums, True)]
        inside = "" if inside.strip() == "void" else inside
        parts = inside.split(",") if inside and "(*" not in inside else []
        for part in parts:
            letters.append(letter(PARAMETER.match(" ".join(part.split()))[1], enums, False))
        if None in letters or "(*" in inside:
            left_out.append(name[4:])
        else:
            star = "*" if name in BORROWED else ""
            rows.append(f"{name[4:]}:{letters[0]}{star}:{''.join(letters[1:])}")
    return rows, left_out


def generate():
    text = declarations()
    values, enums = constants(text)
    rows, left_out = signatures(text, enums)
    doubled = sorted({row for row in rows if rows.count(row) > 1})
    if doubled or len(rows) < 300 or len(values) < 100 or len(left_out) > 30:
        sys.exit(f"python_api: {len(rows)} functions, {len(values)} constants, twice: {doubled}, "
                 f"left out: {left_out}\n"
                 "  Why: the declarations no longer look as this tool expects\n"
                 "  Fix: give new structs a letter in LETTERS of tools/python_api.py and a layout "
                 "in python/devtensor.py")
    wrap = textwrap.TextWrapper(100, break_long_words=False, break_on_hyphens=False)
    comment = textwrap.TextWrapper(100, initial_indent="# ", subsequent_indent="# ")
    return "\n".join(
        comment.wrap("By tools/python_api.py: do not edit. name:result:arguments, see _LETTERS. A "
                     "* marks results that another object owns. Left out: " + ", ".join(left_out) +
                     ".") + ['_SIGNATURES = """'] + wrap.wrap(" ".join(rows)) +
        ['"""', '_CONSTANTS = """'] +
        wrap.wrap(" ".join(f"{name}={value}" for name, value in values.items())) + ['"""\n'])


def main():
    with open(MODULE, encoding="utf-8") as opened:
        old = opened.read()
    before, _, rest = old.partition(BEGIN)
    _, _, after = rest.partition(END)
    new = before + BEGIN + generate() + END + after
    if new == old:
        return
    if "--check" in sys.argv:
        sys.exit("python_api: python/devtensor.py is stale\n"
                 "  Why: the declarations in src/0_api changed and its signatures did not\n"
                 "  Fix: run `make header` and commit the result")
    with open(MODULE, "w", encoding="utf-8", newline="\n") as opened:
        opened.write(new)
    print("wrote the signatures of python/devtensor.py")


if __name__ == "__main__":
    main()
