import js from "@eslint/js";
import globals from "globals";

const rules = {
  eqeqeq: ["error", "always", { null: "ignore" }],
  "max-len": ["error", { code: 110 }],
  "no-implicit-coercion": "error",
  "no-shadow": "error",
  "no-var": "error",
  "object-shorthand": "error",
  "prefer-const": "error",
};

export default [
  { ignores: [".venv/"] },
  js.configs.recommended,
  { files: ["api/dashboard/assets/**/*.js"], languageOptions: { globals: globals.browser }, rules },
  {
    files: ["proxy/pages/templates/page.js"],
    languageOptions: { globals: globals.browser, sourceType: "script" },
    rules,
  },
  {
    // The attempts use what it defines.
    files: ["tests/attacks/attempts/prelude.js"],
    languageOptions: { globals: { ...globals.browser, t: "readonly" }, sourceType: "script" },
    rules: { ...rules, "no-unused-vars": "off" },
  },
  { files: ["tests/dashboard/*.mjs", "eslint.config.js"], languageOptions: { globals: globals.node }, rules },
];
