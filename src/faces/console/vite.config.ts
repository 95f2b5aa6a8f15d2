import path from "node:path";
import { defineConfig } from "vite";

const root = import.meta.dirname;

const target = process.env["LONGWATCH_API"] ?? "http://127.0.0.1:8080";
const key = process.env["LONGWATCH_KEY"];
const toService = { target, ...(key === undefined ? {} : { headers: { accesskey: key } }) };

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
  oxc: { jsx: { runtime: "automatic" } },
});
