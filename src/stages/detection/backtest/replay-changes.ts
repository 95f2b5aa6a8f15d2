import { MINUTES_PER_DAY } from "#lib/units.ts";
import { changeIntervalMinutes } from "#model/join-interval.ts";
import type { ActionClass } from "#model/kinds.ts";
import { OPEN_DAYS } from "#model/rule-change.ts";
import { createActionWatch } from "../flips/action-watch.ts";
import { createSilenceWatch } from "../silent-rules/silence-watch.ts";
import type { SourceEvent } from "../sources/source-event.ts";
import { toSourceAddress } from "../sources/source-event.ts";
import type { createTeller, Tellable } from "./tell-alerts.ts";

/** The kinds of changes as messages of a replay call them. */
const KINDS = { flip: "action-change", silent: "silent-rule" } as const;

type Subject = keyof typeof KINDS;

/** One alert of a zone about changed rules: which, and when each was found (minutes since the epoch). */
interface OpenChange {
  openedAt: number;
  readonly rules: Map<string, number>;
}

/** Replays which rules of a zone change their action or fall silent, and sends the messages of the service. */
export function createChangeReplay(teller: ReturnType<typeof createTeller>) {
  const actions = createActionWatch();
  const silences = createSilenceWatch();
  const open: Record<Subject, OpenChange> = {
    flip: { openedAt: 0, rules: new Map() },
    silent: { openedAt: 0, rules: new Map() },
  };
  let counts = new Map<string, number>();
  let current: number | null = null;

  function take({ ruleId, ip }: SourceEvent, action: ActionClass, minute: number): void {
    closeUntil(minute);
    current = minute;
    const rule = ruleId ?? "";
    counts.set(rule, (counts.get(rule) ?? 0) + 1);
    if (actions.take(rule, action, toSourceAddress(ip ?? ""), minute) !== null)
      find("flip", rule, minute + 1);
  }

  function find(subject: Subject, ruleId: string, at: number): void {
    if (open[subject].rules.size === 0) open[subject].openedAt = at;
    open[subject].rules.set(ruleId, at);
  }

  /** Closes the minutes before `minute`, those without events too: a silence is judged every few minutes. */
  function closeUntil(minute: number): void {
    for (let at = current ?? minute; at < minute; at += 1) {
      for (const { ruleId, expected } of silences.take(at, counts))
        if (expected === null) forget("silent", ruleId, at + 1);
        else find("silent", ruleId, at + 1);
      counts = new Map();
      for (const subject of ["flip", "silent"] as const) tell(subject, at + 1);
    }
  }

  function tell(subject: Subject, at: number): void {
    const { openedAt, rules } = open[subject];
    if (rules.size === 0) return;
    if (at - openedAt >= OPEN_DAYS[KINDS[subject]] * MINUTES_PER_DAY)
      for (const ruleId of rules.keys()) forget(subject, ruleId, at);
    else teller.update(at, toTellable(subject, rules));
  }

  function forget(subject: Subject, ruleId: string, at: number): void {
    const { rules } = open[subject];
    const before = toTellable(subject, rules);
    if (rules.delete(ruleId) && rules.size === 0) teller.end(at, before);
  }

  return { take, finish: () => closeUntil((current ?? 0) + 1) };
}

function toTellable(subject: Subject, rules: ReadonlyMap<string, number>): Tellable {
  return {
    name: subject,
    severity: subject === "flip" ? "warning" : "info",
    subject,
    attackers: [],
    rules: [...rules.keys()],
    newest: Math.max(0, ...rules.values()),
    pauseMinutes: changeIntervalMinutes,
  };
}
