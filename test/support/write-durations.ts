import { globSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";

/**
 * Writes `test/durations.json` from what Vitest noted in its last run of all tests: seconds by file, the longest first. Run it on a
 * machine without other load, because the order of the files is that of these numbers.
 */
const root = path.join(import.meta.dirname, "..", "..");
const [cache] = globSync("node_modules/.vite/vitest/*/results.json", { cwd: root });
if (cache === undefined) throw new Error("No durations are known yet: run npm test first.");
const { projects } = JSON.parse(readFileSync(path.join(root, cache), "utf8")) as {
  readonly projects: Readonly<
    Record<string, { readonly files: Readonly<Record<string, { duration: number }>> }>
  >;
};
const seconds = Object.values(projects)
  .flatMap(({ files }) => Object.entries(files))
  .map(
    ([file, { duration }]) =>
      [file.replace(/^test\/|\.test\.ts$/g, ""), Math.round(duration / 1_000)] as const,
  )
  .filter(([, duration]) => duration > 0)
  .toSorted((a, b) => b[1] - a[1]);
writeFileSync(
  path.join(root, "test", "durations.json"),
  `${JSON.stringify(Object.fromEntries(seconds), null, 2)}\n`,
);
process.stdout.write(`Noted the durations of ${seconds.length} files.\n`);
