import type { AlertRecord, NotifyReason, Transition } from "../model/alert-record.ts";
import type { Occurrence } from "./occurrence.ts";

export interface TransitionFacts {
  readonly reason: NotifyReason;
  readonly spike: Occurrence;
  readonly channels: readonly string[];
  /** The silence in force, whether or not it held this transition back. */
  readonly silencedBy: number | null;
  readonly mutedBy?: Transition["mutedBy"];
  /** Channels that are to hear later. */
  readonly held?: readonly string[];
  /** Of `channels`, those that are not rung. */
  readonly quiet?: readonly string[];
  /** Channels that are to be rung once they may be. */
  readonly waiting?: readonly string[];
  readonly hasAdvice: boolean;
  readonly nowMs: number;
}

/** The alert after one transition. `first` begins a new one whatever came before; a reopened one keeps its key. */
export function nextAlert(alert: AlertRecord | null, facts: TransitionFacts): AlertRecord {
  const { reason, spike, nowMs } = facts;
  const before = reason === "first" ? null : alert;
  const state = stateAfter(before, reason);
  const entry: Transition = {
    transition: (before?.transition ?? 0) + 1,
    at: nowMs,
    reason,
    state,
    severity: spike.severity,
    silencedBy: reason === "resolved" ? null : facts.silencedBy,
    mutedBy: reason === "resolved" ? null : (facts.mutedBy ?? null),
    channels: [...facts.channels],
    held: [...(facts.held ?? [])],
    quiet: [...(facts.quiet ?? [])],
    waiting: [...(facts.waiting ?? [])],
    hasAdvice: facts.hasAdvice,
  };
  return {
    state,
    transition: entry.transition,
    firedAtMs: before?.firedAtMs ?? spike.openedAtMs,
    resolvedAtMs: state === "resolved" ? nowMs : null,
    spikeId: spike.id,
    transitions: [...(before?.transitions ?? []), entry],
  };
}

/** Getting worse leaves an acknowledged alert acknowledged: somebody is on it and is told; firing again does not. */
function stateAfter(before: AlertRecord | null, reason: NotifyReason): AlertRecord["state"] {
  if (reason === "resolved") return "resolved";
  return before === null || before.state === "resolved" ? "firing" : before.state;
}
