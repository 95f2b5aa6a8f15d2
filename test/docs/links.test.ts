import { existsSync, globSync, readFileSync } from "node:fs";
import path from "node:path";
import { expect, test } from "vitest";

const root = path.join(import.meta.dirname, "..", "..");
const pages = globSync(["*.md", "docs/**/*.md"], { cwd: root });
const read = (page: string) => readFileSync(path.join(root, page), "utf8");
/** Examples in fences are no links. */
const prose = (page: string) => read(page).replace(/^```[\s\S]*?^```/gm, "");

/** As a forge names headings: small, without punctuation, blanks as dashes. */
function anchorsOf(page: string): Set<string> {
  const headings = [...prose(page).matchAll(/^#+ (.+)$/gm)].map(([, text = ""]) => text);
  return new Set(
    headings.map((text) =>
      text
        .toLowerCase()
        .replace(/[^\p{L}\p{N}\s-]/gu, "")
        .trim()
        .replaceAll(" ", "-"),
    ),
  );
}

test.each(pages)("every link of %s that stays in the repository leads somewhere", (page) => {
  const targets = [...prose(page).matchAll(/\]\(([^)\s<>]+)\)/g)]
    .map(([, target = ""]) => target)
    .filter((target) => !/^[a-z]+:/.test(target));
  const broken = targets.filter((target) => {
    const [file = "", anchor] = target.split("#");
    const other = file === "" ? page : path.posix.join(path.posix.dirname(page), file);
    if (!existsSync(path.join(root, other))) return true;
    return anchor !== undefined && !anchorsOf(other).has(anchor);
  });
  expect(broken).toEqual([]);
});

test("a reader of the README reaches every page of the documentation by links", () => {
  const reached = new Set(["README.md"]);
  for (const page of reached)
    for (const [, target = ""] of prose(page).matchAll(/\]\(([^)\s<>#]+\.md)(?:#[^)]*)?\)/g))
      if (!/^[a-z]+:/.test(target)) reached.add(path.posix.join(path.posix.dirname(page), target));
  expect(pages.filter((page) => page.startsWith("docs/") && !reached.has(page))).toEqual([]);
});
