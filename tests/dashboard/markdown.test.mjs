import "./browser.mjs";

import assert from "node:assert/strict";
import { test } from "node:test";

import { renderMarkdown } from "../../api/dashboard/assets/workspace/markdown.js";

const LINK = 'target="_blank" rel="noopener noreferrer"';

for (const [name, source, expected] of [
  ["a heading", "## Plan *now*", "<h4>Plan <em>now</em></h4>"],
  ["paragraphs", "one\ntwo\n\nthree", "<p>one\ntwo</p><p>three</p>"],
  ["windows lines", "one\r\n\r\ntwo", "<p>one</p><p>two</p>"],
  ["bullets", "- a\n- **b**", "<ul><li>a</li><li><strong>b</strong></li></ul>"],
  ["numbers", "1. a\n2) b", "<ol><li>a</li><li>b</li></ol>"],
  ["a quote", "> a\n> b", "<blockquote>a b</blockquote>"],
  ["a rule", "a\n\n---\nb", "<p>a</p><hr></hr><p>b</p>"],
  ["code", "run `make up`", "<p>run <code>make up</code></p>"],
  ["a block of code", "```\n# *no*\n```\nafter", '<pre tabindex="0"><code># *no*</code></pre><p>after</p>'],
  ["a block of code that never ends", "```\nx", '<pre tabindex="0"><code>x</code></pre>'],
  ["a link", "[it](https://a.example)", `<p><a href="https://a.example" ${LINK}>it</a></p>`],
  ["a bare address", "see http://a.example/b",
    `<p>see <a href="http://a.example/b" ${LINK}>http://a.example/b</a></p>`],
  ["a script as a link", "[x](javascript:alert)", "<p>[x](javascript:alert)</p>"],
  ["a name with underscores", "a_b_c", "<p>a_b_c</p>"],
  ["a list right after a paragraph", "todo\n- a", "<p>todo</p><ul><li>a</li></ul>"],
]) {
  test(name, () => assert.equal(String(renderMarkdown(source)), `<div class="markdown">${expected}</div>`));
}

test("tasks have boxes", () => {
  const [list] = renderMarkdown("- [x] done\n- [ ] open").children;
  const labels = list.children.map(({ children }) => children[0].attributes["aria-label"]);
  assert.deepEqual(labels, ["Done", "To do"]);
});

test("markup stays text", () => {
  const [paragraph] = renderMarkdown("<img src=x onerror=alert(1)>").children;
  assert.deepEqual(paragraph.children, ["<img src=x onerror=alert(1)>"]);
});
