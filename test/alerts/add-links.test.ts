import { expect, test } from "vitest";
import { addLinks, sampleLinks } from "#alerts/rules/message/links.ts";
import { buildTestMessage } from "#alerts/rules/message/self-message.ts";
import type { LinkRule } from "#alerts/rules/routing/routing.ts";
import { type AlertMessage, alertMessage } from "#model/alert-message.ts";
import type { SubjectMatchers } from "#model/subject.ts";
import { incidentWith, messageOf } from "../delivery/support/messages.ts";

const STARTED_AT = messageOf().startedAt;
const NOW = STARTED_AT + 5 * 60_000;
const link = (title: string, url: string, matchers: SubjectMatchers = {}): LinkRule => ({
  title,
  url,
  matchers,
});
const titlesOf = (message: AlertMessage, rules: readonly LinkRule[]) =>
  addLinks(message, rules, NOW).links.map(({ title }) => title);
const urlOf = (message: AlertMessage, url: string) => addLinks(message, [link("x", url)], NOW).links[0]?.url;

test("a message gets its matching links in their order and is otherwise unchanged", () => {
  const rules = [
    link("Runbook SQLi", "https://wiki.example/sqli", { rule: ["942*"] }),
    link("Runbook XSS", "https://wiki.example/xss", { rule: ["941*"] }),
    link("Shop", "https://wiki.example/shop", { zone: [101] }),
    link("Blog", "https://wiki.example/blog", { zone: [102] }),
    link("Grave", "https://wiki.example/grave", { severity: ["critical"], kind: ["spike"] }),
    link("Ours", "https://wiki.example/longwatch", { kind: ["self"] }),
    link("All", "https://wiki.example/"),
  ];
  const message = messageOf();
  expect(titlesOf(message, rules)).toEqual(["Runbook SQLi", "Shop", "Grave", "All"]);
  const linked = addLinks(message, rules, NOW);
  expect({ ...linked, links: message.links }).toEqual(message);
  expect(alertMessage.parse(JSON.parse(JSON.stringify(linked)))).toEqual(linked);
});

test("a message has at most five links, and a link that is left out does not count", () => {
  const plain = Array.from({ length: 6 }, (_, index) => link(`${index}`, `https://wiki.example/${index}`));
  const self = messageOf({ kind: "self", ruleId: null });
  expect(titlesOf(messageOf(), [link("rule", "https://wiki.example/{rule}"), ...plain])).toEqual([
    "rule",
    "0",
    "1",
    "2",
    "3",
  ]);
  expect(titlesOf(self, [link("rule", "https://wiki.example/{rule}"), ...plain])).toEqual([
    "0",
    "1",
    "2",
    "3",
    "4",
  ]);
});

test("a link is left out if the alert has no value for its place", () => {
  const self = messageOf({ kind: "self", zoneId: null, ruleId: null });
  expect(urlOf(self, "https://wiki.example/{zone}")).toBeUndefined();
  expect(urlOf(self, "https://wiki.example/{rule}")).toBeUndefined();
  expect(urlOf(self, "https://wiki.example/{alert}")).toBe("https://wiki.example/7");
  expect(urlOf(messageOf({ alertId: 0 }), "https://wiki.example/{alert}")).toBeUndefined();
  expect(urlOf(messageOf({ zoneId: 101, ruleId: null }), "https://wiki.example/{zone}")).toBe(
    "https://wiki.example/101",
  );
});

test("the time range of a link begins an hour before the alert and ends at its end, or at the message", () => {
  const url = "https://g.example/?from={from_ms}&to={to_ms}";
  expect(urlOf(messageOf(), url)).toBe(`https://g.example/?from=${STARTED_AT - 3_600_000}&to=${NOW}`);
  const endedAt = STARTED_AT + 120_000;
  expect(urlOf(messageOf({ state: "resolved", endedAt }), url)).toBe(
    `https://g.example/?from=${STARTED_AT - 3_600_000}&to=${endedAt}`,
  );
  expect(urlOf(messageOf(), "https://g.example/{from}/{to}")).toBe(
    "https://g.example/2026-11-21T13%3A03%3A00.000Z/2026-11-21T14%3A08%3A00.000Z",
  );
  expect(urlOf(messageOf(), "https://g.example/{from_s}/{to_s}")).toBe(
    `https://g.example/${STARTED_AT / 1_000 - 3_600}/${NOW / 1_000}`,
  );
  // No calendar reaches these.
  expect(urlOf(messageOf({ startedAt: -9e15, endedAt: 9e15 }), "https://g.example/{from}/{to}")).toBe(
    "https://g.example/1970-01-01T00%3A00%3A00.000Z/9999-12-31T23%3A59%3A59.999Z",
  );
});

test("an incident has the links that match every one of its rules", () => {
  const rules = [
    link("SQLi", "https://wiki.example/sqli", { rule: ["9421*"] }),
    link("All of 94", "https://wiki.example/94", { rule: ["94*"] }),
    link("Zone", "https://wiki.example/{zone}", { zone: [101, 102] }),
    link("Shop", "https://wiki.example/shop", { zone: [101] }),
    link("Rule", "https://wiki.example/{rule}"),
  ];
  const ids = ["942100", "942200", "941100"];
  const member = (index: number) => ({ ruleId: ids[index] ?? "" });
  expect(titlesOf(incidentWith(3, {}, member), rules)).toEqual(["All of 94", "Zone", "Shop"]);
  expect(
    titlesOf(
      incidentWith(2, {}, (index) => ({ ruleId: `94210${index}` })),
      rules,
    ),
  ).toEqual(["SQLi", "All of 94", "Zone", "Shop"]);
});

test("a test message shows every link with values of an alert that it could match", () => {
  const samples = sampleLinks(
    [
      link("1", "https://w.example/{zone}/{rule}/{alert}"),
      link("2", "https://w.example/{zone}/{rule}", { zone: [205], rule: ["941*"] }),
      link("3", "https://w.example/{rule}", { rule: ["94*"], kind: ["self"] }),
      ...Array.from({ length: 4 }, () => link("more", "https://w.example/?to={to_ms}")),
    ],
    101,
    NOW,
  );
  expect(samples.slice(0, 3).map(({ url }) => url)).toEqual([
    "https://w.example/101/942100/1",
    "https://w.example/205/941",
    "https://w.example/942100",
  ]);
  expect(samples).toHaveLength(7);
  expect(samples[6]?.url).toBe(`https://w.example/?to=${NOW}`);
  expect(buildTestMessage("chat", NOW, "first").links).toEqual([]);
});
