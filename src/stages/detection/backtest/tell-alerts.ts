import { joinIntervalMinutes } from "#model/join-interval.ts";
import type { Severity } from "#model/kinds.ts";
import { isGraver } from "#model/severity.ts";
import type { ReplayedMessage } from "./replayed-message.ts";

/** A spike this soon after the end of the one before reopens its alert. */
const REOPEN_MINUTES = 30;

/** An open incident or rule as a message shows it, at the end of a minute. */
export interface Tellable extends Pick<ReplayedMessage, "severity" | "subject" | "attackers" | "rules"> {
  /** Name that distinguishes it in its zone. */
  readonly name: string;
  /** The beginning of its newest attacker, which is news until a message has it. */
  readonly newest: number;
  /** The least minutes after so many messages before one about news. Default: those of incidents. */
  readonly pauseMinutes?: (messages: number) => number;
}

interface Told {
  readonly incident: number;
  messages: number;
  lastAt: number;
  severity: Severity;
  newest: number;
  endedAt: number | null;
}

/**
 * Keeps which messages a zone's alerts have sent, with the reasons and the pauses of the service (the table of `decide`),
 * for one channel that is notified at once.
 */
export function createTeller(tell: (message: ReplayedMessage) => void) {
  const told = new Map<string, Told>();
  let alerts = 0;

  function send(at: number, reason: ReplayedMessage["reason"], one: Tellable, about: Told): void {
    const { severity, subject, attackers, rules } = one;
    tell({ at, incident: about.incident, reason, severity, subject, attackers, rules });
    about.messages += 1;
    about.lastAt = at;
    about.severity = severity;
    about.endedAt = reason === "resolved" ? at : null;
    about.newest = Math.max(about.newest, one.newest);
  }

  return {
    isTold: (name: string) => told.get(name)?.endedAt === null,
    /** Sends what is due about an open one. */
    update(at: number, one: Tellable): void {
      const before = told.get(one.name);
      if (before === undefined || (before.endedAt !== null && at - before.endedAt > REOPEN_MINUTES)) {
        alerts += 1;
        const { severity } = one;
        const fresh = { incident: alerts, messages: 0, lastAt: at, severity, newest: 0, endedAt: null };
        told.set(one.name, fresh);
        send(at, "first", one, fresh);
      } else if (before.endedAt !== null || isGraver(one.severity, before.severity))
        send(at, "worse", one, before);
      else if (one.newest > before.newest) {
        const { pauseMinutes = joinIntervalMinutes } = one;
        if (at - before.lastAt >= pauseMinutes(before.messages)) send(at, "join", one, before);
      }
    },
    /** Sends what events that came late have shown. */
    announce(at: number, found: Pick<ReplayedMessage, "attackers" | "rules">): void {
      alerts += 1;
      tell({ at, incident: alerts, reason: "late", severity: "info", subject: "incident", ...found });
    },
    end(at: number, one: Tellable): void {
      const about = told.get(one.name);
      if (about !== undefined && about.endedAt === null) send(at, "resolved", one, about);
    },
  };
}
