// Search, copy buttons, the theme and the menu of the documentation. Works from file://.
"use strict";
(function () {
  const root = document.body.dataset.root;
  const input = document.getElementById("search");
  const results = document.getElementById("results");
  let chosen = -1;

  // ---- search: every word must be in an entry; titles and declarations count most ----
  function fold(text) { return text.toLowerCase(); }
  const entries = (window.searchIndex || []).map(function (entry) {
    return {
      to: entry[0], title: entry[1], page: entry[2], text: entry[3], api: entry[4],
      foldedTitle: fold(entry[1]), folded: fold(entry[1] + " " + entry[2] + " " + entry[3])
    };
  });
  function score(entry, words) {
    let sum = 0;
    for (const word of words) {
      if (!entry.folded.includes(word)) return 0;
      const title = entry.foldedTitle;
      if (title === word || title === "dvt_" + word) sum += 100;
      else if (title.startsWith(word) || title.startsWith("dvt_" + word)) sum += 40;
      else if (title.includes(word)) sum += 20;
      else sum += 1;
    }
    return sum + (entry.api && sum >= 20 * words.length ? 5 : 0) - entry.title.length / 1000;
  }
  function find(query) {
    const words = fold(query).split(/[\s(),]+/).filter(Boolean);
    if (!words.length) return [];
    return entries.map(function (entry) { return [score(entry, words), entry]; })
      .filter(function (pair) { return pair[0] > 0; })
      .sort(function (a, b) { return b[0] - a[0]; })
      .slice(0, 30).map(function (pair) { return [pair[1], words]; });
  }
  function marked(text, words) {
    const lower = fold(text);
    let at = Math.max(0, Math.min.apply(null, words.map(function (word) {
      const i = lower.indexOf(word);
      return i < 0 ? text.length : i;
    })) - 40);
    if (at > 0) at = text.indexOf(" ", at) + 1; // at the beginning of a word
    const cut = (at ? "… " : "") + text.slice(at, at + 180), out = document.createElement("p");
    const safe = words.map(function (word) { return word.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"); });
    cut.split(new RegExp("(" + safe.join("|") + ")", "i")).forEach(function (piece, i) {
      const node = i % 2 ? document.createElement("mark") : document.createTextNode("");
      node.textContent = piece;
      out.append(node);
    });
    return out;
  }
  function show(query) {
    const found = find(query);
    results.replaceChildren();
    results.hidden = !query.trim();
    chosen = -1;
    for (const pair of found) {
      const entry = pair[0], link = document.createElement("a");
      const title = document.createElement("b"), page = document.createElement("small");
      link.href = root + "/" + entry.to;
      title.textContent = entry.title;
      page.textContent = entry.page;
      link.append(title, page, marked(entry.text, pair[1]));
      link.addEventListener("click", function () { results.hidden = true; });
      results.append(link);
    }
    if (!found.length) {
      const none = document.createElement("div");
      none.className = "none";
      none.textContent = "nothing found";
      results.append(none);
    }
  }
  function choose(step) {
    const links = results.querySelectorAll("a");
    if (!links.length) return;
    if (links[chosen]) links[chosen].classList.remove("chosen");
    chosen = (chosen + step + links.length) % links.length;
    links[chosen].classList.add("chosen");
    links[chosen].scrollIntoView({ block: "nearest" });
  }
  input.addEventListener("input", function () { show(input.value); });
  input.addEventListener("focus", function () { if (input.value) show(input.value); });
  input.addEventListener("keydown", function (event) {
    if (event.key === "ArrowDown") { choose(1); event.preventDefault(); }
    if (event.key === "ArrowUp") { choose(-1); event.preventDefault(); }
    if (event.key === "Enter") {
      const link = results.querySelectorAll("a")[Math.max(chosen, 0)];
      if (link) link.click();
    }
  });
  document.addEventListener("keydown", function (event) {
    if (event.key === "/" && document.activeElement !== input) { input.focus(); event.preventDefault(); }
    if (event.key === "Escape") { results.hidden = true; input.blur(); }
  });
  document.addEventListener("click", function (event) {
    if (!results.contains(event.target) && event.target !== input) results.hidden = true;
  });
  const asked = new URLSearchParams(location.search).get("q");
  if (asked) { input.value = asked; show(asked); }

  // ---- copy buttons ----
  document.querySelectorAll(".copy").forEach(function (button) {
    button.addEventListener("click", function () {
      const text = button.parentElement.querySelector("code").textContent;
      function done() {
        button.textContent = "copied";
        setTimeout(function () { button.textContent = "copy"; }, 1500);
      }
      function byHand() { // without permission for the clipboard
        const area = document.createElement("textarea");
        area.value = text;
        document.body.append(area);
        area.select();
        document.execCommand("copy");
        area.remove();
        done();
      }
      if (navigator.clipboard) navigator.clipboard.writeText(text).then(done, byHand);
      else byHand();
    });
  });

  // ---- light and dark, and the menu of a phone ----
  const html = document.documentElement;
  function stored() { try { return localStorage.getItem("theme"); } catch (error) { return null; } }
  const theme = new URLSearchParams(location.search).get("theme") || stored();
  if (theme) html.dataset.theme = theme;
  document.getElementById("theme").addEventListener("click", function () {
    const dark = html.dataset.theme ? html.dataset.theme === "dark"
      : matchMedia("(prefers-color-scheme: dark)").matches;
    html.dataset.theme = dark ? "light" : "dark";
    try { localStorage.setItem("theme", html.dataset.theme); } catch (error) { /* not kept */ }
  });
  const menu = document.getElementById("menu"), nav = document.querySelector("nav");
  menu.addEventListener("click", function () {
    menu.setAttribute("aria-expanded", String(nav.classList.toggle("open")));
  });
  const current = nav.querySelector("[aria-current]");
  if (current) nav.scrollTop = Math.max(0, current.offsetTop - nav.clientHeight / 2);
})();
