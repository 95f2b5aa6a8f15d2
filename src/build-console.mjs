/**
 * Builds `src/faces/console` into `dist/console`, and beside every file a copy in Brotli and one in gzip, which the server sends as
 * they are. `npm run build:console` and `npm start` run it on the pinned Node; the Dockerfile runs it alone.
 */
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { brotliCompressSync, gzipSync } from "node:zlib";
import { build } from "vite";

const root = path.dirname(path.dirname(fileURLToPath(import.meta.url)));
/** Below it, the headers weigh more than what is saved. */
const LEAST_BYTES = 1_024;

// Tests set another value, and would test React's development build.
process.env.NODE_ENV = "production";
await build({ configFile: path.join(root, "src", "faces", "console", "vite.config.ts") });
const assets = path.join(root, "dist", "console", "assets");
for (const name of readdirSync(assets)) {
  if (!/\.(?:js|css|svg|json|map)$/.test(name)) continue;
  const file = path.join(assets, name);
  const bytes = readFileSync(file);
  if (bytes.length < LEAST_BYTES) continue;
  writeFileSync(`${file}.br`, brotliCompressSync(bytes));
  writeFileSync(`${file}.gz`, gzipSync(bytes, { level: 9 }));
}
