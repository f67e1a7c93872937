/** Elements from plain descriptions. Text is always text: nothing here reads markup. */

const SVG = "http://www.w3.org/2000/svg";

/** An element: `h("p", { class: "quiet" }, "words", child)`. `onclick` and the like are listeners. */
export function h(tag, attributes = {}, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

export function svg(tag, attributes = {}, ...children) {
  return fill(document.createElementNS(SVG, tag), attributes, children);
}

/** A drawing of 24 by 24 out of lines; it says nothing to those who cannot see it. */
export function icon(path, name = "icon") {
  return svg("svg", { viewBox: "0 0 24 24", class: name, "aria-hidden": "true" }, svg("path", { d: path }));
}

/** Change a text only where it differs, so that nothing is announced or painted twice. */
export function say(node, words) {
  if (node.textContent !== words) node.textContent = words;
}

export function toggle(node, shown) {
  if (node.hidden === shown) node.hidden = !shown;
}

export function replace(node, ...children) {
  node.replaceChildren(...flat(children));
}

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (name === "value") node.value = value;
    else node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...flat(children));
  return node;
}

function flat(children) {
  return children.flat(Infinity).filter((each) => each !== null && each !== undefined && each !== false);
}
