#!/usr/bin/env python3
"""Builds the documentation site in build/site from README.md, docs/*.md and what they link to.

    tools/site.py [--out FOLDER] [--check | --verify]

--check also resolves all links and checks the HTML; --verify does only that, in a folder that
exists.

Pages need no network and no server. Linked sources become pages with line numbers. The Markdown is
the subset that the documents use: headings, paragraphs, lists, tables, fences, emphasis, links.
"""
import html
import html.parser
import json
import os
import posixpath
import re
import shutil
import sys

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
ASSETS = "tools/site"
# The sidebar: a title and its pages. docs/*.md that are not listed are below the last title.
SIDEBAR = [
    ("Begin", ["README.md", "docs/TOUR.md", "docs/RECIPES.md", "docs/PHRASES.md", "docs/USING.md",
               "docs/BUILDING.md"]),
    ("Reference", ["docs/API.md", "docs/OPERATIONS.md", "docs/ERRORS.md", "docs/GPU.md",
                   "docs/PORTABILITY.md", "docs/STABILITY.md", "docs/TUTORIAL_MAP.md"]),
    ("Contribute", ["CONTRIBUTING.md", "docs/ARCHITECTURE.md", "docs/DECISIONS.md",
                    "docs/GPU_MODEL.md"]),
    ("Project", ["CHANGELOG.md"]),
]
TEXT = (".c", ".h", ".inl", ".cu", ".cpp", ".py", ".sh", ".txt", ".inc", "")
KEYWORDS = set("""alignas bool break case char class const constexpr continue default do double else
    enum extern false float for goto if inline int int64_t int32_t uint64_t uint32_t uint8_t int8_t
    long namespace new NULL nullptr return short signed size_t sizeof static static_cast struct
    switch template this true typedef union unsigned using void volatile while auto""".split())
PYTHON = set("""False None True and as assert break class continue def del elif else except for from
    if import in is lambda not or pass raise return try while with yield""".split())
STRING = r'(?P<s>"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\')'
WORD = r"(?P<n>\b\d[\w.]*)|(?P<w>[A-Za-z_]\w*)"
C_TOKEN = re.compile(rf"(?P<c>/\*.*?\*/|//[^\n]*)|{STRING}|(?P<p>^[ \t]*#[ \t]*\w+)|{WORD}",
                     re.S | re.M)
SCRIPT_TOKEN = re.compile(rf"(?P<c>(?<!\S)#[^\n]*)|{STRING}|{WORD}", re.M)


def fail(what, why, fix):
    sys.exit(f"site: {what}\n  Why: {why}\n  Fix: {fix}")


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def address(path):
    """Returns the address of a file's page, relative to the root of the site."""
    if path == "README.md":
        return "index.html"
    if path.endswith(".md"):
        name = path[5:] if path.startswith("docs/") else path
        return name[:-3].lower().replace("/", "-") + ".html"
    if path.endswith((".svg", ".png")):
        return "files/" + path
    return "files/" + (path or "root") + ".html"


def slug(text, used):
    """Returns the anchor of a heading, as GitHub makes it."""
    base = re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-")
    name, n = base, 0
    while name in used:
        n += 1
        name = f"{base}-{n}"
    used.add(name)
    return name


def highlight(code, language):
    script = language in ("sh", "cmake", "py", "python", "txt")
    if language == "text" or not language:
        return html.escape(code, quote=False)
    words = PYTHON if language in ("py", "python") else KEYWORDS if not script else set()
    parts, at = [], 0
    for found in (SCRIPT_TOKEN if script else C_TOKEN).finditer(code):
        parts.append(html.escape(code[at:found.start()], quote=False))
        text, kind = html.escape(found[0], quote=False), found.lastgroup
        if kind == "w":
            kind = "k" if found[0] in words else "f" if re.match("dvt_|DVT_", found[0]) else ""
        parts.append(f'<span class="{kind}">{text}</span>' if kind else text)
        at = found.end()
    return "".join(parts) + html.escape(code[at:], quote=False)


