import { existsSync, readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { describe, expect, test } from "vitest";
import { parse } from "yaml";
import { configFile } from "#config/file/config-file-schema.ts";
import type { ChannelCapabilities } from "#delivery/receivers/channel-definition.ts";
import { CHANNELS, findChannel } from "#delivery/receivers/channels/registry.ts";
import { slack } from "#delivery/receivers/channels/slack/slack.ts";
import { stringsOf } from "../support/characters.ts";
import { hostileMessage, incidentWith } from "../support/messages.ts";
import { NOW, POSTING } from "../support/receiver.ts";

const ROOT = path.join(import.meta.dirname, "..", "..", "..");
const SOURCES = path.join(ROOT, "src", "delivery", "receivers", "channels");
const DOCUMENT = readFileSync(path.join(ROOT, "docs", "channels.md"), "utf8");
/** These send without a POST request; their own tests hold the contract of a notifier. */
const WITHOUT_POST = ["terminal", "email"];

/** These send every member as data of its own. */
const LISTS_ALL: readonly string[] = ["webhook", "alertmanager"];

const countBytes = (body: unknown) =>
  Buffer.byteLength(typeof body === "string" ? body : JSON.stringify(body));
/** Words of the format itself, such as `section`, are short and do not count. */
const countCharacters = (body: unknown) =>
  stringsOf(body)
    .map((text) => Array.from(text).length)
    .filter((length) => length > 20)
    .reduce((sum, length) => sum + length, 0);

const isFile = (kind: string, body: unknown) =>
  kind === "discord" ? typeof body === "string" : kind === "telegram" && typeof body !== "string";

const KINDS = CHANNELS.map(({ kind }) => kind);

test("the registry names every folder of channels, and every channel has a folder", () => {
  const folders = readdirSync(SOURCES, { withFileTypes: true }).filter((entry) => entry.isDirectory());
  expect(folders.map(({ name }) => name).sort()).toEqual([...KINDS].sort());
});

test("a channel that leaves out a capability does not compile", () => {
  const { renewAfterMs: _, ...incomplete } = slack.capabilities;
  // @ts-expect-error: `renewAfterMs` is missing.
  const capabilities: ChannelCapabilities = incomplete;
  expect(capabilities).not.toHaveProperty("renewAfterMs");
});

test("findChannel returns undefined for a word that is no kind of channel", () => {
  expect(findChannel("pigeon")).toBeUndefined();
  expect(findChannel("constructor")).toBeUndefined();
  expect(findChannel(undefined)).toBeUndefined();
});

test("every channel that posts is under the contract of notifiers", () => {
  expect([...Object.keys(POSTING), ...WITHOUT_POST].sort()).toEqual([...KINDS].sort());
});

describe.each(CHANNELS.map((definition) => [definition.kind, definition] as const))(
  "%s",
  (kind, definition) => {
    const { capabilities, example, render, schema } = definition;

    test.each(["first", "hostile"])("has a golden file of the alert %s", (name) => {
      const files = ["json", "txt"].map((ending) => `${name}.golden.${ending}`);
      const folder = path.join(import.meta.dirname, kind, "golden");
      expect(files.filter((file) => existsSync(path.join(folder, file)))).toHaveLength(1);
    });

    test("docs/channels.md has an example of its configuration that the file's schema accepts", () => {
      const section = DOCUMENT.split(`\n## ${kind}\n`)[1]?.split("\n## ")[0] ?? "";
      const examples = [...section.matchAll(/```yaml\n([\s\S]*?)```/g)].map(([, text = ""]) => parse(text));
      const channels = examples.flatMap((one) => Object.values<{ kind?: string }>(one?.channels ?? {}));
      expect(channels.some((channel) => channel.kind === kind)).toBe(true);
      for (const one of examples) expect(configFile.safeParse(one).error?.issues).toBeUndefined();
    });

    test("accepts its own example", () => {
      expect(schema.safeParse({ kind, name: "it", ...example }).error?.issues).toBeUndefined();
    });

    test("probes a failing receiver at least every five minutes and at most twice a minute", () => {
      expect(capabilities.longestPauseMs).toBeGreaterThanOrEqual(30_000);
      expect(capabilities.longestPauseMs).toBeLessThanOrEqual(300_000);
    });

    test("merges notifications into a digest unless its receiver counts alerts by key", () => {
      expect(capabilities.rate.perMinute).toBeGreaterThan(0);
      expect(capabilities.rate.digest === null).toBe(capabilities.laterTransitions === "same-incident");
    });

    test.each([
      ["a hostile alert", hostileMessage()],
      ["an incident with 5,000 rules", incidentWith(5_000)],
    ])("renders %s within the limit of a message", (_what, message) => {
      const limit = capabilities.limits.message;
      const bodies = render(message, NOW);
      expect(bodies.length).toBeGreaterThan(0);
      const messages = bodies.filter((body) => !isFile(kind, body));
      if (limit === null) return;
      const count = limit.unit === "bytes" ? countBytes : countCharacters;
      for (const body of messages) expect(count(body)).toBeLessThanOrEqual(limit.most);
    });

    test.skipIf(LISTS_ALL.includes(kind))("shows the stated number of members with their counts", () => {
      const [first] = render(incidentWith(5_000), NOW);
      const texts = kind === "email" ? [(first as { text: string }).text] : stringsOf(first);
      const rows = texts.join("\n").match(/\bin \d+ min, usually/g) ?? [];
      expect(rows).toHaveLength(capabilities.limits.memberRows);
    });
  },
);
