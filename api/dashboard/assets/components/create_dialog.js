/** The dialog for a new workspace. */

import { get, post } from "../api.js";
import { h } from "../dom.js";
import { IDES } from "../words.js";
import { openDialog } from "./dialog.js";
import { choose, field, formOf } from "./forms.js";
import { orOfferPlace } from "./running_limit.js";
import { toast } from "./toast.js";
import { readTtl, ttlChoice } from "./idle_times.js";

const OTHER = "other";

export function openCreate(store, created) {
  const name = h("input", { name: "name", required: true, maxlength: 100, autocomplete: "off", placeholder: "thesis-notebooks" });
  const editor = choose("editor", [["", "The default editor"]], "");
  offerEditors(editor);
  const image = h("input", { name: "image_ref", maxlength: 255, autocomplete: "off", placeholder: "registry.example/team/image:1.2" });
  const imageField = field("Image", image);
  imageField.hidden = true;
  editor.addEventListener("change", () => {
    imageField.hidden = editor.value !== OTHER;
    image.required = !imageField.hidden;
  });
  // The same request may be sent again after a timeout: it creates nothing more.
  const key = randomKey();
  const form = formOf({ button: "Create", submit: async (values) => {
    const sent = await orOfferPlace(() => send(values, key, store));
    dialog.close();
    if (sent) created(sent);
  } },
  field("Name", name),
  field("Description", h("input", { name: "description", maxlength: 1000, autocomplete: "off" }), { hint: "Optional." }),
  field("Editor", editor), imageField,
  h("details", { class: "fold" }, h("summary", {}, "When nobody uses it"),
    ttlChoice("standby"), ttlChoice("archive")),
  h("label", { class: "consent" }, h("input", { type: "checkbox", name: "start", value: "yes", checked: true }), "Start it right away"));
  const dialog = openDialog("New workspace", form);
  name.focus();
}

/** The default stays chosen, whatever comes and even if nothing does. */
async function offerEditors(select) {
  const { items, other_images: others } = await get("/editors").catch(() => ({ items: [], other_images: false }));
  const options = items.map(({ image_ref: ref, default: isDefault }) =>
    [isDefault ? "" : ref, `${IDES[ref] ?? ref}${isDefault ? " (default)" : ""}`]);
  if (others) options.push([OTHER, "Another image…"]);
  if (options.length) select.replaceChildren(...choose("", options, "").children);
}

async function send(values, key, store) {
  const image = values.editor === OTHER ? values.image_ref : values.editor;
  const workspace = await post("/workspaces", {
    name: values.name,
    description: values.description || null,
    image_ref: image || null,
    standby_ttl_seconds: readTtl(values.standby_ttl_seconds),
    archive_ttl_seconds: readTtl(values.archive_ttl_seconds),
    desired_state: values.start ? "RUNNING" : "STANDBY",
  }, { headers: { "Idempotency-Key": key } });
  store.put(workspace);
  toast(`${workspace.name} is on its way.`);
  return workspace;
}

// crypto.randomUUID exists on https and loopback only.
function randomKey() {
  return Array.from(crypto.getRandomValues(new Uint32Array(4)), (each) => each.toString(16)).join("-");
}
