import path from "node:path";
import { defineConfig } from "vite";
import type { Operation } from "#operations/operation.ts";

const root = import.meta.dirname;

const target = process.env["LONGWATCH_API"] ?? "http://127.0.0.1:8080";
const key = process.env["LONGWATCH_KEY"];
const toService = { target, ...(key === undefined ? {} : { headers: { accesskey: key } }) };

const OPERATIONS = "virtual:operations";

/**
 * Gives the page the addresses of the operations. Their descriptions need the database's code, so Node loads them when the
 * console is built, and only method, path and the members of the query get into the bundle.
 */
const operationAddresses = {
  name: "operation-addresses",
  resolveId: (id: string) => (id === OPERATIONS ? `\0${OPERATIONS}` : null),
  async load(id: string) {
    if (id !== `\0${OPERATIONS}`) return null;
    const [{ OPERATIONS: all }, { addressOf }] = await Promise.all([
      import("#operations/index.ts"),
      import("#operations/input-schema.ts"),
    ]);
    const entries = all.map((operation) => [operation.name, addressOf(operation)]);
    const lists = all.flatMap(({ name, tab: title, summary: about, scope, output }: Operation) =>
      title === undefined
        ? []
        : { name, title, about, scope, members: Object.keys(output.shape.items.element.shape) },
    );
    return `export const ADDRESSES = ${JSON.stringify(Object.fromEntries(entries))}; export const LISTS = ${JSON.stringify(lists)};`;
  },
};

/** Builds the console into `dist/console`. The server replaces the placeholder of the nonce on each answer. */
export default defineConfig({
  root,
  base: "/",
  cacheDir: path.join(root, "../../../node_modules/.cache/vite-console"),
  html: { cspNonce: "__CSP_NONCE__" },
  server: {
    proxy: Object.fromEntries(
      ["^/api/v1/", "^/shield/", "^/session", "^/docs"].map((path) => [path, toService]),
    ),
  },
  build: {
    outDir: path.join(root, "../../../dist/console"),
    emptyOutDir: true,
    target: "es2023",
    // The browsers that know light-dark(), which the colours of both themes are written with.
    cssTarget: ["chrome123", "firefox120", "safari17.5"],
    // Data URLs of fonts or scripts would need a wider content security policy.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
    rolldownOptions: {
      // Of libraries for servers, which the browser ignores.
      onwarn: (warning, warn) => {
        if (warning.code !== "MODULE_LEVEL_DIRECTIVE") warn(warning);
      },
    },
  },
  plugins: [operationAddresses],
  oxc: { jsx: { runtime: "automatic" } },
});
