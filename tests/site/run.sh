#!/bin/sh
# Builds the documentation site, resolves its links, and uses it in a browser where chromium is
# installed. Environment: BUILD, PYTHON, and CHROMIUM for another name of the browser.
. tests/lib.sh
: "${PYTHON:=python3}"
D=$PWD/$BUILD/site-test
rm -rf "$D"
mkdir -p "$D"
try "the site is built, and all links lead somewhere" \
    "$PYTHON" tools/site.py --check --out "$D/site"

# ---- the check finds what is wrong ----
finds() { # text of the message, page, sed command
    cp "$D/site/$2" "$D/kept"
    sed "$3" "$D/kept" >"$D/site/$2"
    if "$PYTHON" tools/site.py --verify --out "$D/site" >"$D/said" 2>&1; then
        fail "the check of the site" "not found: $1"
    elif grep -q "$1" "$D/said"; then
        pass
    else
        fail "the check of the site" "instead of '$1': $(head -n 5 "$D/said")"
    fi
    cp "$D/kept" "$D/site/$2"
}
finds 'tour.html: nowhere.html leads nowhere' tour.html 's/href="using.html"/href="nowhere.html"/'
finds 'page has no such anchor' api.html 's/<a id="dvt_matmul"><.a>//'
finds 'closes another tag' errors.html 's/<main>/<main><p>/'
finds 'two anchors k-means' recipes.html 's/id="a-plug-in"/id="k-means"/'

# ---- in a browser ----
browser=
for name in "$CHROMIUM" chromium chromium-browser google-chrome; do
    [ -z "$name" ] || ! has "$name" || { browser=$name; break; }
done
if [ -z "$browser" ]; then
    skip "the site in a browser" "chromium is not installed"
    finish
    exit
fi
root_flag=
[ "$(id -u)" -ne 0 ] || root_flag=--no-sandbox
dom() { # address, window size
    timeout 120 "$browser" --headless=new $root_flag --disable-gpu --no-first-run \
        --window-size="${2:-800,600}" --hide-scrollbars \
        --user-data-dir="$D/profile" --virtual-time-budget=5000 --dump-dom "file://$D/site/$1" \
        2>"$D/browser.log"
}
# A page with a script of ours at its end, which writes what it sees into the document.
page() { # page, name, script
    { cat "$D/site/$1"; echo "<script>$3</script>"; } >"$D/site/$2"
}
shows() { # name, page, text, window size
    dom "$2" "$4" >"$D/dom.html"
    if grep -qF "$3" "$D/dom.html"; then
        pass
    else
        fail "$1" "no '$3' in $2: $(grep -o '<title>.*</title>' "$D/dom.html" ||
            tail -n 2 "$D/browser.log")"
    fi
}
shows "a search by the address finds a function" 'index.html?q=dvt_matmul' \
    'href="./api.html#dvt_matmul"'
shows "C is highlighted" 'tour.html' '<span class="f">dvt_backward</span>'
shows "the theme is chosen by the address" 'tour.html?theme=dark' 'data-theme="dark"'
page tour.html t1.html 'const i = document.getElementById("search"); i.value = "gradient recorded";
    i.dispatchEvent(new Event("input"));
    document.title = "found " + (document.querySelectorAll("#results a mark").length > 3);'
shows "typing searches all words" t1.html '<title>found true</title>'
page tour.html t2.html 'const i = document.getElementById("search"); i.value = "zzqq";
    i.dispatchEvent(new Event("input"));'
shows "an unknown word finds nothing" t2.html 'nothing found'
page tour.html t3.html 'const i = document.getElementById("search"); i.value = "dvt_softmax";
    i.dispatchEvent(new Event("input"));
    i.dispatchEvent(new KeyboardEvent("keydown", {key: "Enter"}));'
shows "a result leads to the function" t3.html '<title>API index'
page tour.html t4.html 'document.querySelector(".copy").click();
    setTimeout(function () { document.title = document.querySelector(".copy").textContent; }, 500);'
shows "code can be copied" t4.html '<title>copied</title>'
page tour.html t5.html 'document.getElementById("theme").click();
    document.getElementById("menu").click();
    document.title = document.documentElement.dataset.theme + " " +
        document.querySelector("nav").className;'
shows "theme and menu can be switched" t5.html 'open</title>'
page index.html t6.html 'const all = [...document.querySelectorAll("main > *")];
    const wide = all.filter(function (e) { return e.getBoundingClientRect().right > innerWidth; });
    document.title = "too wide: " + wide.length;'
shows "no part of a page is wider than the window" t6.html '<title>too wide: 0</title>'
page phrases.html t7.html 'const all = [...document.querySelectorAll(".table")];
    const cut = all.filter(function (e) { return e.scrollWidth > e.clientWidth + 1; });
    document.title = innerWidth + " cut: " + cut.length + " of " + (all.length > 10);'
shows "the phrase book fits in the window of a laptop" t7.html \
    '<title>1280 cut: 0 of true</title>' 1280,800
page index.html t8.html 'const all = [...document.querySelectorAll(".code")];
    const hidden = all.filter(function (e) {
        return e.querySelector(".copy").getBoundingClientRect().top <
            e.querySelector("code").getBoundingClientRect().bottom; });
    document.title = innerWidth + " hidden: " + hidden.length + " of " + (all.length > 2);'
shows "no button is on the code in a narrow window" t8.html \
    '<title>500 hidden: 0 of true</title>' 500,900
page index.html t9.html 'const i = document.getElementById("search"); i.value = "safetensors";
    i.dispatchEvent(new Event("input"));
    const all = [...document.querySelectorAll("#results p")].map((e) => e.textContent);
    document.title = all.some((t) => t.startsWith("… ")) + " " +
        all.filter((t) => /[.] [0-9]+$/.test(t)).length;'
shows "a result begins with a whole word, and has no line number" t9.html '<title>true 0</title>'
rm -rf "$D"
finish
