/** What the editor prints, with or without waiting for more. */

import { readText } from "../api.js";
import { h, say } from "../dom.js";
import { sectionWith } from "../components/section.js";

const TAIL = 200, MOST_CHARACTERS = 400000, NEAR_END = 40;

export class Logs {
  constructor(id) {
    this.id = id;
    this.text = h("pre", { class: "log", tabindex: "0", role: "log", "aria-label": "Log", "aria-live": "off" });
    this.note = h("p", { class: "quiet", role: "status" });
    this.follow = h("input", { type: "checkbox", onchange: () => this.read() });
    this.element = sectionWith("Log", h("label", { class: "switch" }, this.follow, "Follow"), this.text, this.note);
  }

  async read() {
    this.reading?.abort();
    const reading = (this.reading = new AbortController());
    this.text.textContent = "";
    say(this.note, this.follow.checked ? "Follows what is printed." : "");
    try {
      const query = `tail=${TAIL}${this.follow.checked ? "&follow=true" : ""}`;
      await readText(`/workspaces/${this.id}/logs?${query}`, reading.signal, (text) => this.add(text));
      say(this.note, this.text.textContent ? "" : "Nothing was printed, or nothing runs.");
      this.follow.checked = false;
    } catch (error) {
      if (reading.signal.aborted) return;
      this.follow.checked = false;
      say(this.note, error.message);
    }
  }

  add(text) {
    const { scrollHeight, scrollTop, clientHeight } = this.text;
    const atEnd = scrollHeight - scrollTop - clientHeight < NEAR_END;
    const whole = this.text.textContent + text;
    this.text.textContent = whole.length > MOST_CHARACTERS ? whole.slice(whole.indexOf("\n", whole.length - MOST_CHARACTERS) + 1) : whole;
    if (atEnd) this.text.scrollTop = this.text.scrollHeight;
  }
}
