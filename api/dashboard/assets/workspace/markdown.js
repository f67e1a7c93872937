/** Render a small part of Markdown. It builds elements from text, so no text can become markup. */

import { h } from "../dom.js";

const SAFE_LINK = /^(https?:\/\/|mailto:)/i;
// One pass from left to right: code, bold, emphasis, link, address.
const INLINE = new RegExp([
  /`([^`]+)`/, /\*\*([^*]+)\*\*/, /(?:\*([^*\s][^*]*)\*|\b_([^_\s][^_]*)_\b)/,
  /\[([^\]]+)\]\(([^)\s]+)\)/, /(https?:\/\/[^\s<>)]+)/,
].map(({ source }) => source).join("|"), "g");
const HEADING = /^(#{1,4})\s+(.*)$/, FENCE = /^```/, QUOTE = /^>\s?/, RULE = /^\s*(-{3,}|\*{3,})\s*$/;
const BULLET = /^\s*[-*+]\s+/, NUMBER = /^\s*\d+[.)]\s+/, TASK = /^\[([ xX])\]\s+/;
const HEADINGS = /** @type {const} */ (["h3", "h4", "h5", "h6"]);

/** @param {string} source */
export function renderMarkdown(source) {
  const lines = source.replaceAll("\r\n", "\n").split("\n");
  const blocks = [];
  while (lines.length) {
    if (lines[0].trim()) blocks.push(takeBlock(lines));
    else lines.shift();
  }
  return h("div", { class: "markdown" }, blocks);
}

/**
 * Remove the first block from the lines and return its element.
 * @param {string[]} lines
 */
function takeBlock(lines) {
  const [line] = lines;
  if (FENCE.test(line)) return takeCode(lines);
  if (HEADING.test(line)) return takeHeading(lines);
  if (RULE.test(line)) return takeRule(lines);
  if (QUOTE.test(line)) return h("blockquote", {}, inline(takePrefixed(lines, QUOTE).join(" ")));
  if (BULLET.test(line)) return h("ul", {}, takePrefixed(lines, BULLET).map(item));
  if (NUMBER.test(line)) return h("ol", {}, takePrefixed(lines, NUMBER).map(item));
  return h("p", {}, inline(takeWhile(lines, (each) => each.trim() !== "" && !isBlock(each)).join("\n")));
}

/** @param {string[]} lines */
function takeCode(lines) {
  lines.shift();
  const code = takeWhile(lines, (line) => !FENCE.test(line));
  lines.shift();
  return h("pre", { tabindex: "0" }, h("code", {}, code.join("\n")));
}

/** @param {string[]} lines */
function takeHeading(lines) {
  const [, marks, text] = HEADING.exec(lines.shift() ?? "") ?? ["", "#", ""];
  return h(HEADINGS[marks.length - 1], {}, inline(text));
}

/** @param {string[]} lines */
function takeRule(lines) {
  lines.shift();
  return h("hr");
}

/**
 * @param {string[]} lines
 * @param {RegExp} prefix
 */
function takePrefixed(lines, prefix) {
  return takeWhile(lines, (line) => prefix.test(line)).map((line) => line.replace(prefix, ""));
}

/**
 * @param {string[]} lines
 * @param {(line: string) => boolean} matches
 */
function takeWhile(lines, matches) {
  const end = lines.findIndex((line) => !matches(line));
  return lines.splice(0, end === -1 ? lines.length : end);
}

/** @param {string} line */
function isBlock(line) {
  return [HEADING, FENCE, QUOTE, BULLET, NUMBER, RULE].some((pattern) => pattern.test(line));
}

/** @param {string} text */
function item(text) {
  const task = TASK.exec(text);
  if (!task) return h("li", {}, inline(text));
  const done = task[1] !== " ";
  const label = done ? "Done" : "To do";
  const box = h("input", { type: "checkbox", disabled: true, checked: done, "aria-label": label });
  return h("li", { class: "task" }, box, inline(text.slice(task[0].length)));
}

/**
 * @param {string} text
 * @returns {(Node | string)[]}
 */
function inline(text) {
  const found = [];
  let last = 0;
  for (const match of text.matchAll(INLINE)) {
    found.push(text.slice(last, match.index), inlineElement(match));
    last = match.index + match[0].length;
  }
  return [...found, text.slice(last)];
}

/** @param {RegExpMatchArray} match */
function inlineElement([whole, code, bold, star, underscore, label, address, bare]) {
  if (code) return h("code", {}, code);
  if (bold) return h("strong", {}, inline(bold));
  if (star ?? underscore) return h("em", {}, inline(star ?? underscore));
  const target = address ?? bare;
  if (!SAFE_LINK.test(target)) return whole;
  return h("a", { href: target, target: "_blank", rel: "noopener noreferrer" }, label ?? bare);
}
