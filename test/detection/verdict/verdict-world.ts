import type { NewSpike } from "#db/detection/spikes.ts";
import { VERDICT_CLASSES, VERDICT_FEATURES, type VerdictTime } from "#model/kinds.ts";
import type { StoredVerdict } from "#model/verdict.ts";

/** An open spike of a rule in zone 101. */
export function newSpike(openedAtMs: number, over: Partial<NewSpike> = {}): NewSpike {
  const openedAt = new Date(openedAtMs);
  const at = openedAt.toISOString();
  const top = { ip: [], asn: [], country: [], path: [], ua: [], ja4: [], action: [] };
  return {
    openedAt,
    lastActiveAt: openedAt,
    judgedThrough: openedAt,
    baseline: 0,
    threshold: 10,
    score: 8,
    peak: 50,
    windowCount: 50,
    windowMinutes: 3,
    zoneId: 101,
    ruleId: "942100",
    severity: "warning",
    kind: "spike",
    evidence: {
      from: at,
      to: at,
      total: 0,
      sampled: 0,
      firstEventAt: null,
      lastEventAt: null,
      top,
      sparkline: [],
    },
    ...over,
  };
}

export function verdictOf(look: VerdictTime, judgedAt: number): StoredVerdict {
  return {
    look,
    judgedAt,
    said: "unclear",
    likeliest: "attack",
    odds: 0.4,
    classes: Object.fromEntries(VERDICT_CLASSES.map((one) => [one, 0.2])) as StoredVerdict["classes"],
    isLasting: false,
    title: "Unclear",
    for: ["one", "two"],
    against: null,
    features: Object.fromEntries(
      VERDICT_FEATURES.map((one) => [one, { value: 0.5, adds: 0 }]),
    ) as StoredVerdict["features"],
    counts: {
      events: 1,
      addresses: 1,
      networks: 1,
      paths: 1,
      blocked: 1,
      challenged: 0,
      logged: 0,
      other: 0,
      records: 0,
    },
    since: judgedAt,
    missing: [],
    who: "1 address",
    nextStep: "Look at it.",
    sample: {
      at: judgedAt,
      logId: "l",
      ip: "203.0.113.7",
      method: "GET",
      url: "https://shop.example.test/account?mail=a@b.test",
      ruleId: "942100",
      action: "blocked",
      parameter: "ARGS:mail",
      matched: "a@b.test",
    },
    crawler: null,
    exclusion: null,
  };
}
