/** What happens next, and when. */

import { ahead, size } from "../format.js";
import { failureOf, PHASES } from "../words.js";

/** One sentence about a workspace at rest. */
export function whatNext(workspace) {
  if (workspace.needs_person) return `${failureOf(workspace)}.`;
  return [restartToApply(workspace), whenLeftAlone(workspace)].filter(Boolean).join(" ");
}

function restartToApply(workspace) {
  return workspace.restart_to_apply ? workspace.conditions["infra.configuration_current"].message : "";
}

function whenLeftAlone(workspace) {
  const change = workspace.next_change;
  if (change?.to === "STANDBY") return `Stops ${ahead(change.at)} unless used.`;
  if (change?.to === "ARCHIVED") return `Archives ${ahead(change.at)} unless used.`;
  if (workspace.phase === "ARCHIVED" && workspace.archive?.size_bytes) {
    return `Safe in an archive of ${size(workspace.archive.size_bytes)}.`;
  }
  return PHASES[workspace.phase].sentence;
}
