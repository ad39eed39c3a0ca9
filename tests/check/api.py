#!/usr/bin/env python3
"""Checks on the declarations in src/0_api beyond those of a compiler. Prints errors and the sum.

    api.py NM_OUTPUT     the output of `nm -g` on the library, to check that functions exist
"""
import os
import re
import sys

API = "src/0_api"
GENERATED = {"dvt_call_sites.h", "dvt_call_sites_off.h"}
FUNCTION = re.compile(r"^DVT_API [\w* ]*?\b(dvt_\w+)\(|^DVT_DECLARE_\w+\((\w+)\)")
counts = {"passed": 0, "failed": 0, "skipped": 0}


def check(ok, message):
    counts["passed" if ok else "failed"] += 1
    if not ok:
        print("FAIL " + message)


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def undocumented(text):
    """Returns declarations without a comment before, after, or on their group."""
    inside_comment = documented = section = False
    blank = True
    for number, line in enumerate(text.split("\n"), 1):
        starts, ends = "/*" in line, "*/" in line
        if not line.strip() and inside_comment:
            continue
        if not line.strip():
            documented, blank = documented and section, True
            continue
        if line.startswith("/*"):
            documented, section = True, line.startswith("/* ----") or (section and not blank)
        elif FUNCTION.match(line) and not inside_comment and not documented and not starts:
            yield number, FUNCTION.match(line)[1] or FUNCTION.match(line)[2]
        elif not inside_comment and not FUNCTION.match(line):
            section = False
        inside_comment = (inside_comment or starts) and not ends
        blank = False


def check_documented():
    for file in sorted(os.listdir(API)):
        if file in GENERATED:
            continue
        text = read(f"{API}/{file}")
        bare = list(undocumented(text))
        found = ", ".join(f"{name} (line {number})" for number, name in bare)
        check(not bare, f"{API}/{file}: no comment above {found}")
        if FUNCTION.search(text):
            check(re.search(r"^/\* \[dvt:\w+\]", text, re.M),
                  f"{API}/{file}: its first comment has no [dvt:tag]")


def check_defined(nm_output):
    """Checks that the functions with call-site macros are declared and exported, and no others."""
    exported = set(re.findall(r" [TtDdBbRr] _?(dvt_\w+)", read(nm_output)))
    declared = set()
    macros = {}
    for file in sorted(os.listdir(API)):
        if file in GENERATED:
            continue
        text = re.sub(r"/\*.*?\*/", "", read(f"{API}/{file}"), flags=re.S)
        text = re.sub(r'extern "C\+\+" \{.*?^\}$', "", text, flags=re.S | re.M)
        for name, body in re.findall(r"#define (DVT_DECLARE_\w+)\(name\)((?:.*\\\n)*.*)", text):
            macros[name] = re.findall(r"DVT_API [\w* ]*?(dvt_[\w#]+)\(", body)
        for name, row in re.findall(r"^(DVT_DECLARE_\w+)\((\w+)\)", text, re.M):
            declared |= {
                re.sub(r"(##)?\bname\b(##)?", row, one).replace("##", "")
                for one in macros[name]
            }
        text = re.sub(r"#define .*(\\\n.*)*", "", text)
        declared |= set(re.findall(r"^DVT_API [\w* ]*?(dvt_\w+)\(", text, re.M))
    missing, extra = sorted(declared - exported), sorted(exported - declared)
    check(not missing, "declared but not defined: " + ", ".join(missing))
    check(not extra, "exported but not declared in src/0_api: " + ", ".join(extra))


def check_types():
    """Checks types and enumerators of the implementation, which share the user's name space."""
    wrong = []
    for folder, _, files in os.walk("src"):
        for file in files:
            if file.endswith(".cu"):  # separate programs, which NVRTC compiles
                continue
            text = re.sub(r"/\*.*?\*/", "", read(os.path.join(folder, file)), flags=re.S)
            # Expands the names of SIMD primitives.
            text = re.sub(r"\b[VW]\((\w+)\)", r"dvti_target_\1", text)
            names = re.findall(r"^} (\w+);", text, re.M)
            names += re.findall(r"^typedef [\w ]+?[ *](\w+);", text, re.M)
            names += re.findall(r"^(?:typedef )?(?:struct|enum|union) (\w+)", text, re.M)
            wrong += [f"{file}: {name}" for name in names if not re.match(r"dvti?_|DVTI?_", name)]
    check(not wrong, "types without dvt_ or dvti_: " + ", ".join(sorted(wrong)))


def check_switches_and_environment():
    config = read(f"{API}/dvt_config.h")
    listed, environment = config.split("Environment, read once", 1)
    switches = set(re.findall(r"^   (DEVTENSOR_\w+)", listed, re.M))
    variables = set(re.findall(r"^   (DEVTENSOR_\w+)", environment.split("*/")[0], re.M))
    own = {"DEVTENSOR_H", "DEVTENSOR_IMPLEMENTED"}
    used, asked = set(), set()
    for folder, _, files in os.walk("src"):
        for file in files:
            text = re.sub(r"/\*.*?\*/", "", read(os.path.join(folder, file)), flags=re.S)
            asked |= set(re.findall(r'"(DEVTENSOR_\w+)"', text))
            used |= set(
                re.findall(r"(?<![\"\w])DEVTENSOR_\w+(?!\")", re.sub(r'"[^"\n]*"', "", text)))
    used.add("DEVTENSOR_LINES")  # the generator writes its #ifdef
    for name in sorted(used - own - switches):
        check(False, f"{name} is a switch that dvt_config.h does not list")
    for name in sorted(switches - used):
        check(False, f"dvt_config.h lists {name}, which nothing reads")
    for name in sorted(asked - variables):
        check(False, f"{name} is read from the environment, and dvt_config.h does not list it")
    for name in sorted(variables - asked):
        check(False, f"dvt_config.h lists the variable {name}, which nothing reads")
    built = "".join(read(f"tests/{file}")
                    for file in ("compile/run.sh", "compile/smoke.c", "mpi/run.sh"))
    for name in sorted(switches):
        check(re.search(rf"(\b|-D)({name}|{name.replace('DEVTENSOR_', '')})\b", built),
              f"{name} is built by no test: add it to tests/compile/run.sh")


def check_version():
    config = read(f"{API}/dvt_config.h")
    parts = [
        re.search(rf"DVT_VERSION_{part} (\d+)", config)[1] for part in ("MAJOR", "MINOR", "PATCH")
    ]
    text = re.search(r'DVT_VERSION_STRING "(.*)"', config)[1]
    check(text == ".".join(parts),
          f"DVT_VERSION_STRING is {text}, the numbers are {'.'.join(parts)}")
    check(f"## v{text} " in read("CHANGELOG.md"), f"CHANGELOG.md has no section v{text}")


check_documented()
check_defined(sys.argv[1])
check_types()
check_switches_and_environment()
check_version()
print(f"{counts['passed']} passed, {counts['failed']} failed, {counts['skipped']} skipped")
sys.exit(counts["failed"] != 0)
