/** The few parts of a browser that the tested modules use. Import this module first. */

export class FakeNode {
  constructor(tag) {
    this.tag = tag;
    this.attributes = {};
    this.children = [];
  }

  setAttribute(name, value) {
    this.attributes[name] = value;
  }

  append(...children) {
    this.children.push(...children);
  }

  /** The element as text, for comparison: `<p class="a">text</p>`. */
  toString() {
    const attributes = Object.entries(this.attributes).map(([name, value]) => ` ${name}="${value}"`).join("");
    return `<${this.tag}${attributes}>${this.children.join("")}</${this.tag}>`;
  }
}

export class FakeEventSource {
  static CLOSED = 2;
  static opened = [];

  constructor(url) {
    this.url = url;
    this.readyState = 1;
    this.listeners = {};
    FakeEventSource.opened.push(this);
  }

  addEventListener(name, listener) {
    this.listeners[name] = listener;
  }

  close() {
    this.readyState = FakeEventSource.CLOSED;
  }

  send(name, document) {
    this.listeners[name]({ data: JSON.stringify(document) });
  }

  fail({ closed }) {
    if (closed) this.close();
    this.listeners.error();
  }
}

export const storage = new Map();
export const visited = [];
export const responses = [];
export const requests = [];

/** Queue the response to the next request; without a status, the request finds no server. */
export function respond(status, document = null) {
  responses.push({ status, document });
}

globalThis.document = { createElement: (tag) => new FakeNode(tag) };
globalThis.EventSource = FakeEventSource;
globalThis.addEventListener = () => {};
globalThis.location = { origin: "https://hub.example", pathname: "/account", search: "" };
globalThis.location.replace = (url) => visited.push(url);
globalThis.localStorage = {
  getItem: (name) => storage.get(name) ?? null,
  setItem: (name, value) => storage.set(name, value),
  removeItem: (name) => storage.delete(name),
};
globalThis.fetch = async (url, options) => {
  requests.push({ url, ...options });
  const { status, document } = responses.shift();
  if (!status) throw new TypeError("network error");
  return new Response(document === null ? null : JSON.stringify(document), { status });
};
