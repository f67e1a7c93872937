/** A small part of Markdown as elements. It builds nodes out of texts, so no text can become markup. */

import { h } from "../dom.js";

const SAFE_LINK = /^(https?:\/\/|mailto:)/i;
// One pass from left to right: code, bold, emphasis, link, address.
const INLINE = /`([^`]+)`|\*\*([^*]+)\*\*|(?:\*([^*\s][^*]*)\*|\b_([^_\s][^_]*)_\b)|\[([^\]]+)\]\(([^)\s]+)\)|(https?:\/\/[^\s<>)]+)/g;
const HEADING = /^(#{1,4})\s+(.*)$/, FENCE = /^```/, QUOTE = /^>\s?/, RULE = /^(-{3,}|\*{3,})$/;
const BULLET = /^\s*[-*+]\s+/, NUMBER = /^\s*\d+[.)]\s+/, TASK = /^\[([ xX])\]\s+/;

export function renderMarkdown(source) {
  const lines = source.replaceAll("\r\n", "\n").split("\n");
  const blocks = [];
  let at = 0;
  const take = (pattern) => {
    const found = [];
    while (at < lines.length && pattern.test(lines[at])) found.push(lines[at++].replace(pattern, ""));
    return found;
  };
  while (at < lines.length) {
    const line = lines[at];
    const heading = HEADING.exec(line);
    if (!line.trim()) at += 1;
    else if (FENCE.test(line)) blocks.push(fence());
    else if (heading) { blocks.push(h(`h${heading[1].length + 2}`, {}, inline(heading[2]))); at += 1; }
    else if (RULE.test(line.trim())) { blocks.push(h("hr")); at += 1; }
    else if (QUOTE.test(line)) blocks.push(h("blockquote", {}, inline(take(QUOTE).join(" "))));
    else if (BULLET.test(line)) blocks.push(h("ul", {}, take(BULLET).map(item)));
    else if (NUMBER.test(line)) blocks.push(h("ol", {}, take(NUMBER).map(item)));
    else blocks.push(paragraph());
  }
  return h("div", { class: "markdown" }, blocks);

  function fence() {
    at += 1;
    const code = [];
    while (at < lines.length && !FENCE.test(lines[at])) code.push(lines[at++]);
    at += 1;
    return h("pre", { tabindex: "0" }, h("code", {}, code.join("\n")));
  }

  function paragraph() {
    const words = [];
    while (at < lines.length && lines[at].trim() && !isBlock(lines[at])) words.push(lines[at++]);
    return h("p", {}, inline(words.join("\n")));
  }
}

function isBlock(line) {
  return [HEADING, FENCE, QUOTE, BULLET, NUMBER].some((pattern) => pattern.test(line)) || RULE.test(line.trim());
}

function item(text) {
  const task = TASK.exec(text);
  if (!task) return h("li", {}, inline(text));
  const done = task[1] !== " ";
  const box = h("input", { type: "checkbox", disabled: true, checked: done, "aria-label": done ? "Done" : "To do" });
  return h("li", { class: "task" }, box, inline(text.slice(task[0].length)));
}

function inline(text) {
  const found = [];
  let last = 0;
  for (const match of text.matchAll(INLINE)) {
    found.push(text.slice(last, match.index), piece(match));
    last = match.index + match[0].length;
  }
  return [...found, text.slice(last)];
}

function piece([whole, code, bold, star, underscore, label, address, bare]) {
  if (code) return h("code", {}, code);
  if (bold) return h("strong", {}, inline(bold));
  if (star ?? underscore) return h("em", {}, inline(star ?? underscore));
  const target = address ?? bare;
  if (!SAFE_LINK.test(target)) return whole;
  return h("a", { href: target, target: "_blank", rel: "noopener noreferrer" }, label ?? bare);
}
