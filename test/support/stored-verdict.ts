import { VERDICT_CLASSES, VERDICT_FEATURES } from "#model/kinds.ts";
import type { StoredVerdict } from "#model/verdict.ts";

const AT = Date.UTC(2026, 10, 21, 14, 3);

/** A verdict as judge-verdicts stores it: an attack that is almost certain. */
export function verdictOf(over: Partial<StoredVerdict> = {}): StoredVerdict {
  const { likeliest = "attack", odds = 0.93 } = over;
  const rest = (1 - odds) / (VERDICT_CLASSES.length - 1);
  const classes = VERDICT_CLASSES.map((one) => [one, one === likeliest ? odds : rest]);
  return {
    look: "first",
    judgedAt: AT + 20_000,
    said: "attack",
    likeliest,
    odds,
    classes: Object.fromEntries(classes),
    isLasting: false,
    title: "Probably an attack",
    for: [
      "All 4 addresses are triggering three or more rules on other paths within 24 hours.",
      "None of the 4 addresses is in a network that is usual here.",
    ],
    against: "4 addresses send the events.",
    features: Object.fromEntries(
      VERDICT_FEATURES.map((name) => [name, { value: 0.5, adds: 0 }]),
    ) as StoredVerdict["features"],
    counts: {
      events: 847,
      addresses: 4,
      networks: 2,
      paths: 3,
      blocked: 700,
      challenged: 0,
      logged: 147,
      other: 0,
      records: 200,
    },
    since: AT - 3_600_000,
    missing: ["JA4"],
    who: "4 addresses of 2 networks; none of the networks is usual here.",
    nextStep:
      "147 of 847 events in 1 h got through. Block the 4 addresses, or switch rule 942100 to blocking.",
    sample: {
      at: AT,
      logId: "log-1",
      ip: "203.0.113.7",
      method: "POST",
      url: "https://shop.example/login?next=%2F",
      ruleId: "942100",
      action: "log",
      parameter: "ARGS:user",
      matched: "' or 1=1 --",
    },
    crawler: null,
    exclusion: null,
    ...over,
  };
}
