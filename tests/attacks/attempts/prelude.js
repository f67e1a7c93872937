// Helpers of the attempts; `t` has the addresses and names of this run.
const account = (options = {}, scope = window) =>
  scope.fetch(t.session, { credentials: "include", ...options }).then((answer) => answer.text());

// Changes the memo of the other workspace as the dashboard does: with the CSRF token of the session.
const change = async (options = {}, scope = window) => {
  const session = JSON.parse(await account(options, scope));
  const headers = { "Content-Type": "application/json", "X-CSRF-Token": session.csrf_token };
  const body = JSON.stringify({ memo: t.marker });
  const patch = { method: "PATCH", credentials: "include", headers, body };
  return (await scope.fetch(t.victim, { ...options, ...patch })).status;
};

const happens = (target, ...names) =>
  new Promise((resolve) => names.forEach((name) => target.addEventListener(name, resolve, { once: true })));

const framed = async (url, attributes = {}) => {
  const frame = Object.assign(document.createElement("iframe"), attributes);
  if (url) frame.src = url;
  const loaded = happens(frame, "load");
  document.body.append(frame);
  await loaded;
  return frame.contentWindow;
};

const pause = () => new Promise((resolve) => setTimeout(resolve, 20));

// Waits until the window shows the address; a window of another origin throws when it is read.
const opened = async (url) => {
  const other = window.open(url);
  while (!other.closed && (other.location.href === "about:blank" || other.document.readyState !== "complete"))
    await pause();
  if (other.closed) throw new Error("the window is out of reach");
  return other;
};

// A script inside a page that has no other way to answer than a message.
const answer = async () => {
  const { data } = await happens(window, "message");
  return data;
};

const submit = (action, fields, options = {}) => {
  const form = Object.assign(document.createElement("form"), { method: "post", action, ...options });
  for (const [name, value] of Object.entries(fields))
    form.append(Object.assign(document.createElement("textarea"), { name, value }));
  document.body.append(form);
  form.submit();
};

// A form that sends this JSON as text: the name and the value of its field surround the equals sign.
const submitJson = async (action, document_) => {
  const frame = Object.assign(document.createElement("iframe"), { name: "answer" });
  document.body.append(frame);
  const loaded = happens(frame, "load");
  const [start, end] = [JSON.stringify({ ...document_, ignored: "" }).slice(0, -2), '"}'];
  submit(action, { [start]: end }, { enctype: "text/plain", target: "answer" });
  await loaded;
};

const socket = async (url) => {
  const connection = new WebSocket(url.replace(/^http/, "ws"));
  const { type } = await happens(connection, "open", "error", "close");
  connection.close();
  return type;
};