class Page:
    """One document: its HTML, and the sections for the search."""

    def __init__(self, site, path):
        self.site, self.path, self.anchors, self.sections = site, path, set(), []
        self.headings, self.title = [], path
        self.used = set()
        self.body = self.blocks(re.sub(r"<!--.*?-->\n?", "", read(path), flags=re.S).split("\n"))

    # ---- text within a line ----
    def link(self, target):
        if re.match(r"[a-z]+:", target):
            return target
        path, _, anchor = target.partition("#")
        if not path:
            return "#" + anchor
        path = posixpath.normpath(posixpath.join(posixpath.dirname(self.path), path))
        anchor = re.sub(r"^(L\d+)-L\d+$", r"\1", anchor)  # a range begins at its first line
        return self.site.need(path, self.path) + ("#" + anchor if anchor else "")

    def inline(self, text):
        kept = []

        def keep(markup):
            kept.append(markup)
            return f"\0{len(kept) - 1}\0"

        def code(found):
            content = html.escape(found[2].strip() if len(found[1]) > 1 else found[2], quote=False)
            return keep("<code>" + content.replace("\\|", "|") + "</code>")

        def anchor(found):
            self.anchors.add(found[1])
            return keep(f'<a id="{found[1]}"></a>')

        text = re.sub(r"(`+)(.+?)\1(?!`)", code, text)
        text = re.sub(r'<a id="([^"]+)"></a>', anchor, text)
        text = re.sub(r"<br>", lambda _: keep("<br>"), text)
        text = re.sub(r"&(?:lt|gt|amp|nbsp);", lambda found: keep(found[0]), text)
        text = re.sub(r"\\([\\`*_{}\[\]()#+\-.!|<>])", lambda found: keep(html.escape(found[1])),
                      text)
        text = html.escape(text, quote=False)
        text = re.sub(r"!\[([^\]]*)\]\(([^)\s]+)\)", lambda found: keep(
            f'<img src="{self.link(found[2])}" alt="{html.escape(found[1])}">'), text)
        text = re.sub(r"\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)\s]+)\)", lambda found: keep(
            f'<a href="{html.escape(self.link(found[2]))}">') + found[1] + keep("</a>"), text)
        text = re.sub(r"\*\*(.+?)\*\*", r"<strong>\1</strong>", text)
        text = re.sub(r"(?<![\w*])\*([^*\s][^*]*)\*(?![\w*])", r"<em>\1</em>", text)
        while "\0" in text:
            text = re.sub(r"\0(\d+)\0", lambda found: kept[int(found[1])], text)
        return text

    # ---- blocks ----
    def note(self, markup):
        """Adds text to the section that the search finds."""
        if self.sections:
            plain = html.unescape(re.sub(r"<[^>]+>", "", markup.replace("<br>", " ")))
            self.sections[-1]["text"] += " " + " ".join(plain.split())

    def heading(self, level, text):
        name = slug(re.sub(r"`|\[([^\]]*)\]\([^)]*\)", lambda m: m[1] or "", text), self.used)
        self.anchors.add(name)
        markup = self.inline(text)
        plain = html.unescape(re.sub(r"<[^>]+>", "", markup))
        if level == 1:
            self.title = plain
        self.headings.append((level, name, plain))
        self.sections.append({"title": plain, "at": name if level > 1 else "", "text": ""})
        return (f'<h{level} id="{name}">{markup}<a class="here" href="#{name}" '
                f'aria-label="link to this section">#</a></h{level}>')

    def fence(self, code, language):
        self.note(html.escape(code))
        return ('<div class="code"><button class="copy" type="button">copy</button>'
                f"<pre><code>{highlight(code, language)}</code></pre></div>")

    @staticmethod
    def widths(rows):
        """Returns the widths of columns, in proportion to the length of most of their cells."""
        weights = []
        for column in zip(*(row for row in rows if len(row) == len(rows[0]))):
            lengths = sorted(max(map(len, cell.split("<br>"))) for cell in column)
            weights.append(min(max(lengths[len(lengths) * 7 // 10], len(column[0])), 50))
        shares = [max(weight / sum(weights), .08) for weight in weights]
        return "<colgroup>" + "".join(f'<col style="width:{100 * share / sum(shares):.1f}%">'
                                      for share in shares) + "</colgroup>"

    def table(self, rows):
        cells = [[cell.strip().replace("\\|", "\\|") for cell in
                  re.split(r"(?<!\\)\|", row.strip().strip("|") if row.strip() != "|" else "")]
                 for row in rows]
        head, lines = cells[0], cells[2:]
        wide = len(head) > 5
        out = ['<div class="table"><table class="wide">' + self.widths(cells[:1] + lines) if wide
               else '<div class="table"><table>']
        if any(head):
            out.append("<thead><tr>" + "".join(f"<th>{self.inline(c)}</th>" for c in head) +
                       "</tr></thead>")
        out.append("<tbody>")
        for line in lines:
            anchors = len(self.anchors)
            markup = [self.inline(cell) for cell in line]
            shown = [re.sub(r"<code>.*?</code>", lambda found: re.sub(
                r"\((?=[a-zA-Z])", "(<wbr>", found[0]), cell) if wide else cell for cell in markup]
            out.append("<tr>" + "".join(f"<td>{cell}</td>" for cell in shown) + "</tr>")
            name = re.match(r'<a id="([^"]+)"></a>', markup[0])
            if name and len(self.anchors) > anchors:  # a declaration is an entry of its own
                text = re.sub(r"\s*<a href=[^>]+>\d+</a>$", "", " ".join(markup))  # the line number
                plain = html.unescape(re.sub(r"<[^>]+>", "", text))
                self.sections.insert(0, {"title": name[1], "at": name[1], "text": plain, "api": 1})
            elif not re.search(r'href="#dvt_', line and markup[-1]):
                self.note(" ".join(markup))
        return "\n".join(out) + "</tbody></table></div>"

    def items(self, lines):
        """Makes a list of lines that begin with a marker; the others continue an item."""
        ordered = bool(re.match(r"\d+\. ", lines[0]))
        items, indent = [], len(re.match(r"([-*]|\d+\.) +", lines[0])[0])
        for line in lines:
            found = re.match(r"([-*]|\d+\.) +(.*)", line)
            if found:
                items.append([found[2]])
            else:
                items[-1].append(line[indent:] if line[:indent].isspace() else line.strip())
        tag = "ol" if ordered else "ul"
        out = []
        for item in items:
            simple = all(line and not re.match(r"\s*([-*] |\d+\. |```)", line) for line in item)
            if simple:
                markup = self.inline(" ".join(line.strip() for line in item))
                self.note(markup)
            else:
                markup = self.blocks(item)
            out.append(f"<li>{markup}</li>")
        return f"<{tag}>" + "\n".join(out) + f"</{tag}>"

    def blocks(self, lines):
        out, i = [], 0
        marker = re.compile(r"([-*]|\d+\.) ")
        while i < len(lines):
            line = lines[i]
            if not line.strip():
                i += 1
            elif line.startswith("```"):
                end = next((j for j in range(i + 1, len(lines)) if lines[j].startswith("```")),
                           None)
                if end is None:
                    fail(f"{self.path}: a fence without an end", "it begins a block of code",
                         "end it with ```")
                out.append(self.fence("\n".join(lines[i + 1:end]), line[3:].strip()))
                i = end + 1
            elif re.match(r"#{1,6} ", line):
                level = len(line) - len(line.lstrip("#"))
                out.append(self.heading(level, line[level + 1:].strip()))
                i += 1
            elif line.startswith("|"):
                end = i
                while end < len(lines) and lines[end].startswith("|"):
                    end += 1
                out.append(self.table(lines[i:end]))
                i = end
            elif line.startswith("    "):
                end = i
                while end < len(lines) and (lines[end].startswith("    ") or (
                        not lines[end].strip() and end + 1 < len(lines) and
                        lines[end + 1].startswith("    "))):
                    end += 1
                out.append(self.fence("\n".join(one[4:] for one in lines[i:end]), "text"))
                i = end
            elif marker.match(line):
                end = i + 1
                while end < len(lines) and (
                        marker.match(lines[end]) or lines[end].startswith("  ") or
                        (lines[end].strip() and not re.match(r"#|\||```", lines[end]) and
                         lines[end - 1].strip()) or
                        (not lines[end].strip() and end + 1 < len(lines) and
                         re.match(r"  +\S", lines[end + 1]))):
                    end += 1
                out.append(self.items([one for one in lines[i:end]]))
                i = end
            else:
                end = i + 1
                while end < len(lines) and lines[end].strip() and not re.match(
                        r"#{1,6} |\||```|[-*] |\d+\. ", lines[end]):
                    end += 1
                markup = self.inline(" ".join(one.strip() for one in lines[i:end]))
                self.note(markup)
                out.append(f"<p>{markup}</p>")
                i = end
        return "\n".join(out)


class Source:
    """A file that documents link to, with an anchor for each line; or the list of a directory."""

    def __init__(self, site, path):
        self.path, self.title, self.anchors = path, path, set()
        self.sections, self.headings = [], []
        if os.path.isdir(path):
            names = sorted(name for name in os.listdir(path) if not name.startswith((".", "__")))
            rows = [f"<li>{self.entry(site, posixpath.join(path, name))}</li>" for name in names]
            self.body = f"<h1>{html.escape(path)}</h1><ul>" + "\n".join(rows) + "</ul>"
            return
        language = os.path.splitext(path)[1][1:]
        language = {"h": "c", "inl": "c", "cu": "c", "inc": "c"}.get(language, language)
        lines = highlight(read(path), language).rstrip("\n").split("\n")
        out, open_span = [], ""
        for number, line in enumerate(lines, 1):
            line = open_span + line
            spans = re.findall(r'<span class="\w">|</span>', line)
            left = spans and spans[-1] != "</span>"
            open_span = spans[-1] if left else ""
            self.anchors.add(f"L{number}")
            out.append(f'<span class="line" id="L{number}"><i>{number}</i>{line}'
                       f'{"</span>" if left else ""}</span>')
        self.body = (f"<h1>{html.escape(path)}</h1>"
                     '<div class="code source"><pre><code>' + "\n".join(out) +
                     "</code></pre></div>")

    def entry(self, site, path):
        name = html.escape(posixpath.basename(path))
        if path in site.pages:
            return f'<a href="{site.need(path, self.path)}">{name}</a>'
        return name


class Site:
    def __init__(self):
        docs = sorted("docs/" + name for name in os.listdir("docs") if name.endswith(".md"))
        listed = [path for _, paths in SIDEBAR for path in paths]
        self.sidebar = [(title, [path for path in paths if os.path.exists(path)])
                        for title, paths in SIDEBAR]
        self.sidebar[-2][1].extend(path for path in docs if path not in listed)
        self.pages, self.queue, self.copies = {}, [], set()
        for _, paths in self.sidebar:
            for path in paths:
                self.need(path, "")
        while self.queue:
            path = self.queue.pop(0)
            if os.path.isdir(path) and any(not os.path.isdir(other) for other in self.queue):
                self.queue.append(path)  # directories are last: they link to the pages that exist
                continue
            make = Page if path.endswith(".md") else Source
            self.pages[path] = make(self, path)

    def need(self, path, by):
        """Returns the address of a path relative to the page of another, and makes its page."""
        if not os.path.exists(path):
            fail(f"{by}: {path} does not exist", "a link leads to it", "correct the link")
        if path.endswith((".svg", ".png")):
            self.copies.add(path)
        elif path not in self.pages:
            if os.path.isfile(path) and not path.endswith(".md") and \
                    os.path.splitext(path)[1] not in TEXT:
                fail(f"{by}: {path} is no text and no image", "pages show text", "remove the link")
            self.pages[path] = None
            self.queue.append(path)
        base = posixpath.dirname(address(by)) if by else ""
        return posixpath.relpath(address(path), base or ".")

    def navigation(self, path):
        out = []
        for title, paths in self.sidebar:
            out.append(f"<h2>{title}</h2><ul>")
            for other in paths:
                page, here = self.pages[other], other == path
                name = "devtensor" if other == "README.md" else page.title
                current = ' aria-current="page"' if here else ""
                to = self.need(other, path)
                out.append(f'<li><a href="{to}"{current}>{html.escape(name)}</a>')
                depth = 2 if sum(level == 2 for level, _, _ in page.headings) > 3 else 3
                inner = [(name, text) for level, name, text in page.headings if 1 < level <= depth]
                if here and 1 < len(inner) <= 40:
                    out.append('<ul class="inner">' + "".join(
                        f'<li><a href="#{name}">{html.escape(text)}</a></li>'
                        for name, text in inner) + "</ul>")
                out.append("</li>")
            out.append("</ul>")
        return "\n".join(out)

    def write(self, out):
        shutil.rmtree(out, ignore_errors=True)
        template = read(ASSETS + "/page.html")
        entries = []
        for path, page in self.pages.items():
            to = os.path.join(out, address(path))
            os.makedirs(os.path.dirname(to), exist_ok=True)
            root = posixpath.relpath(".", posixpath.dirname(address(path)) or ".")
            title = page.title if path == "README.md" else page.title + " · devtensor"
            text = template
            for name, value in (("TITLE", html.escape(title)), ("ROOT", root),
                                ("NAVIGATION", self.navigation(path)), ("BODY", page.body)):
                text = text.replace("{{" + name + "}}", value)
            with open(to, "w", encoding="utf-8", newline="\n") as file:
                file.write(text)
            for section in page.sections:
                entries.append([address(path) + ("#" + section["at"] if section["at"] else ""),
                                section["title"], page.title, section["text"][:4000].strip(),
                                section.get("api", 0)])
        for path in self.copies:
            to = os.path.join(out, address(path))
            os.makedirs(os.path.dirname(to), exist_ok=True)
            shutil.copyfile(path, to)
        for name in ("style.css", "site.js"):
            shutil.copyfile(f"{ASSETS}/{name}", os.path.join(out, name))
        with open(os.path.join(out, "search-index.js"), "w", encoding="utf-8") as file:
            file.write("window.searchIndex = " +
                       json.dumps(entries, ensure_ascii=False, separators=(",", ":")) + ";\n")
        return len(entries)


class Checker(html.parser.HTMLParser):
    """Collects ids and links of a page, and the places where tags do not match."""
    VOID = {"meta", "link", "br", "wbr", "col", "img", "input", "hr"}

    def __init__(self, text):
        super().__init__()
        self.ids, self.links, self.wrong, self.stack = [], [], [], []
        self.feed(text)
        self.wrong += [f"<{tag}> is not closed" for tag in self.stack]

    def handle_starttag(self, tag, attributes):
        values = dict(attributes)
        if "id" in values:
            self.ids.append(values["id"])
        self.links += [values[name] for name in ("href", "src") if values.get(name)]
        if tag not in self.VOID:
            self.stack.append(tag)

    def handle_endtag(self, tag):
        if not self.stack or self.stack.pop() != tag:
            self.wrong.append(f"</{tag}> in line {self.getpos()[0]} closes another tag")


def check(out):
    """Returns the errors of the pages in a folder, with the numbers of files and links."""
    pages, errors, links = {}, [], 0
    for folder, _, names in os.walk(out):
        for name in names:
            path = os.path.relpath(os.path.join(folder, name), out).replace(os.sep, "/")
            pages[path] = Checker(read(os.path.join(out, path))) if name.endswith(".html") else None
    for path, page in pages.items():
        if not page:
            continue
        errors += [f"{path}: {what}" for what in page.wrong]
        errors += [f"{path}: two anchors {name}" for name in set(page.ids)
                   if page.ids.count(name) > 1]
        for link in page.links:
            if re.match(r"[a-z]+:", link):
                continue
            links += 1
            target, _, anchor = link.partition("#")
            to = posixpath.normpath(posixpath.join(posixpath.dirname(path), target)) \
                if target else path
            if to not in pages:
                errors.append(f"{path}: {link} leads nowhere")
            elif anchor and anchor not in pages[to].ids:
                errors.append(f"{path}: {link}: the page has no such anchor")
    return errors, len(pages), links


def main():
    out = os.path.abspath(sys.argv[sys.argv.index("--out") + 1] if "--out" in sys.argv else
                          os.path.join(ROOT, "build/site"))
    os.chdir(ROOT)
    entries = 0 if "--verify" in sys.argv else Site().write(out)
    if "--check" in sys.argv or "--verify" in sys.argv:
        errors, pages, links = check(out)
        if errors:
            fail("\n  ".join(errors[:40]), "readers follow these links", "correct the documents")
        print(f"{pages} files, {links} links, {entries} entries of the search")
    print(f"the site is {os.path.relpath(out)}/index.html")


if __name__ == "__main__":
    main()
