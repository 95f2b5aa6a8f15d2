import { globSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { expect, test } from "vitest";
import { parse, stringify } from "yaml";
import { parseServiceConfig } from "#config/config.ts";
import { configCommand } from "#faces/cli/config/config.ts";
import { createSelfSigned } from "../delivery/support/self-signed.ts";
import { runStoreCommand } from "../faces/cli/run-store-command.ts";
import { makeTemporaryFolder } from "../support/temporary-folder.ts";

const page = readFileSync(path.join(import.meta.dirname, "../../docs/routing.md"), "utf8");
const THREE_AT_NIGHT = Date.UTC(2026, 10, 24, 3);
const ENV = {
  CHAT_URL: "https://hooks.example.com/chat",
  SHOP_CHAT_URL: "https://hooks.example.com/shop",
  PAGER_KEY: "k".repeat(32),
};

interface Example {
  readonly heading: string;
  readonly yaml: string;
  /** Reads the comments below an example: the arguments of `config routes test`, and the notified channels. */
  readonly claims: readonly { readonly args: string; readonly notified: string }[];
}

/** A file with the shared channels and zones, as the page says, in which the example replaces the parts that it shows. */
function writeExample(yaml: string): string {
  const base = /<!-- base -->\n\n```yaml\n([\s\S]*?)```/.exec(page)?.[1] ?? "";
  const folder = makeTemporaryFolder("routing-example");
  const file = path.join(folder, "longwatch.yaml");
  writeFileSync(file, stringify({ ...parse(base), ...parse(yaml) }).replaceAll("./secrets/", `${folder}/`));
  writeFileSync(path.join(folder, "slack-url"), `${ENV.CHAT_URL}\n`);
  return file;
}

function readExamples(): Example[] {
  return page.split(/^##+ /m).flatMap((section) => {
    const heading = section.split("\n")[0] ?? "";
    return [...section.matchAll(/```yaml\n([\s\S]*?)```\n((?:\s*<!-- at 03:00: .* -->\n)*)/g)].map(
      ([, yaml = "", comments = ""]) => ({
        heading,
        yaml,
        claims: [...comments.matchAll(/<!-- at 03:00: (.*) => (.*) -->/g)].map(
          ([, args = "", notified = ""]) => ({ args, notified }),
        ),
      }),
    );
  });
}

async function askRoutes(args: string, file: string): Promise<string> {
  const { out } = await runStoreCommand(
    (config, io) => configCommand({ check: config, config, list: () => [], running: () => null }, io),
    { ...ENV, LONGWATCH_CONFIG: file },
    ["routes", "test", ...args.split(" "), "--json"],
    { now: THREE_AT_NIGHT },
  );
  const [first] = JSON.parse(out).transitions;
  const told = [...first.notified, ...first.held.map((name: string) => `held ${name}`)];
  return told.length === 0 ? "nobody" : told.join(", ");
}

const examples = readExamples();

test("docs/routing.md has an example for most of its concepts, and claims about them", () => {
  expect(examples.length).toBeGreaterThan(10);
  expect(examples.flatMap(({ claims }) => claims).length).toBeGreaterThan(15);
});

test.each(examples)("config check accepts the example of docs/routing.md under $heading", ({ yaml }) => {
  expect(() => parseServiceConfig({ ...ENV, LONGWATCH_CONFIG: writeExample(yaml) })).not.toThrow();
});

test.each(
  examples.flatMap(({ heading, yaml, claims }) => claims.map((claim) => ({ heading, yaml, ...claim }))),
)("at 03:00 $args notifies $notified ($heading in docs/routing.md)", async ({ yaml, args, notified }) => {
  expect(await askRoutes(args, writeExample(yaml))).toBe(notified);
});

const DOCS = path.join(import.meta.dirname, "../../docs");
/** The files and variables that the examples of the other pages name. */
const SECRETS: Readonly<Record<string, string>> = {
  "hook-signing-key": `whsec_${Buffer.alloc(32, 7).toString("base64")}`,
  "pagerduty-key": ENV.PAGER_KEY,
  "slack-token": "xoxb-1-of-an-example",
  "opsgenie-key": "of-an-example",
  "jira-key": "of-an-example",
  "smtp-password": "of-an-example",
  "telegram-token": "123456:of-an-example",
  "hook-authority": createSelfSigned("hooks.example.com").cert,
};
const MORE_ENV = { HOOK_URL: "https://hooks.example.com/in", SHOP_URL: "https://hooks.example.com/shop" };

const others = globSync(["channels.md", "detection.md", "runbooks/*.md"], { cwd: DOCS }).flatMap((name) =>
  [...readFileSync(path.join(DOCS, name), "utf8").matchAll(/^( *)```yaml\n([\s\S]*?)^ *```/gm)].map(
    ([, indent = "", yaml = ""]) => ({ name, yaml: yaml.replaceAll(new RegExp(`^${indent}`, "gm"), "") }),
  ),
);

test("channels.md, detection.md and the runbooks have an example for each kind of channel and more", () => {
  expect(others.length).toBeGreaterThan(12);
});

test.each(others)("config check accepts the example of docs/$name: $yaml", ({ yaml }) => {
  const folder = makeTemporaryFolder("example");
  for (const [, secret = ""] of yaml.matchAll(/\.\/secrets\/([\w-]+)/g))
    writeFileSync(path.join(folder, secret), `${SECRETS[secret] ?? ENV.CHAT_URL}\n`);
  const file = path.join(folder, "longwatch.yaml");
  writeFileSync(file, yaml.replaceAll("./secrets/", `${folder}/`));
  expect(() => parseServiceConfig({ ...ENV, ...MORE_ENV, LONGWATCH_CONFIG: file })).not.toThrow();
});
