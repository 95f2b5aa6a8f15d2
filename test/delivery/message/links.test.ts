import { describe, expect, test } from "vitest";
import { addLinks } from "#alerts/rules/message/links.ts";
import type { LinkRule } from "#alerts/rules/routing/routing.ts";
import { toAlertmanagerAlerts } from "#delivery/receivers/channels/alertmanager/alertmanager.ts";
import { toDiscordMessage } from "#delivery/receivers/channels/discord/discord.ts";
import { toEmailMessage } from "#delivery/receivers/channels/email/email.ts";
import { toOpsgenieRequests } from "#delivery/receivers/channels/opsgenie/opsgenie.ts";
import { toPagerDutyEvent } from "#delivery/receivers/channels/pagerduty/pagerduty.ts";
import { toSlackMessage } from "#delivery/receivers/channels/slack/slack.ts";
import { toTeamsMessage } from "#delivery/receivers/channels/teams/teams.ts";
import { renderTerminal } from "#delivery/receivers/channels/terminal/render-terminal.ts";
import { paintPlain } from "#delivery/receivers/channels/terminal/terminal-style.ts";
import { MAX_BODY_BYTES, toWebhookBodies } from "#delivery/receivers/channels/webhook/webhook-body.ts";
import { type AlertMessage, MAX_LINKS } from "#model/alert-message.ts";
import { sample } from "../../support/sample.ts";
import { stringsOf } from "../support/characters.ts";
import { ENDED } from "../support/format-promises.ts";
import { FORMS } from "../support/forms.ts";
import { HOSTILE } from "../support/hostile.ts";
import { incidentWith, messageOf, messageSaying } from "../support/messages.ts";
import { NOW } from "../support/receiver.ts";

const REASONS = ["first", "worse", "repeat", "advice", "acknowledged", "resolved"] as const;
const UNITS = ["💥", "&", "`", '"', "\u{e0041}"];
const stateOf = (reason: AlertMessage["reason"]): Partial<AlertMessage> =>
  reason === "resolved" ? { reason, ...ENDED } : { reason };
/** Links of the maximum length, each ending in its number. */
const LONGEST = Array.from({ length: MAX_LINKS }, (_, index) => ({
  title: `${"Runbook of the shop's payment page, ".repeat(2).slice(0, 39)}${index}`,
  url: `https://wiki.example/${"x".repeat(478)}${index}`,
}));
const TWO = messageOf().links;
const [RUNBOOK = { title: "", url: "" }, DASHBOARD = { title: "", url: "" }] = TWO;
/** As one text, with what escapes the ampersand undone. */
const shown = (bodies: readonly unknown[]) =>
  bodies
    .flatMap(stringsOf)
    .join("\n")
    .replaceAll(/&amp;|\\u0026/g, "&");
