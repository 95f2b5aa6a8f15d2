import fc from "fast-check";
import { notifiedChannels } from "#alerts/rules/alert-history.ts";
import { type AlertSpike, toAlertSpike } from "#alerts/rules/alert-spike.ts";
import type { Context } from "#alerts/rules/assess.ts";
import { DEFAULT_TIMING, type Routing } from "#alerts/rules/routing/routing.ts";
import { findSilence, type Silence } from "#alerts/rules/silence.ts";
import { HOUR_MS, MINUTE_MS } from "#lib/units.ts";
import { type AdviceRow, ANSWER_KEEPS_MS } from "#model/advice.ts";
import { fingerprintOf } from "#model/fingerprint.ts";
import { SOURCES_RULE, type StoredAttacker } from "#model/stored-sources.ts";
import { attackerOf, incidentOf } from "./incident.ts";
import { createPureService } from "./pure-service.ts";
import { alertSpike, NOW } from "./support.ts";

const CHANNELS = ["chat", "board", "pager"];
const RULES = ["1", "2", "3", "4", "5"];
const SEVERITIES = ["info", "warning", "error", "critical"] as const;
export const TIMING = { ...DEFAULT_TIMING, groupWaitMs: 0 };
/** The pager is notified of errors and critical alerts; the board of every alert, except at night. */
const ROUTING: Routing = {
  channels: CHANNELS,
  root: {
    matchers: {},
    channels: ["chat", "board"],
    timing: TIMING,
    continue: false,
    routes: [
      {
        matchers: { severity: ["error", "critical"] },
        channels: ["pager", "chat", "board"],
        timing: { ...TIMING, repeatIntervalMs: HOUR_MS },
        continue: false,
        routes: [],
      },
    ],
  },
  links: [],
  fewAddresses: 3,
  inhibitions: [],
  quietHours: [
    {
      timeZone: "UTC",
      days: ["mon", "tue", "wed", "thu", "fri", "sat", "sun"],
      fromMinute: 22 * 60,
      toMinute: 6 * 60,
      channels: ["board"],
      matchers: {},
      critical: "tell",
    },
  ],
};

/** The possible next steps. */
export const step = fc.record({
  ms: fc.oneof(
    { weight: 3, arbitrary: fc.integer({ min: 0, max: 20_000 }) },
    { weight: 3, arbitrary: fc.integer({ min: 0, max: 20 * MINUTE_MS }) },
    { weight: 1, arbitrary: fc.integer({ min: 0, max: 6 * HOUR_MS }) },
  ),
  act: fc.constantFrom(
    "open",
    "open",
    "attack",
    "attack",
    "close",
    "grade",
    "calm",
    "silence",
    "hush",
    "ack",
    "resolve",
    "advise",
    "wait",
  ),
  rules: fc.subarray(RULES, { minLength: 1 }),
  severity: fc.constantFrom(...SEVERITIES),
});
type Step = typeof step extends fc.Arbitrary<infer One> ? One : never;

