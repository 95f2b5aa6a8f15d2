import { existsSync, globSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";
import { expect, test } from "vitest";

const folder = path.join(import.meta.dirname, "..", "..", "..", "src", "faces", "console");
const styles = path.join(
  path.dirname(createRequire(import.meta.url).resolve("@mantine/core/styles.css")),
  "styles",
);

test("every component of Mantine that the console uses has its styles in mantine.css", () => {
  const loaded = readFileSync(path.join(folder, "style/mantine.css"), "utf8");
  const used = globSync("**/*.tsx", { cwd: folder }).flatMap((file) =>
    [...readFileSync(path.join(folder, file), "utf8").matchAll(/import \{([^}]*)\} from "@mantine\/core"/g)]
      .flatMap(([, names = ""]) => names.split(","))
      .map((name) => name.trim()),
  );
  const styled = [...new Set(used)].filter((name) => existsSync(path.join(styles, `${name}.css`)));
  expect(styled).toContain("Table");
  expect(styled.filter((name) => !loaded.includes(`"@mantine/core/styles/${name}.css"`))).toEqual([]);
});
