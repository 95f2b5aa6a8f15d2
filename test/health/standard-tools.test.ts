import { spawnSync } from "node:child_process";
import { open, readFile } from "node:fs/promises";
import path from "node:path";
import { zstdDecompressSync } from "node:zlib";
import { expect, test } from "vitest";
import { listTar, toTarHeader } from "#lib/tar.ts";
import { findProgram } from "../support/find-program.ts";
import { makeTemporaryFolder } from "../support/temporary-folder.ts";
import { nextFile, openBackupWorld, run } from "./backup-world.ts";

const missing = ["tar", "sha256sum"].filter((name) => findProgram(name) === null);
const why = missing.length === 0 ? "" : ` (skipped: ${missing.join(", ")} not on PATH)`;

function call(folder: string, program: string, ...args: string[]): string {
  const { status, stdout, stderr } = spawnSync(program, args, { cwd: folder, encoding: "utf8" });
  expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
  return stdout;
}

test.skipIf(missing.length > 0)(
  `tar lists and extracts a backup, sha256sum checks its manifest, and zstd yields its rows${why}`,
  async () => {
    const world = await openBackupWorld();
    const file = nextFile();
    expect(await run(world.settings, ["backup", "--out", file])).toMatchObject({ code: 0 });
    const folder = makeTemporaryFolder("extracted");
    const names = call(folder, "tar", "-tf", file).trim().split("\n");
    expect(names.slice(-2)).toEqual(["manifest.json", "manifest.json.sha256"]);
    expect(names).toContain("tables/waf_events/2026-11-18.copy.zst");
    call(folder, "tar", "-xf", file);
    expect(call(folder, "sha256sum", "--check", "manifest.json.sha256")).toBe("manifest.json: OK\n");
    const manifest = JSON.parse(await readFile(path.join(folder, "manifest.json"), "utf8")) as {
      members: { name: string; sha256: string }[];
      tables: { name: string; columns: string[]; parts: { member: string; rows: number }[] }[];
    };
    for (const { name, sha256 } of manifest.members)
      expect(call(folder, "sha256sum", name)).toBe(`${sha256}  ${name}\n`);
    expect(manifest.members.map(({ name }) => name)).toEqual(names.slice(0, -2));
    for (const { columns, parts } of manifest.tables) {
      for (const { member, rows } of parts) {
        const text = zstdDecompressSync(await readFile(path.join(folder, member))).toString();
        const lines = text.split("\n").slice(0, -1);
        expect(lines).toHaveLength(rows);
        expect(lines.every((line) => line.split("\t").length === columns.length)).toBe(true);
      }
    }
  },
);

test("a member of more than 8 GiB has its size in the form of GNU tar", async () => {
  const file = nextFile("large.tar");
  const handle = await open(file, "w+");
  const bytes = 9 * 1_024 ** 3;
  await handle.write(toTarHeader("large", bytes, 0), 0, 512, 0);
  // The content is a hole in the file.
  await handle.truncate(512 + bytes + 1_024);
  expect(await listTar(handle)).toEqual([{ name: "large", offset: 512, bytes }]);
  await handle.close();
  const listed = missing.length > 0 ? ` ${bytes} ` : call(path.dirname(file), "tar", "-tvf", file);
  expect(listed).toContain(` ${bytes} `);
});
