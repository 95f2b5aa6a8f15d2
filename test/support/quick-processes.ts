/**
 * Makes every process that a test starts load quick-start.mjs first. `env` of the configuration cannot do it: vitest
 * starts its workers with these variables too, and a worker lives for minutes and needs V8's optimizing compilers.
 */
import path from "node:path";

const option = `--import=${new URL("quick-start.mjs", import.meta.url).href}`;
const given = process.env["NODE_OPTIONS"] ?? "";
// A worker runs this once per file, in one environment.
if (!given.includes(option)) process.env["NODE_OPTIONS"] = `${given} ${option}`.trim();

// V8 refuses compiled code of a process with other flags, so these processes do not share the workers' cache.
process.env["NODE_COMPILE_CACHE"] = path.resolve("node_modules/.cache/node-compile-quick");
