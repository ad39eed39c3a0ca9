# Compares counts with the committed table. A count that rises by more than 2 % is a slower kernel;
# one that falls by more than 2 % leaves the table behind. NVRTC's output is not the same each time:
# one load more or less is normal (docs/GPU_MODEL.md).
# usage: awk -v all=1 -f compare.awk expected.txt counts.txt
#   all: a row that only the table has is an error

# Gives the path of a line's number: "row / kernel / group name".
function path(name) { return row " / " kernel " / " group " " name }

function percent(from, to) {
    return from == 0 ? "new" : sprintf("%+.1f %%", 100 * (to - from) / from)
}

function wrong(what, text) {
    print "FAIL " what ": " text
    failed_row[row] = 1
    failed++
}

FNR == 1 { file++; version[file] = $0; next }
$1 == "#" { next }
$1 == "row" {
    row = substr($0, 5)
    kernel = "all"
    if (file == 1) expected_row[row] = 1
    else { order[++rows] = row; seen_row[row] = 1 }
    next
}
{
    start = 2
    group = $1
    if ($1 == "kernel") {
        kernel = $2
        start = 3
    }
    for (i = start; i + 1 <= NF; i += 2) {
        # `least bytes` and `launches` are exact; a name may hold only one number
        p = path($i)
        if (file == 1) { expected[p] = $(i + 1); of_row[p] = row; group_of[p] = group }
        else { actual[p] = $(i + 1); place[++n] = p; row_at[n] = row; of_row[p] = row; group_of[p] = group }
    }
}
END {
    same_version = version[1] == version[2]
    for (i = 1; i <= n; i++) {
        p = place[i]
        row = row_at[i]
        group = group_of[p]
        if (!(row in expected_row)) continue
        if (!same_version && (group == "ptxas" || group == "instructions")) continue
        from = p in expected ? expected[p] : 0
        to = actual[p]
        better = p ~ / ptxas resident$/ ? to > from * 1.02 : to < from * 0.98
        worse = p ~ / ptxas resident$/ ? to < from * 0.98 : to > from * 1.02
        if (worse)
            wrong(p, "expected " from ", now " to " (" percent(from, to) \
                "): slower; if it is intended, make gpu-model-update")
        else if (better)
            wrong(p, "expected " from ", now " to " (" percent(from, to) \
                "): better; keep it with make gpu-model-update")
    }
    for (p in expected) {
        row = of_row[p]
        if (!(row in seen_row) || p in actual) continue
        if (group_of[p] == "ptxas" || (!same_version && group_of[p] == "instructions")) continue
        wrong(p, "expected " expected[p] ", now nothing: keep it with make gpu-model-update")
    }
    for (i = 1; i <= rows; i++) {
        row = order[i]
        if (!(row in expected_row)) wrong(row, "not in the table: make gpu-model-update")
        else if (!(row in failed_row)) passed++
    }
    for (row in expected_row)
        if (all && !(row in seen_row)) wrong(row, "in the table only: make gpu-model-update")
    has_usage = 0
    for (p in actual) has_usage += group_of[p] == "ptxas"
    if (!same_version) {
        print "SKIP registers and instructions: the table is of " version[1] ", this is " version[2]
        skipped++
    } else if (!has_usage) {
        print "SKIP registers: make test-long and make gpu-model-update run ptxas"
        skipped++
    }
    if (rows == 0) { print "FAIL counts: there are none"; failed++ }
    printf "%d passed, %d failed, %d skipped\n", passed, failed, skipped
    exit failed > 0
}
