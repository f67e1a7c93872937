/** The dialog for a new workspace. */

import { get, post } from "../api.js";
import { h } from "../dom.js";
import { IDES } from "../words.js";
import { openDialog } from "./dialog.js";
import { checkboxField, createForm, field, options, select } from "./forms.js";
import { idleTimeFields, readIdleTimes } from "./idle_times.js";
import { orStopAnother } from "./running_limit.js";
import { toast } from "./toast.js";

/** @import { Store } from "../store.js" */
/** @import { EditorList, Workspace } from "../types.js" */

const OTHER = "other";
const NO_IDES = { items: [], other_images: false };
const IMAGE_EXAMPLE = "registry.example/team/image:1.2";

/**
 * @param {Store} store
 * @param {(workspace: Workspace) => void} onCreated
 */
export function openCreateDialog(store, onCreated) {
  const name = h("input", { name: "name", required: true, maxlength: 100, autocomplete: "off",
    placeholder: "thesis-notebooks" });
  const description = h("input", { name: "description", maxlength: 1000, autocomplete: "off" });
  const start = h("input", { type: "checkbox", name: "start", value: "yes", checked: true });
  // A request that is sent again after a timeout has the same key, so it creates no second workspace.
  const key = randomKey();
  const form = createForm({ button: "Create", submit: async (values) => {
    await orStopAnother(async () => {
      const workspace = await create(values, key, store);
      dialog.close();
      onCreated(workspace);
    });
    dialog.close();
  } },
  field("Name", name), field("Description", description, "Optional."), ideFields(),
  h("details", { class: "fold" }, h("summary", {}, "When nobody uses it"), idleTimeFields()),
  checkboxField(start, "Start it now"));
  const dialog = openDialog("New workspace", form);
  name.focus();
}

function ideFields() {
  const ide = select("ide", [["", "Default IDE"]], "");
  const image = h("input", { name: "image_ref", maxlength: 255, autocomplete: "off",
    placeholder: IMAGE_EXAMPLE });
  const imageField = field("Image", image);
  imageField.hidden = true;
  ide.addEventListener("change", () => {
    imageField.hidden = ide.value !== OTHER;
    image.required = !imageField.hidden;
  });
  loadIdes(ide);
  return [field("IDE", ide), imageField];
}

/**
 * Fill in the choices. The default stays selected, even if the request fails.
 * @param {HTMLSelectElement} ide
 */
async function loadIdes(ide) {
  /** @type {EditorList} */
  const { items, other_images: others } = await get("/editors").catch(() => NO_IDES);
  /** @type {[string, string][]} */
  const choices = items.map(({ image_ref: ref, default: isDefault }) =>
    [isDefault ? "" : ref, `${IDES[ref] ?? ref}${isDefault ? " (default)" : ""}`]);
  if (others) choices.push([OTHER, "Another image…"]);
  if (choices.length) ide.replaceChildren(...options(choices, ""));
}

/**
 * @param {Record<string, string>} values
 * @param {string} key
 * @param {Store} store
 * @returns {Promise<Workspace>}
 */
async function create(values, key, store) {
  const image = values.ide === OTHER ? values.image_ref : values.ide;
  const workspace = await post("/workspaces", {
    name: values.name,
    description: values.description || null,
    image_ref: image || null,
    desired_state: values.start ? "RUNNING" : "STANDBY",
    ...readIdleTimes(values),
  }, { headers: { "Idempotency-Key": key } });
  store.put(workspace);
  toast(values.start ? `${workspace.name} is starting.` : `${workspace.name} is being prepared.`);
  return workspace;
}

// crypto.randomUUID exists only on https and loopback.
function randomKey() {
  return Array.from(crypto.getRandomValues(new Uint32Array(4)), (each) => each.toString(16)).join("-");
}
