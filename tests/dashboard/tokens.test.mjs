/** What a token may do, in words. */

import "./browser.mjs";

import assert from "node:assert/strict";
import { test } from "node:test";

import { limitsOf } from "../../api/dashboard/assets/account/tokens.js";

const NAMES = new Map([["1", "thesis"]]);

test("the limits of a token are said in words", () => {
  const limits = (scopes, workspaces = null) => limitsOf({ scopes, workspaces }, NAMES);
  assert.equal(limits(null), "May do everything that you may.");
  assert.equal(limits(["read"]), "Read.");
  assert.equal(limits(["read", "workspaces"], ["1"]), "Read, change and open workspaces, only thesis.");
  assert.equal(limits(["read", "workspaces", "admin"]), "Everything, administration included.");
  assert.equal(limits(["read"], ["2"]), "Read, only a deleted workspace.");
});
