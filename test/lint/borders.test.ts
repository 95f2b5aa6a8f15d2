import { spawnSync } from "node:child_process";
import { cpSync, globSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { expect, test } from "vitest";
import { makeTemporaryFolder } from "../support/temporary-folder.ts";

const ROOT = path.join(import.meta.dirname, "..", "..");
const STAGES = ["coverage", "ingest", "detection", "alerting", "delivery", "archive", "privacy"].map(
  (stage) => `src/stages/${stage}`,
);

/** Every folder, and the folders that it may import. */
const MAY_IMPORT: Readonly<Record<string, readonly string[]>> = {
  "src/lib": [],
  "src/model": ["src/lib"],
  "src/adapters/edge": ["src/lib"],
  "src/adapters/queue": ["src/lib"],
  "src/adapters/embedded": ["src/lib"],
  "src/adapters/storage": ["src/model", "src/lib"],
  "src/emulator": ["src/lib"],
  db: ["src/model", "src/lib"],
  "src/stages/coverage": ["src/adapters/edge", "src/model", "src/lib"],
  "src/stages/detection": ["src/adapters/edge", "src/model", "src/lib"],
  "src/stages/privacy": ["src/model", "src/lib"],
  "src/stages/alerting": ["src/stages/detection", "src/model", "src/lib"],
  "src/stages/delivery": ["src/model", "src/lib"],
  "src/stages/ingest": ["src/stages/coverage", "src/adapters/edge", "src/model", "src/lib"],
  "src/stages/archive": ["src/stages/privacy", "src/model", "src/lib"],
  "src/config": [
    "src/stages/alerting",
    "src/stages/archive",
    "src/stages/delivery",
    "src/stages/detection",
    "src/stages/privacy",
    "src/model",
    "src/lib",
  ],
  jobs: [...STAGES, "db", "src/adapters/edge", "src/adapters/queue", "src/model", "src/lib"],
  "src/operations": [...STAGES, "jobs", "db", "src/config", "src/adapters/edge", "src/model", "src/lib"],
  "src/faces/http": [
    ...STAGES,
    "src/operations",
    "db",
    "src/config",
    "src/adapters/edge",
    "src/model",
    "src/lib",
  ],
  "src/faces/mcp": ["src/config", "src/model", "src/lib", "src/operations"],
  "src/faces/console": ["src/model", "src/lib"],
};
const FOLDERS = [...Object.keys(MAY_IMPORT), "src/app", "src/faces/cli"];

/** Libraries, and the folders that may import them. */
const LIBRARIES: Readonly<Record<string, readonly string[]>> = {
  bullmq: ["src/adapters/queue"],
  ioredis: ["src/adapters/queue"],
  "node-cron": ["src/adapters/queue", "src/lib"],
  "openid-client": ["src/app"],
  pg: ["db", "src/adapters/embedded"],
  "pg-copy-streams": ["db"],
  "drizzle-orm": ["db"],
  "@duckdb/node-api": ["db"],
  undici: ["src/adapters/edge", "src/stages/delivery", "src/adapters/storage"],
  aws4fetch: ["src/adapters/storage"],
  nodemailer: ["src/stages/delivery"],
  fastify: ["src/faces/http", "src/app"],
  "prom-client": ["src/faces/http"],
  pino: ["src/lib"],
  commander: ["src/faces/cli"],
  "@modelcontextprotocol/sdk": ["src/faces/mcp"],
  yaml: ["src/config"],
  react: ["src/faces/console"],
  "@mantine/core": ["src/faces/console"],
  "@tanstack/react-query": ["src/faces/console"],
  uplot: ["src/faces/console"],
  wouter: ["src/faces/console"],
};

/** Everything that `folder` might import: other folders, libraries, and for the emulator the parts of the client. */
const importsOf = (folder: string) => [
  ...FOLDERS.filter(
    (other) => other !== folder && !(folder === "src/emulator" && other === "src/adapters/edge"),
  ),
  ...Object.keys(LIBRARIES),
  ...(folder === "src/emulator"
    ? ["src/adapters/edge/contract", "src/adapters/edge/transport", "src/adapters/edge/account"]
    : []),
  ...(STAGES.includes(folder) ? ["src/lib/clock.ts"] : []),
];

function isAllowed(folder: string, imported: string): boolean {
  const folders = LIBRARIES[imported];
  if (folders !== undefined) return folders.includes(folder);
  // A channel measures how long a receiver takes.
  if (imported === "src/lib/clock.ts") return folder === "src/stages/delivery";
  if (imported === "src/adapters/edge/contract") return true;
  // src/app builds every part; only the command line stands above it.
  return MAY_IMPORT[folder]?.includes(imported) ?? imported !== "src/faces/cli";
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

/** Returns the room of a file: `db`, `jobs`, `test`, or a folder of `src`, where stages, faces and adapters have one each. */
function roomOf(file: string): string {
  const [top = "", room = "", inner = ""] = file.split("/");
  if (top !== "src") return top;
  return ["stages", "faces", "adapters"].includes(room) ? `src/${room}/${inner}` : `src/${room}`;
}

/** Returns the relative imports of a file that leave its room or climb three folders. */
function findClimbs(file: string, text: string): string[] {
  const specifiers = [...text.matchAll(/(?:\bfrom|\bimport)\s*\(?\s*"(\.[^"]*)"/g)].map(
    ([, specifier = ""]) => specifier,
  );
  return specifiers.filter((specifier) => {
    const target = path.posix.join(path.posix.dirname(file), specifier);
    // Files of no room, such as src/main.ts, have no name to be imported by.
    const hasRoom = target.split("/").length > (target.startsWith("src/") ? 2 : 1);
    return specifier.startsWith("../../../") || (hasRoom && roomOf(target) !== roomOf(file));
  });
}

test("no import leaves its room by a relative path", () => {
  const climbs = (file: string, specifier: string) => findClimbs(file, `import { a } from "${specifier}";`);
  expect(climbs("src/app/planted.ts", "../model/a.ts")).toEqual(["../model/a.ts"]);
  expect(climbs("db/ingest/planted.ts", "../../src/lib/a.ts")).toHaveLength(1);
  expect(climbs("test/a/b/c/planted.ts", "../../../support/a.ts")).toHaveLength(1);
  expect(climbs("src/stages/archive/query/a.ts", "../plan.ts")).toEqual([]);
  const files = ["src", "db", "jobs", "test"].flatMap((top) =>
    globSync(`${top}/**/*.{ts,tsx}`, { cwd: ROOT }),
  );
  expect(files.length).toBeGreaterThan(1000);
  const found = files.flatMap((file) =>
    findClimbs(file, readFileSync(path.join(ROOT, file), "utf8")).map((specifier) => `${file}: ${specifier}`),
  );
  expect(found).toEqual([]);
});

test("the linter refuses exactly the imports that cross a border", () => {
  const plants = FOLDERS.filter((folder) => folder !== "src/faces/cli").flatMap((folder) =>
    importsOf(folder).map((imported, index) => {
      const file = `${folder}/planted-${index}.ts`;
      const target = imported.endsWith(".ts") ? imported : `${imported}/thing.ts`;
      const specifier = imported in LIBRARIES ? imported : `#${target.replace(/^src\//, "")}`;
      return { file, specifier, border: `${folder} -> ${imported}`, isAllowed: isAllowed(folder, imported) };
    }),
  );
  const refused = lintPlanted(plants);
  const wrong = plants.filter(({ file, isAllowed }) => refused.has(file) === isAllowed);
  expect(wrong.map(({ border }) => border)).toEqual([]);
  expect(refused.size).toBeGreaterThan(200);
});
