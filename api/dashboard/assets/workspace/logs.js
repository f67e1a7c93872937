/** The output of the IDE. */

import { messageOf, readText } from "../api.js";
import { sectionWith } from "../components/section.js";
import { h, setText } from "../dom.js";

const TAIL = 200, MOST_CHARACTERS = 400000, NEAR_END = 40;

export class Logs {
  /** @param {string} id */
  constructor(id) {
    this.id = id;
    this.text = h("pre", { class: "log", tabindex: "0", role: "log", "aria-label": "Log",
      "aria-live": "off" });
    this.note = h("p", { class: "quiet", role: "status" });
    this.follow = h("input", { type: "checkbox", onchange: () => this.read() });
    const follow = h("label", { class: "switch" }, this.follow, "Follow");
    this.element = sectionWith("Log", follow, this.text, this.note);
    this.reading = new AbortController();
  }

  /** Read the last lines, and wait for more if asked to follow. */
  async read() {
    this.reading.abort();
    const reading = new AbortController();
    this.reading = reading;
    this.text.textContent = "";
    setText(this.note, this.follow.checked ? "Waiting for more output." : "");
    try {
      const query = `tail=${TAIL}${this.follow.checked ? "&follow=true" : ""}`;
      await readText(`/workspaces/${this.id}/logs?${query}`, reading.signal, (text) => this.append(text));
      setText(this.note, this.text.textContent ? "" : "The IDE has printed nothing, or is not running.");
      this.follow.checked = false;
    } catch (error) {
      if (reading.signal.aborted) return;
      this.follow.checked = false;
      setText(this.note, messageOf(error));
    }
  }

  /** @param {string} text */
  append(text) {
    const { scrollHeight, scrollTop, clientHeight } = this.text;
    const atEnd = scrollHeight - scrollTop - clientHeight < NEAR_END;
    const whole = this.text.textContent + text;
    const excess = whole.length - MOST_CHARACTERS;
    this.text.textContent = excess > 0 ? whole.slice(whole.indexOf("\n", excess) + 1) : whole;
    if (atEnd) this.text.scrollTop = this.text.scrollHeight;
  }
}