/** Rules that attack, people, silences and time around the decisions. */
export function createLifecycleWorld() {
  const service = createPureService();
  const spikes = new Map<string, AlertSpike>();
  let silences: Silence[] = [];
  const asks: AdviceRow[] = [];
  /** Spikes whose alert a person has resolved. */
  const closed = new Set<number>();
  let attackers: StoredAttacker[] = [];
  let [nowMs, ids] = [NOW, 0];
  const incidentNow = () => {
    const incident = spikes.get(SOURCES_RULE);
    return incident?.closedAtMs === null ? incident : undefined;
  };
  /** A further address attacks: the incident opens, or the address joins it. */
  const attack = () => {
    const open = incidentNow();
    const since = Math.floor((nowMs - NOW) / MINUTE_MS);
    attackers = [
      ...(open === undefined ? [] : attackers),
      attackerOf(`203.0.113.${attackers.length}`, since),
    ];
    const id = open?.id ?? (ids += 1);
    closed.delete(id);
    const stored = { ...alertSpike({ id }), ...incidentOf(...attackers), closedAt: null };
    const spike = toAlertSpike({ ...stored, openedAt: new Date(open?.openedAtMs ?? nowMs) });
    spikes.set(SOURCES_RULE, { ...spike, severity: open?.severity ?? spike.severity });
  };

  const change = (rules: readonly string[], to: (spike: AlertSpike) => AlertSpike) => {
    for (const rule of rules) {
      const spike = spikes.get(rule);
      if (spike !== undefined && spike.closedAtMs === null) spikes.set(rule, to(spike));
    }
  };
  const context = (): Context => {
    const firing = [...spikes.values()].filter(({ closedAtMs }) => closedAtMs === null);
    const laterMessageOf = (name: string) =>
      name === "pager" ? "same-incident" : name === "board" ? "update-in-place" : "post-anew";
    return { nowMs, routing: ROUTING, asks, silences, firing, laterMessageOf };
  };
  const isSilenced = (spike: AlertSpike) => findSilence(silences, spike, nowMs) !== null;
  const pick = (rules: readonly string[]) =>
    service.alerts.filter(({ message }) => message.ruleId === null || rules.includes(message.ruleId));

  return {
    service,
    spikes,
    closed,
    isSilenced,
    now: () => nowMs,
    act({ ms, act, rules: drawn, severity }: Step): void {
      nowMs += ms;
      // The incident is treated as the fifth rule is. The first two are rules that its attackers trigger.
      const rules = drawn.includes("5") && act !== "open" ? [...drawn, SOURCES_RULE] : drawn;
      if (act === "attack") attack();
      const grade = SEVERITIES.indexOf(severity);
      if (act === "open")
        for (const ruleId of rules)
          if (spikes.get(ruleId)?.closedAtMs !== null)
            spikes.set(
              ruleId,
              alertSpike({
                id: (ids += 1),
                ruleId,
                severity,
                openedAtMs: nowMs,
                memberOf: ruleId < "3" ? (incidentNow()?.id ?? null) : null,
              }),
            );
      if (act === "close") change(rules, (spike) => ({ ...spike, closedAtMs: nowMs }));
      if (act === "grade")
        change(rules, (spike) =>
          SEVERITIES.indexOf(spike.severity) < grade ? { ...spike, severity } : spike,
        );
      if (act === "calm")
        change(rules, (spike) => ({ ...spike, windowCount: spike.windowCount < spike.threshold ? 50 : 3 }));
      if (act === "silence") {
        const expiresAtMs = nowMs + 40 * MINUTE_MS;
        silences = [
          ...silences,
          { id: silences.length + 1, startsAtMs: nowMs, expiresAtMs, matchers: { rule: rules } },
        ];
      }
      if (act === "hush") silences = [];
      if (act === "ack") for (const alert of pick(rules)) service.acknowledge(alert, nowMs);
      if (act === "resolve")
        for (const alert of pick(rules).filter(({ record }) => record.state !== "resolved")) {
          closed.add(spikes.get(alert.message.ruleId ?? "")?.id ?? 0);
          for (const member of alert.message.members ?? []) {
            const fingerprint = fingerprintOf({ kind: "spike", ...member });
            const own = service.alerts.findLast((one) => one.fingerprint === fingerprint);
            if (
              own !== undefined &&
              own.record.state !== "resolved" &&
              notifiedChannels(own.record).size === 0
            )
              closed.add(spikes.get(member.ruleId)?.id ?? 0);
          }
          service.resolve(alert, nowMs);
        }
      if (act === "advise")
        for (const ruleId of rules)
          asks.push({
            zoneId: 101,
            ruleId,
            askedAtMs: nowMs - ANSWER_KEEPS_MS / 2,
            success: true,
            errorKey: null,
          });
    },
    tick(): void {
      service.tick([...spikes.values()], context());
    },
    /** Lets the attacks continue and time pass until no mute, quiet hours or interval delays a notification. */
    settle(): void {
      silences = [];
      change([...RULES, SOURCES_RULE], (spike) => ({ ...spike, windowCount: 50 }));
      for (let count = 0; count < 3; count += 1) {
        nowMs += 10 * MINUTE_MS;
        this.tick();
      }
    },
    /** Everything ends, and every hold as well. */
    end(): void {
      change([...RULES, SOURCES_RULE], (spike) => ({ ...spike, closedAtMs: nowMs }));
      for (let count = 0; count < 3; count += 1) {
        this.tick();
        nowMs += 5 * HOUR_MS;
      }
    },
  };
}

export type LifecycleWorld = ReturnType<typeof createLifecycleWorld>;