/** All that could be live; without what a webhook hands on as it was, and the name of a schema. */
/** These have room for the first link, and show the number of the others. */
const COUNTS_LINKS = ["discord", "pushover"];
const linksOf = (kind: string) => (kind === "pushover" ? 1 : MAX_LINKS);
const addressesIn = (text: string) =>
  (text.match(/\bhttps?:\/\/[^\s"<>|\])]+/g) ?? []).filter(
    (address) => !/^http:\/\/adaptivecards\.io\/|^https:\/\/sqlmap\.org/.test(address),
  );

describe.each(Object.entries(FORMS))("%s", (kind, { render, check }) => {
  const send = (message: AlertMessage) => {
    const bodies = render(message);
    for (const body of bodies) check(body);
    return shown(bodies);
  };

  test("an alert's first word has its links", () => {
    const text = send(messageOf());
    for (const { title, url } of TWO.slice(0, linksOf(kind))) {
      expect(text).toContain(url);
      expect(text).toContain(
        kind === "alertmanager" ? `link_${title.toLowerCase().replace(" ", "_")}` : title,
      );
    }
  });

  test("the most and the longest links are all there, whole", () => {
    const text = send(messageOf({ links: LONGEST }));
    for (const { url } of LONGEST.slice(0, linksOf(kind))) expect(text).toContain(url);
  });

  test("links of eighty parameters each are all there too, however an ampersand is written", () => {
    const links = LONGEST.map(({ title }, index) => {
      return { title, url: `https://wiki.example/?${"a&".repeat(80)}${"x".repeat(310)}${index}` };
    });
    const text = send(messageOf({ links }));
    for (const { url } of links.slice(0, linksOf(kind))) expect(text).toContain(url);
  });

  test("one more is not shown", () => {
    const sixth = { title: "sixth", url: "https://wiki.example/sixth" };
    expect(send(messageOf({ links: [...LONGEST, sixth] }))).not.toContain("sixth");
  });

  describe.each(REASONS)("as %s", (reason) => {
    // Each reason but the first has one of the characters, and each character a reason.
    const isOfFirst = (unit: string) =>
      reason !== "first" && UNITS.indexOf(unit) !== REASONS.indexOf(reason) - 1;
    test.each(sample(UNITS, isOfFirst))(
      "beside any amount of %j they stay within the limits, and none is cut",
      (unit) => {
        const more = { ...stateOf(reason), links: LONGEST };
        const whole = LONGEST.map(({ url }) => url);
        const messages = [
          messageSaying(unit.repeat(20_000), more),
          incidentWith(300, more, (index) => ({ ruleId: `${index}${unit.repeat(60)}` })),
        ];
        for (const message of messages) {
          const addresses = new Set(addressesIn(send(message)));
          expect(whole).toEqual(expect.arrayContaining([...addresses]));
          const isAll = reason === "first" && !COUNTS_LINKS.includes(kind);
          expect(addresses.size).toBeGreaterThanOrEqual(isAll ? MAX_LINKS : 0);
        }
      },
    );

    test("no links leave nothing behind", () => {
      const text = send(messageOf({ ...stateOf(reason), links: [] }));
      expect(text).not.toMatch(/wiki\.example|grafana\.example|link_|\blinks:/i);
    });
  });
});

describe("a hostile rule in a link", () => {
  const RULES: readonly LinkRule[] = [
    { title: "Runbook", url: "https://wiki.example/rules/{rule}?zone={zone}#{rule}", matchers: {} },
    { title: "Search", url: "http://wiki.example/?q={rule}", matchers: {} },
  ];
  const texts = Object.entries(HOSTILE).map(([name, text]) => [name, text.slice(0, 20)] as const);

  test.each(texts)("%s leads to the operator's own pages alone (F71)", (_name, text) => {
    const missing: string[] = [];
    for (const reason of REASONS) {
      const message = addLinks(messageSaying(text, stateOf(reason)), RULES, NOW);
      expect(message.links).toHaveLength(2);
      for (const [kind, { render, check }] of Object.entries(FORMS)) {
        // A webhook hands every text on as it was.
        if (kind === "webhook") continue;
        const bodies = render(message);
        for (const body of bodies) check(body);
        const addresses = new Set(addressesIn(shown(bodies)));
        for (const address of addresses) expect(address).toMatch(/^https?:\/\/wiki\.example\/[\x21-\x7e]*$/);
        if (reason === "first" && addresses.size < Math.min(2, linksOf(kind))) missing.push(kind);
      }
      const { data } = JSON.parse(toWebhookBodies(message, NOW).first);
      expect(data.links).toEqual(message.links);
    }
    expect(missing).toEqual([]);
  });
});

test("each channel shows them in its vendor's own way", () => {
  const message = messageOf();
  const amp = DASHBOARD.url.replaceAll("&", "&amp;");
  expect(toSlackMessage(message).blocks[2]).toEqual({
    type: "section",
    text: {
      type: "mrkdwn",
      verbatim: true,
      text: `<${RUNBOOK.url}|Runbook SQLi> · <${amp}|Zone dashboard>`,
    },
  });
  expect(toPagerDutyEvent(message)).toMatchObject({
    client_url: RUNBOOK.url,
    links: [
      { href: RUNBOOK.url, text: "Runbook SQLi" },
      { href: DASHBOARD.url, text: "Zone dashboard" },
    ],
  });
  expect(toTeamsMessage(message).attachments[0].content.actions).toEqual(
    TWO.map(({ title, url }) => ({ type: "Action.OpenUrl", title, url })),
  );
  const [embed] = toDiscordMessage(message).embeds ?? [];
  expect(embed?.url).toBe(RUNBOOK.url);
  expect(embed?.description).toContain(
    `\n[Runbook SQLi](<${RUNBOOK.url}>) · [Zone dashboard](<${DASHBOARD.url}>)\n`,
  );
  const mail = toEmailMessage(message, "longwatch.example");
  expect(mail.html).toContain(
    `<p><a href="${RUNBOOK.url}">Runbook SQLi</a> · <a href="${amp}">Zone dashboard</a></p>`,
  );
  expect(mail.text).toContain(`\nRunbook SQLi: ${RUNBOOK.url}\nZone dashboard: ${DASHBOARD.url}\n`);
  expect(toOpsgenieRequests(message)[0]?.body["description"]).toMatch(
    /\nRunbook SQLi: https:\S+\nZone dashboard: https:\S+$/,
  );
  const options = { atMs: NOW, posted: null, firingForMs: 60_000 };
  expect(toAlertmanagerAlerts(message, options)[0]).toMatchObject({
    generatorURL: RUNBOOK.url,
    annotations: { link_runbook_sqli: RUNBOOK.url, link_zone_dashboard: DASHBOARD.url },
  });
  expect(JSON.parse(toWebhookBodies(message, NOW).first).data.links).toEqual(TWO);
  expect(renderTerminal(message, { columns: 40, paint: paintPlain })).toContain(
    `│ Runbook SQLi: ${RUNBOOK.url}\n│ Zone dashboard: ${DASHBOARD.url}\n`,
  );
});

test("Alertmanager's annotations for links with equal or unusable names get different names", () => {
  const links = ["Runbook", "runbook!", "攻撃", "攻"].map((title, index) => ({
    title,
    url: `https://wiki.example/${index}`,
  }));
  const options = { atMs: NOW, posted: null, firingForMs: 60_000 };
  expect(toAlertmanagerAlerts(messageOf({ links }), options)[0]?.annotations).toMatchObject({
    link_runbook: "https://wiki.example/0",
    link_runbook_2: "https://wiki.example/1",
    link_3: "https://wiki.example/2",
    link_4: "https://wiki.example/3",
  });
});

test("Discord counts the links that have no room, and cuts the advice before it leaves one out", () => {
  const long = messageOf({
    links: LONGEST,
    advice: { state: "present", text: "x".repeat(3_000), reason: null },
  });
  expect(toDiscordMessage(long).embeds?.[0]?.description).not.toContain("without room here");
  const full = messageSaying("💥".repeat(20_000), { links: LONGEST });
  const description = toDiscordMessage(full).embeds?.[0]?.description ?? "";
  const kept = LONGEST.filter(({ url }) => description.includes(url)).length;
  expect(kept).toBeGreaterThan(0);
  expect(description).toContain(` · ${MAX_LINKS - kept} more do not fit here\n`);
});

test("a webhook's body that must be cut keeps a share for links, each whole, and short texts leave theirs to long ones", () => {
  const ampersands = LONGEST.map(({ title }, index) => ({
    title,
    url: `https://wiki.example/?${"&".repeat(470)}${index}`,
  }));
  const short = { title: "short", url: "https://wiki.example/" };
  const body = toWebhookBodies(
    messageSaying("\u{e0041}".repeat(30_000), { links: [...ampersands.slice(0, 4), short] }),
    NOW,
  ).first;
  expect(Buffer.byteLength(body)).toBeLessThan(MAX_BODY_BYTES);
  const { data } = JSON.parse(body);
  expect(data.links).toEqual([ampersands[0], short]);
});
