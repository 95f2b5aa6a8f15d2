import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { textSettings } from "#delivery/receivers/channel-definition.ts";
import { discord } from "#delivery/receivers/channels/discord/discord.ts";
import { CHANNELS } from "#delivery/receivers/channels/registry.ts";
import { slack } from "#delivery/receivers/channels/slack/slack.ts";
import { buildDigest } from "#delivery/rules/digest-message.ts";
import {
  applyTemplate,
  findTemplateFault,
  listTemplateValues,
  MAX_TEMPLATE_CHARS,
} from "#delivery/rules/message/template.ts";
import { createSecret } from "#lib/secret.ts";
import type { AlertMessage } from "#model/alert-message.ts";
import { startReplyQueue } from "../../platform/support/reply-queue.ts";
import { capabilitiesOf } from "../support/capabilities.ts";
import { stringsOf } from "../support/characters.ts";
import { FORMS } from "../support/forms.ts";
import { HOSTILE } from "../support/hostile.ts";
import { CONSOLE, messageOf, messageSaying, verdictMessage } from "../support/messages.ts";
import { NOW, sendOptions } from "../support/receiver.ts";

/** Every kind whose messages are a text. */
const TEXTS = CHANNELS.filter(({ settings }) => "template" in settings);
const render = (kind: string, template: string, message: AlertMessage) => {
  const { message: written, fault } = applyTemplate(template, message);
  const bodies = FORMS[kind]?.render(written) ?? [];
  for (const body of bodies) FORMS[kind]?.check(body);
  return { fault, bodies, shown: bodies.flatMap(stringsOf).join("\n") };
};
const linesOf = (template: string, message = messageOf()) => {
  const { message: written, fault } = applyTemplate(template, message);
  return fault ?? (written.lines ?? []).map((line) => line.map(({ text }) => text).join(""));
};

test("a template has loops, conditions, filters, times and what the alert is about", () => {
  const template = `{{ statusText }}: {{ subject | truncate: 20 }}
{% if verdict %}{{ verdict.title | upcase }}, odds {{ verdict.odds | times: 100 | round }}{% endif %}
{% for ip in top.ips %}{{ ip.value }} {{ ip.share | times: 100 | round }} %
{% endfor %}since {{ startedAt | time }}`;
  expect(linesOf(template, verdictMessage())).toEqual([
    "CRITICAL firing: zone 101 · rule 9...",
    "PROBABLY AN ATTACK, odds 93",
    "203.0.113.7 72 %",
    "198.51.100.* 12 %",
    "2001:db8::beef 5 %",
    "192.0.2.1 1 %",
    "since 2026-11-21 14:03 UTC",
  ]);
});

test.each(TEXTS.map(({ kind }) => kind))(
  "a %s message has the template's text, its title and its links",
  (kind) => {
    const { shown, fault } = render(kind, "Team edge, look: {{ headline }}", messageOf());
    expect(fault).toBeNull();
    expect(shown).toContain("Team edge, look: ");
    expect(shown).toContain(messageOf().headline);
    expect(shown).toMatch(/CRITICAL firing|rule 942100/);
    expect(shown.replaceAll("&amp;", "&")).toContain(messageOf().links[0]?.url);
    expect(shown).not.toMatch(/Got through|longwatch silences|Advice from/);
  },
);

test.each(Object.entries(HOSTILE))(
  "values that say %s are harmless on every channel (F71)",
  (_name, text) => {
    const template = "{{ headline }} {{ ruleId | prepend: '>' }}\n{{ advice.text }} {{ top.paths[0].value }}";
    for (const { kind } of TEXTS) {
      const { shown } = render(kind, template, messageSaying(text));
      const named = shown
        .replaceAll(CONSOLE, "")
        .replaceAll(/https?:\/\/adaptivecards\.io\/schemas\/\S+/g, "");
      expect(named).not.toMatch(/:\/\/|www\.|mailto:/i);
      expect(named.replaceAll("\u2060", "")).not.toMatch(/[\p{Cf}\p{Co}\p{Zl}\p{Zp}\p{Cs}]/u);
    }
  },
);

test("the operator's own words keep the chat's markup, and values never have any", () => {
  const { shown } = render("slack", "<!here> *{{ headline }}*", messageOf({ headline: "<!here> *x*" }));
  expect(shown).toContain("<!here> *&lt;!here&gt; ∗x∗*");
});

test.each(["x", "💥", "&", "`", "_", "@a "])(
  "any amount of %j stays within every vendor's limits",
  (unit) => {
    for (const { kind } of TEXTS)
      for (const template of [
        "{{ headline }}",
        `${unit.repeat(1_000)}{% for ip in top.ips %}{{ ip.value }}\n{% endfor %}`,
      ])
        expect(render(kind, template, messageSaying(unit.repeat(20_000))).fault).toBeNull();
  },
);

