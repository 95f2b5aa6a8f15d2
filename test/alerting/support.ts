import { type AlertSpike, isCalm } from "../../src/alerting/alert-spike.ts";
import { nextAlert } from "../../src/alerting/next-alert.ts";
import { notifyReason } from "../../src/alerting/notify-reason.ts";
import { pickChannels } from "../../src/alerting/pick-channels.ts";
import { findDue, type Listeners, NOTHING_DUE } from "../../src/alerting/plan-ringing.ts";
import { type AlertRecord, type NotifyReason } from "../../src/model/alert-record.ts";

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
    windowCount: 50,
    baseline: 2,
    threshold: 10,
    score: 4.2,
    peak: 60,
    evidence: EVIDENCE,
    ...over,
  };
}

export interface Moment {
  readonly spike: AlertSpike;
  readonly nowMs: number;
  readonly hasAdvice?: boolean;
  readonly isSilenced?: boolean;
  readonly listeners?: Listeners;
}

/** Everything there is to say at one moment, applied; alerts of one fingerprint, oldest first. */
export function play(alerts: AlertRecord[], moment: Moment): NotifyReason[] {
  const { spike, nowMs, hasAdvice = false, isSilenced = false } = moment;
  const { listeners = { channels: ["chat", "pager"] } } = moment;
  const occurrence = { ...spike, isCalm: isCalm(spike) };
  const said: NotifyReason[] = [];
  for (;;) {
    const alert = alerts.at(-1) ?? null;
    const due = alert === null ? NOTHING_DUE : findDue(alert, listeners, occurrence, nowMs);
    const reason = notifyReason({ alert, spike: occurrence, hasAdvice, isSilenced, nowMs, due });
    if (reason === "none") return said;
    const told = pickChannels({ reason, alert, spike: occurrence, listeners, due, isSilenced, nowMs });
    const silencedBy = isSilenced ? 1 : null;
    const next = nextAlert(alert, { reason, spike, ...told, silencedBy, hasAdvice, nowMs });
    if (alert !== null && reason !== "first") alerts.pop();
    alerts.push(next);
    said.push(reason);
    if (said.length > 10) throw new Error(`never done: ${said.join(", ")}`);
  }
}
