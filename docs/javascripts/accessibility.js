// What the theme's scripts create lacks for readers with a keyboard or a screen reader.

const SCROLLABLE = ".md-typeset__scrollwrap, .md-typeset pre > code";

/** Let the keys scroll what is wider than the page, and give each group of a code block's buttons a name of its own. */
function complete() {
  for (const element of document.querySelectorAll(SCROLLABLE))
    if (element.scrollWidth > element.clientWidth) element.tabIndex = 0;
  document.querySelectorAll(".md-code__nav").forEach((group, index) => {
    const name = `Code block ${index + 1}`;
    if (group.getAttribute("aria-label") !== name) group.setAttribute("aria-label", name);
  });
}

new MutationObserver(complete).observe(document.body, { childList: true, subtree: true });
new ResizeObserver(complete).observe(document.body);
complete();
