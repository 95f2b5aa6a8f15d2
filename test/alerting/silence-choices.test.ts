import { expect, test } from "vitest";
import { SOURCES_RULE, type StoredSources } from "#model/stored-sources.ts";
import { toAlertSpike } from "#stages/alerting/alert-spike.ts";
import { silenceChoices } from "#stages/alerting/message/silence-choices.ts";
import { silenceCommand } from "#stages/alerting/message/silence-command.ts";
import { findAlertSilence, wouldMute } from "#stages/alerting/silence.ts";
import { alertSpike, EVIDENCE, NOW } from "./support.ts";

const finding = {
  members: 41,
  usualMembers: 0,
  windowMinutes: 15,
  count: 41,
  usual: 4.2,
  threshold: 16.3,
  since: 1,
} as const;

function sourcesOf(...findings: Pick<StoredSources["findings"][number], "kind" | "key" | "score">[]) {
  const all = findings.map((one) => ({ ...finding, ...one }));
  return { kind: "rules_per_ip", findings: all, grown: [], rules: [], events: 9, isMasked: false } as const;
}

function choicesOf(top: Partial<typeof EVIDENCE.top>, sources: ReturnType<typeof sourcesOf> | null = null) {
  const spike = toAlertSpike({
    ...alertSpike(sources === null ? {} : { kind: "sources", ruleId: SOURCES_RULE }),
    severity: "error",
    openedAt: new Date(NOW),
    closedAt: null,
    sources: sources === null ? null : { ...sources, findings: [...sources.findings], grown: [], rules: [] },
    evidence: { ...EVIDENCE, top: { ...EVIDENCE.top, ip: [], asn: [], ...top } },
  });
  return { spike, matchers: silenceChoices(spike).map(({ matchers }) => matchers) };
}

const most = (value: string) => [{ value, count: 40, share: 0.8 }];

test("a rule's alert offers the address, then the network, then the rule, then the zone", () => {
  const { spike, matchers } = choicesOf({ ip: most("203.0.113.7"), asn: most("AS64500 Example Hosting") });
  expect(matchers).toEqual([
    { zone: [101], ip: ["203.0.113.7"] },
    { zone: [101], asn: ["AS64500"] },
    { zone: [101], rule: ["942100"] },
    { zone: [101] },
  ]);
  for (const one of matchers) expect(wouldMute(one, spike)).toBe(true);
});

test("a masked address and a pseudonym are not offered, because they would match others", () => {
  for (const value of ["203.0.113.*", "anon-aaaaaaaaaaaaa-bbbbbbbbbbbbb"])
    expect(choicesOf({ ip: most(value) }).matchers).toEqual([
      { zone: [101], rule: ["942100"] },
      { zone: [101] },
    ]);
});

test("an alert about sources offers what fires furthest above its threshold first", () => {
  const { spike, matchers } = choicesOf(
    { asn: most("AS64500") },
    sourcesOf(
      { kind: "ips_per_url", key: "/login", score: 4 },
      { kind: "ips_per_ja4", key: "t13d1516h2_8daaf6152771", score: 6 },
    ),
  );
  expect(matchers).toEqual([
    { zone: [101], ja4: ["t13d1516h2_8daaf6152771"] },
    { zone: [101], url: ["/login"] },
    { zone: [101], asn: ["AS64500"] },
    { zone: [101], kind: ["sources"] },
    { zone: [101] },
  ]);
  for (const one of matchers) expect(wouldMute(one, spike)).toBe(true);
});

test("the command for an address names it, also a network of IPv6", () => {
  const command = (key: string) =>
    silenceCommand(
      7,
      silenceChoices(choicesOf({}, sourcesOf({ kind: "rules_per_ip", key, score: 5 })).spike),
    );
  expect(command("141.213.4.166")).toBe(
    "longwatch silences add --zone 101 --ip=141.213.4.166 --for 2h --reason 'why'",
  );
  expect(command("2001:db8:1:2::/64")).toContain("--ip=2001:db8:1:2::/64 ");
});

test("a value that a channel would change is not in the command, which names the alert and the scope", () => {
  const spike = choicesOf({}, sourcesOf({ kind: "ips_per_url", key: "/a`b", score: 5 })).spike;
  expect(silenceCommand(7, silenceChoices(spike))).toContain("silences add --alert 7 --scope source ");
});

test("an alert about Longwatch or about several zones offers no silence", () => {
  expect(silenceChoices({ kind: "self", zoneId: 101, ruleId: null })).toEqual([]);
  expect(silenceChoices({ kind: "spike", zoneId: null, ruleId: null })).toEqual([]);
  expect(silenceCommand(7, [])).toBeNull();
});

test("a group is muted if each of its members is, and by the silence of the last", () => {
  const member = (ruleId: string) => ({ zoneId: 101, ruleId, severity: "error" as const });
  const group = { kind: "group", zoneId: 101, ruleId: null, severity: "error" as const };
  const silences = ["942100", "931130"].map((rule, id) => {
    return { id, startsAtMs: NOW, expiresAtMs: NOW + 1, matchers: { rule: [rule] } };
  });
  const found = (...rules: string[]) =>
    findAlertSilence(silences, { ...group, members: rules.map(member) }, NOW)?.id ?? null;
  expect(found("942100", "931130")).toBe(1);
  expect(found("942100", "941100")).toBeNull();
});
