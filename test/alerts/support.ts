import type { AlertRecord } from "#alerts/rules/alert-record.ts";
import { type AlertSpike, isCalm, isSettled } from "#alerts/rules/alert-spike.ts";
import { decide } from "#alerts/rules/decide.ts";
import { DEFAULT_TIMING } from "#alerts/rules/routing/routing.ts";
import type { LaterMessage } from "#model/alert-message.ts";
import type { NotifyReason } from "#model/kinds.ts";

export const NOW = Date.UTC(2026, 10, 20, 15, 30);

export const EVIDENCE = {
  top: {
    ip: [{ value: "203.0.113.7", count: 40, share: 0.8 }],
    asn: [{ value: "64500", count: 50, share: 1 }],
    country: [{ value: "NL", count: 50, share: 1 }],
    path: [{ value: "/login", count: 30, share: 0.6 }],
    ua: [{ value: "sqlmap/1.8", count: 45, share: 0.9 }],
    ja4: [],
    action: [
      { value: "block", count: 30, share: 0.6 },
      { value: "Blocked", count: 10, share: 0.2 },
      { value: "log", count: 6, share: 0.12 },
      { value: "allow", count: 4, share: 0.08 },
    ],
  },
  sparkline: [0, 0, 3, 50],
};

/** The count of a spike that is over. With half of its threshold it would have settled. */
export const EVERYDAY = 2;

export function alertSpike(over: Partial<AlertSpike> = {}): AlertSpike {
  return {
    id: 1,
    kind: "spike",
    zoneId: 101,
    ruleId: "942100",
    severity: "warning",
    openedAtMs: NOW,
    closedAtMs: null,
    windowMinutes: 3,
    windowCount: over.closedAtMs == null ? 50 : EVERYDAY,
    baseline: 2,
    threshold: 10,
    score: 4.2,
    peak: 60,
    evidence: EVIDENCE,
    ...over,
  };
}

/** Returns the spike as it ends: its count is an everyday one. */
export function endAt(spike: AlertSpike, closedAtMs: number): AlertSpike {
  return { ...spike, closedAtMs, windowCount: EVERYDAY };
}

/** The channels of the routes, and what they do. */
export interface Receivers {
  readonly channels: readonly string[];
  readonly laterMessageOf?: (channel: string) => LaterMessage;
  readonly groupIntervalMs?: number;
  readonly repeatIntervalMs?: ReadonlyMap<string, number>;
}

export interface Moment {
  readonly spike: AlertSpike;
  readonly nowMs: number;
  readonly hasAdvice?: boolean;
  readonly isSilenced?: boolean;
  readonly receivers?: Receivers;
}

/** Applies every transition of one moment; alerts of one fingerprint, oldest first. */
export function play(alerts: AlertRecord[], moment: Moment): NotifyReason[] {
  const { spike, nowMs, hasAdvice = false, isSilenced = false } = moment;
  const { receivers = { channels: ["chat", "pager"] } } = moment;
  const {
    channels,
    groupIntervalMs = DEFAULT_TIMING.groupIntervalMs,
    repeatIntervalMs = new Map(),
  } = receivers;
  const timing = { ...DEFAULT_TIMING, groupWaitMs: 0, groupIntervalMs };
  const said: NotifyReason[] = [];
  for (;;) {
    const alert = alerts.at(-1) ?? null;
    const situation = {
      alert,
      occurrence: { ...spike, isCalm: isCalm(spike), isSettled: isSettled(spike) },
      route: { channels, held: [], repeatIntervalMs, timing },
      mute: { silencedBy: isSilenced ? 1 : null, mutedBy: null },
      hasAdvice,
    };
    const decision = decide(situation, { ...receivers, nowMs, routing: { channels } });
    if (decision === null) return said;
    if (alert !== null && decision.reason !== "first") alerts.pop();
    alerts.push(decision.alert);
    said.push(decision.reason);
    if (said.length > 10) throw new Error(`never done: ${said.join(", ")}`);
  }
}
