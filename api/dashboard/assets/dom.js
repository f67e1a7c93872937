/** Build elements from plain descriptions. Text stays text: nothing here parses markup. */

/** @typedef {Node | string | null | undefined | false} Leaf */
/** @typedef {Leaf | Leaf[] | (Leaf | Leaf[])[]} Child */
/** @typedef {string | number | boolean | null | undefined} Value */
/** @typedef {Record<string, Value | ((event: any) => unknown)>} Attributes */

const SVG = "http://www.w3.org/2000/svg";

/**
 * Create an element: `h("p", { class: "quiet" }, "text", child)`. `onclick` and the like are listeners.
 * @template {keyof HTMLElementTagNameMap} Tag
 * @param {Tag} tag
 * @param {Attributes} [attributes]
 * @param {Child[]} children
 * @returns {HTMLElementTagNameMap[Tag]}
 */
export function h(tag, attributes = {}, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

/**
 * Create a button that submits no form.
 * @param {Attributes} attributes
 * @param {Child[]} children
 * @returns {HTMLButtonElement}
 */
export function button(attributes, ...children) {
  return h("button", { type: "button", ...attributes }, ...children);
}

/**
 * @param {keyof SVGElementTagNameMap} tag
 * @param {Attributes} attributes
 * @param {Child[]} children
 */
export function svg(tag, attributes, ...children) {
  return fill(document.createElementNS(SVG, tag), attributes, children);
}

/**
 * Draw an icon from a path on a 24 by 24 grid. Screen readers skip it.
 * @param {string} path
 */
export function icon(path) {
  return svg("svg", { viewBox: "0 0 24 24", class: "icon", "aria-hidden": "true" }, svg("path", { d: path }));
}

/**
 * Set the text only if it differs, so that nothing is announced or painted twice.
 * @param {Node} node
 * @param {string} text
 */
export function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

/**
 * @param {HTMLElement} node
 * @param {boolean} visible
 */
export function setVisible(node, visible) {
  if (node.hidden === visible) node.hidden = !visible;
}

/**
 * @param {Element} node
 * @param {Child[]} children
 */
export function replaceChildren(node, ...children) {
  node.replaceChildren(...flatten(children));
}

/** The main part of every page. */
export function mainElement() {
  return element("main");
}

/**
 * Return the element with this id, which the page has for certain.
 * @param {string} id
 */
export function element(id) {
  return /** @type {HTMLElement} */ (document.getElementById(id));
}

/**
 * @template {Element} Kind
 * @param {Kind} node
 * @param {Attributes} attributes
 * @param {Child[]} children
 */
function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    if (typeof value === "function") node.addEventListener(name.slice(2), value);
    else if (name === "value") Object.assign(node, { value });
    else node.setAttribute(name, value === true ? "" : String(value));
  }
  node.append(...flatten(children));
  return node;
}

/**
 * @param {Child[]} children
 * @returns {(Node | string)[]}
 */
function flatten(children) {
  return /** @type {(Node | string)[]} */ (
    children.flat(2).filter((each) => each !== null && each !== undefined && each !== false)
  );
}