test.each([
  ["{{ headline | nope }}", "undefined filter: nope, line:1, col:1"],
  ["a\n{% if x %}", "tag {% if x %} not closed, line:2, col:1"],
  ["{{ headline", 'output "{{ headline" not closed, line:1, col:1'],
  ["x\n{{ headlin }}", "no message has headlin: did you mean headline?, line:2, col:4"],
  ["{{ verdict.titel }}", "no message has titel, line:1, col:4"],
  ["{{ top.ips[0].wert }}", "no message has wert, line:1, col:4"],
  ["{{ constructor.name }}", "no message has constructor, line:1, col:4"],
  ["{% include '/etc/passwd' %}", 'tag "include" not found, line:1, col:1'],
  ["{% render 'x' %}", 'tag "render" not found, line:1, col:1'],
  ["{% layout 'x' %}", 'tag "layout" not found, line:1, col:1'],
  ["{% echo headline %}", 'tag "echo" not found, line:1, col:1'],
  ["{{ headline | raw }}", "undefined filter: raw, line:1, col:1"],
  ["{{ 'now' | date: '%s' }}", "undefined filter: date, line:1, col:1"],
  ["x".repeat(MAX_TEMPLATE_CHARS + 1), "parse length limit exceeded"],
])("%j is refused with its line", (template, fault) => {
  expect(findTemplateFault(template)).toContain(fault);
});

test("a setting with a faulty template is refused by what is wrong", () => {
  const [issue] = textSettings.template.safeParse("{{ shop.b }}").error?.issues ?? [];
  expect(issue?.message).toBe("must be a template in Liquid: no message has shop, line:1, col:4");
});

test.each([
  [
    "{% for i in (1..9000) %}{% for j in (1..9000) %}{% if i == j %}y{% endif %}{% endfor %}{% endfor %}",
    /limit/,
  ],
  [
    "{% assign x = 'xxxxxxxxxx' %}{% for i in (1..60) %}{% assign x = x | append: x %}{% endfor %}{{ x }}",
    /limit/,
  ],
  ["{% for i in (1..99999999) %}{{ i }}{% endfor %}", /limit/],
  ["{% if kind == 'nothing' %}x{% endif %}", /its text is empty/],
])("%s ends soon, and the standard message is sent", (template, fault) => {
  const before = performance.now();
  const applied = applyTemplate(template, messageOf());
  expect(applied.fault).toMatch(fault);
  expect(applied.message).toEqual(messageOf());
  // Ten times the limit, for a machine under load.
  expect(performance.now() - before).toBeLessThan(2_000);
});

test.each(["{{ verdict.constructor }}", "{{ top.__proto__.toString }}", "{{ ips.at }}"])(
  "%s reaches no property that a message does not have itself",
  (template) => {
    expect(linesOf(`[${template}]`, verdictMessage())).toEqual(["[]"]);
  },
);

test("digests and the weekly digest have no template", () => {
  const digest = buildDigest([messageOf(), messageOf({ alertId: 8 })], "key", capabilitiesOf("slack").rate);
  for (const message of [digest, messageOf({ kind: "weekly" })])
    expect(applyTemplate("{{ headline }}", message)).toEqual({ message, fault: null });
});

test.each([
  ["{{ headline }} for you", /for you/, /^$/],
  ["{% if kind == 'x' %}x{% endif %}", /Acknowledge/, /^TEMPLATE_FAILED: .*its text is empty$/],
])("a channel with the template %j sends, and says if it failed", async (template, text, note) => {
  const receiver = await startReplyQueue();
  receiver.reply(200, "ok");
  const url = createSecret(`${receiver.url}/x`);
  const options = { name: "it", url, template, clock: () => NOW, network: { allowPrivateNetworks: true } };
  const sent = await slack.open(options).send(messageOf(), sendOptions());
  await receiver.close();
  expect(receiver.requests[0]?.body).toMatch(text);
  expect(sent.note ?? "").toMatch(note);
});

test("kinds that send fields have no template", () => {
  const kinds = CHANNELS.filter(({ settings }) => !("template" in settings)).map(({ kind }) => kind);
  expect(kinds).toEqual(["terminal", "webhook", "pagerduty", "alertmanager"]);
  expect(
    discord.schema.safeParse({ kind: "discord", name: "it", url: "https://x.example", template: "x" })
      .success,
  ).toBe(true);
});

test("docs/template-values.txt lists every value (vitest -u rewrites it)", async () => {
  const file = new URL("../../../docs/template-values.txt", import.meta.url);
  await expect(`${listTemplateValues().join("\n")}\n`).toMatchFileSnapshot(file.pathname);
  expect(readFileSync(file, "utf8")).toContain("\nverdict.title\n");
});
