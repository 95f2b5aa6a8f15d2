import { spawnSync } from "node:child_process";
import { cpSync, mkdirSync, writeFileSync } from "node:fs";
import path from "node:path";
import { expect, test } from "vitest";
import { makeTemporaryFolder } from "../support/temporary-folder.ts";

const ROOT = path.join(import.meta.dirname, "..", "..");
const STAGES = ["coverage", "ingest", "detection", "alerting", "delivery", "archive", "privacy"].map(
  (stage) => `src/${stage}`,
);

/** Every folder, and the folders that it may import. */
const MAY_IMPORT: Readonly<Record<string, readonly string[]>> = {
  "src/lib": [],
  "src/model": ["src/lib"],
  "src/edge": ["src/lib"],
  "src/queue": ["src/lib"],
  "src/embedded": ["src/lib"],
  "src/storage": ["src/model", "src/lib"],
  "src/emulator": ["src/lib"],
  db: ["src/model", "src/lib"],
  "src/coverage": ["src/edge", "src/model", "src/lib"],
  "src/detection": ["src/edge", "src/model", "src/lib"],
  "src/privacy": ["src/model", "src/lib"],
  "src/alerting": ["src/model", "src/lib"],
  "src/delivery": ["src/model", "src/lib"],
  "src/ingest": ["src/coverage", "src/edge", "src/model", "src/lib"],
  "src/archive": ["src/privacy", "src/model", "src/lib"],
  "src/config": ["src/alerting", "src/delivery", "src/detection", "src/privacy", "src/model", "src/lib"],
  jobs: [...STAGES, "db", "src/edge", "src/queue", "src/model", "src/lib"],
  "src/operations": [...STAGES, "jobs", "db", "src/config", "src/edge", "src/model", "src/lib"],
  "src/http": [...STAGES, "src/operations", "db", "src/config", "src/edge", "src/model", "src/lib"],
  "src/console": ["src/model", "src/lib"],
};
const FOLDERS = [...Object.keys(MAY_IMPORT), "src/app", "src/cli"];

/** Libraries, and the folders that may import them. */
const LIBRARIES: Readonly<Record<string, readonly string[]>> = {
  bullmq: ["src/queue"],
  ioredis: ["src/queue"],
  "node-cron": ["src/queue"],
  pg: ["db", "src/embedded"],
  "pg-copy-streams": ["db"],
  "drizzle-orm": ["db"],
  "@duckdb/node-api": ["db"],
  undici: ["src/edge", "src/delivery", "src/storage"],
  aws4fetch: ["src/storage"],
  nodemailer: ["src/delivery"],
  fastify: ["src/http", "src/app"],
  "prom-client": ["src/http"],
  pino: ["src/lib"],
  commander: ["src/cli"],
  yaml: ["src/config"],
  react: ["src/console"],
  "@mantine/core": ["src/console"],
  "@tanstack/react-query": ["src/console"],
  uplot: ["src/console"],
  wouter: ["src/console"],
};

/** Everything that `folder` might import: other folders, libraries, and for the emulator the parts of the client. */
const importsOf = (folder: string) => [
  ...FOLDERS.filter((other) => other !== folder && !(folder === "src/emulator" && other === "src/edge")),
  ...Object.keys(LIBRARIES),
  ...(folder === "src/emulator" ? ["src/edge/contract", "src/edge/transport", "src/edge/account"] : []),
  ...(STAGES.includes(folder) ? ["src/lib/clock.ts"] : []),
];

function isAllowed(folder: string, imported: string): boolean {
  const folders = LIBRARIES[imported];
  if (folders !== undefined) return folders.includes(folder);
  // A channel measures how long a receiver takes.
  if (imported === "src/lib/clock.ts") return folder === "src/delivery";
  if (imported === "src/edge/contract") return true;
  // src/app builds every part; only the command line stands above it.
  return MAY_IMPORT[folder]?.includes(imported) ?? imported !== "src/cli";
}

/** Plants one file per import in a copy of the tree's folders, and returns the files that the linter refuses. */
function lintPlanted(plants: readonly { readonly file: string; readonly specifier: string }[]): Set<string> {
  const copy = makeTemporaryFolder("borders");
  cpSync(path.join(ROOT, "oxlint.config.ts"), path.join(copy, "oxlint.config.ts"));
  for (const { file, specifier } of plants) {
    mkdirSync(path.dirname(path.join(copy, file)), { recursive: true });
    writeFileSync(path.join(copy, file), `import { planted } from "${specifier}";\n\nplanted();\n`);
  }
  const { stdout } = spawnSync(
    path.join(ROOT, "node_modules/.bin/oxlint"),
    ["--format=json", "src", "db", "jobs"],
    {
      cwd: copy,
      encoding: "utf8",
      maxBuffer: 100_000_000,
    },
  );
  const { diagnostics } = JSON.parse(stdout) as { diagnostics: { code: string; filename: string }[] };
  return new Set(
    diagnostics.filter(({ code }) => code.includes("no-restricted-imports")).map(({ filename }) => filename),
  );
}

test("the linter refuses exactly the imports that cross a border", () => {
  const plants = FOLDERS.filter((folder) => folder !== "src/cli").flatMap((folder) =>
    importsOf(folder).map((imported, index) => {
      const file = `${folder}/planted-${index}.ts`;
      const target = imported.endsWith(".ts") ? imported : `${imported}/thing.ts`;
      const relative = path.posix.relative(folder, target);
      const specifier = imported in LIBRARIES ? imported : relative;
      return { file, specifier, border: `${folder} -> ${imported}`, isAllowed: isAllowed(folder, imported) };
    }),
  );
  const refused = lintPlanted(plants);
  const wrong = plants.filter(({ file, isAllowed }) => refused.has(file) === isAllowed);
  expect(wrong.map(({ border }) => border)).toEqual([]);
  expect(refused.size).toBeGreaterThan(200);
});
