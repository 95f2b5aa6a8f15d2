import { readFileSync } from "node:fs";
import path from "node:path";
import { expect, test } from "vitest";

const root = path.join(import.meta.dirname, "..", "..");
const read = (file: string) => readFileSync(path.join(root, file), "utf8");
const lock = JSON.parse(read("package-lock.json")) as {
  packages: Record<string, { optionalDependencies?: Record<string, string> }>;
};

/** Returns whether the package at `folder` finds `name`: in its own node_modules, or in that of a folder above. */
function finds(folder: string, name: string): boolean {
  if (`${folder ? `${folder}/` : ""}node_modules/${name}` in lock.packages) return true;
  return folder !== "" && finds(folder.slice(0, Math.max(0, folder.lastIndexOf("node_modules/") - 1)), name);
}

test("the lock file has every optional package of every locked package, without which npm ci fails", () => {
  const optional = Object.entries(lock.packages).flatMap(([folder, { optionalDependencies = {} }]) =>
    Object.keys(optionalDependencies).map((name) => ({ folder, name })),
  );
  expect(optional.length).toBeGreaterThan(100);
  expect(optional.filter(({ folder, name }) => !finds(folder, name))).toEqual([]);
});

test("the lock file names no registry, so the packages come from the one that npm is set up for", () => {
  expect(read("package-lock.json")).not.toContain('"resolved"');
});

test("package.json and every document that names the oldest Node name the same version", () => {
  const { engines } = JSON.parse(read("package.json")) as { engines: { node: string } };
  const oldest = engines.node.replace(">=", "");
  for (const file of ["README.md", "CONTRIBUTING.md", "docs/deploy.md"]) {
    const named = [...read(file).matchAll(/Node ([\d.]+)\s+or\s+newer/g)].map(([, version]) => version);
    expect([file, ...named]).toEqual([file, oldest]);
  }
  expect(read(".github/workflows/gate.yml")).toContain(`node: [${oldest},`);
});
