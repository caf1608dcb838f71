import { fileURLToPath } from "node:url";
import type { Plugin } from "vite";
import { defineConfig } from "vitest/config";

/** What the validator of schemas leaves to the browser, without a bound: regular expressions, and schemas that refer to themselves. */
const BOUNDED: [string, string][] = [
  ["const regex = new RegExp(pattern, 'u');", "const regex = new Pattern(pattern);"],
  ["!new RegExp($pattern, 'u').test(instance)", "!new Pattern($pattern).allows(instance)"],
  ["    if (schema === true) {\n        return { valid: true, errors: [] };", "    spend(20);\n    if (schema === true) {\n        return { valid: true, errors: [] };"],
  ["                    const b = instance[k];", "                    spend();\n                    const b = instance[k];"],
];

/** A server chooses its schemas and the values for them: see `lib/pattern.ts`. A new version of the library is looked at by whoever takes it. */
const bounded: Plugin = {
  name: "bounded-validator",
  enforce: "pre",
  transform(code, id) {
    if (!/@cfworker\/json-schema\/dist\/[^?]*\/validate\.js/.test(id)) return undefined;
    for (const [unbounded, replacement] of BOUNDED) {
      if (code.split(unbounded).length !== 2) throw new Error(`the validator has changed: ${unbounded}`);
      code = code.replace(unbounded, () => replacement);
    }
    if (code.includes("new RegExp")) throw new Error("the validator uses another regular expression");
    return { code: `import { Pattern, spend } from ${JSON.stringify(fileURLToPath(new URL("src/lib/pattern.ts", import.meta.url)))};\n${code}`, map: null };
  },
};

// One script and one style sheet with fixed names: they are part of the Rust program, which lists them.
export default defineConfig({
  base: "./",
  plugins: [bounded],
  optimizeDeps: { exclude: ["@cfworker/json-schema"] },
  test: { server: { deps: { inline: ["@cfworker/json-schema"] } } },
  oxc: { jsx: { runtime: "automatic", importSource: "preact" } },
  build: {
    outDir: "../assets",
    emptyOutDir: true,
    target: "es2022",
    cssCodeSplit: false,
    modulePreload: { polyfill: false },
    assetsInlineLimit: 0,
    rollupOptions: {
      output: {
        entryFileNames: "app.js",
        chunkFileNames: "[name].js",
        codeSplitting: false,
        assetFileNames: (asset) => (asset.names[0]?.endsWith(".css") ? "app.css" : "[name][extname]"),
      },
    },
  },
});
