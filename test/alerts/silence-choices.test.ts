import { expect, test } from "vitest";
import { toAlertSpike } from "#alerts/rules/alert-spike.ts";
import { attackerChoice, silenceChoices, silenceCommand } from "#alerts/rules/message/commands.ts";
import { findAlertSilence, wouldMute } from "#alerts/rules/silence.ts";
import { SOURCES_RULE, type StoredAttacker, type StoredSources } from "#model/stored-sources.ts";
import { attackerOf, sourcesOf as toSources } from "./incident.ts";
import { alertSpike, EVIDENCE, NOW } from "./support.ts";

type Finding = Pick<StoredAttacker, "kind" | "key" | "score">;
const sourcesOf = (...findings: Finding[]) => toSources(findings.map((one) => attackerOf(one.key, 0, one)));

function choicesOf(top: Partial<typeof EVIDENCE.top>, sources: StoredSources | null = null) {
  const spike = toAlertSpike({
    ...alertSpike(sources === null ? {} : { kind: "sources", ruleId: SOURCES_RULE }),
    severity: "error",
    openedAt: new Date(NOW),
    closedAt: null,
    sources,
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

test("an incident with several attackers offers a silence that mutes all of them", () => {
  const { spike, matchers } = choicesOf(
    { asn: most("AS64500") },
    sourcesOf(
      { kind: "ips_per_url", key: "/login", score: 4 },
      { kind: "ips_per_ja4", key: "t13d1516h2_8daaf6152771", score: 6 },
    ),
  );
  // Neither the JA4 nor the path mutes both attackers.
  expect(matchers).toEqual([
    { zone: [101], asn: ["AS64500"] },
    { zone: [101], kind: ["sources"] },
    { zone: [101] },
  ]);
  for (const one of matchers) expect(wouldMute(one, spike)).toBe(true);
});

test("several addresses are silenced together, and a further one still notifies", () => {
  const keys = ["203.0.113.7", "203.0.113.8"];
  const attackers = keys.map((key) => ({ kind: "rules_per_ip" as const, key, score: 5 }));
  const { spike, matchers } = choicesOf({}, sourcesOf(...attackers));
  expect(matchers[0]).toEqual({ zone: [101], ip: keys });
  expect(wouldMute({ ip: keys }, spike)).toBe(true);
  const another = { ...attackers[0], key: "203.0.113.9" } as Finding;
  expect(wouldMute({ ip: keys }, choicesOf({}, sourcesOf(...attackers, another)).spike)).toBe(false);
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

test("an incident is muted if each of its active attackers is, and by the silence of the last", () => {
  const silences = ["203.0.113.7", "203.0.113.8"].map((ip, id) => {
    return { id, startsAtMs: NOW, expiresAtMs: NOW + 1, matchers: { ip: [ip] } };
  });
  const found = (...keys: string[]) => {
    const { spike } = choicesOf(
      { ip: most("203.0.113.7") },
      sourcesOf(...keys.map((key) => ({ kind: "rules_per_ip" as const, key, score: 5 }))),
    );
    return findAlertSilence(silences, spike, NOW)?.id ?? null;
  };
  expect(found("203.0.113.7", "203.0.113.8")).toBe(1);
  expect(found("203.0.113.7", "203.0.113.9")).toBeNull();
  expect(found("203.0.113.7")).toBe(0);
});

test.each([
  ["rules_per_ip", "203.0.113.9", { ip: ["203.0.113.9"] }],
  ["rules_per_ip", "2001:db8:1:2::/64", { ip: ["2001:db8:1:2::/64"] }],
  ["rules_per_ip", "203.0.113.*", null],
  ["ips_per_ja4", "t13d1516h2_8daaf6152771", { ja4: ["t13d1516h2_8daaf6152771"] }],
  ["ips_per_asn", "AS64500 Example Hosting", { asn: ["AS64500"] }],
  ["ips_per_url", "/login", { url: ["/login"] }],
  ["ips_per_ua", "sqlmap/1.8", { ua: ["sqlmap/1.8"] }],
  ["ips_per_ua", "sqlmap/*", null],
] as const)("the silence of an attacker of %s %s matches that attacker alone: %j", (kind, key, matchers) => {
  expect(attackerChoice(101, { kind, key })?.matchers ?? null).toEqual(
    matchers === null ? null : { zone: [101], ...matchers },
  );
});
