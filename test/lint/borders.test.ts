import { spawnSync } from "node:child_process";
import { cpSync, globSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { expect, test } from "vitest";
import { BORDERS, LIBRARIES } from "../../oxlint.config.ts";
import { makeTemporaryFolder } from "../support/temporary-folder.ts";

const ROOT = path.join(import.meta.dirname, "..", "..");
/** The folder of a room. */
const folderOf = (room: string) => (room === "db" || room === "jobs" ? room : `src/${room}`);
const ROOMS = [...Object.keys(BORDERS), "faces/cli"];

/** Everything that `room` might import: other rooms, libraries, the clock, and for the emulator the parts of the client. */
const importsOf = (room: string) => [
  ...ROOMS.filter((other) => other !== room && !(room === "emulator" && other === "platform")),
  // A pattern of a library, such as `drizzle-orm/*`, is tried with a file of it.
  ...Object.keys(LIBRARIES).map((library) => library.replace("*", "thing")),
  ...(room === "emulator" ? ["platform/contract", "platform/transport", "platform/account"] : []),
  ...(room.endsWith("/rules") ? ["lib/clock.ts"] : []),
];

const roomsOfLibrary = (library: string) =>
  LIBRARIES[library] ?? LIBRARIES[library.replace(/\/[^/]*$/, "/*")];

function isAllowed(room: string, imported: string): boolean {
  const rooms = roomsOfLibrary(imported);
  if (rooms !== undefined) return rooms.includes(room);
  return imported === "platform/contract" || (BORDERS[room]?.may.includes(imported) ?? false);
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

/** Returns the room of a file: the longest one whose folder holds it; `test`, or a folder of `src` without a border. */
function roomOf(file: string): string {
  const rooms = ROOMS.filter((room) => file.startsWith(`${folderOf(room)}/`));
  const [top = "", inner = ""] = file.split("/");
  return rooms.toSorted((a, b) => b.length - a.length)[0] ?? (top === "src" ? inner : top);
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
  expect(climbs("src/archive/search/a.ts", "../rules/plan.ts")).toHaveLength(1);
  expect(climbs("src/archive/rules/query/a.ts", "../plan.ts")).toEqual([]);
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
  const plants = Object.keys(BORDERS).flatMap((room) =>
    importsOf(room).map((imported, index) => {
      const file = `${folderOf(room)}/planted-${index}.ts`;
      const target = imported.endsWith(".ts") ? imported : `${imported}/thing.ts`;
      const specifier = roomsOfLibrary(imported) === undefined ? `#${target}` : imported;
      return { file, specifier, border: `${room} -> ${imported}`, isAllowed: isAllowed(room, imported) };
    }),
  );
  const refused = lintPlanted(plants);
  const wrong = plants.filter(({ file, isAllowed }) => refused.has(file) === isAllowed);
  expect(wrong.map(({ border }) => border)).toEqual([]);
  expect(refused.size).toBeGreaterThan(600);
});
