import { alertOf, endTogether, findTakeOvers } from "#alerts/rules/decide-all.ts";
import type { VerdictEvidence } from "#detection/rules/verdict/evidence.ts";
import { MINUTE_MS } from "#lib/units.ts";
import { attackerIdOf, fingerprintOf } from "#model/fingerprint.ts";
import { isChangeKind } from "#model/rules.ts";
import { leansBenign, type StoredVerdict } from "#model/verdict.ts";
import { type AlertRecord, holdsAlert } from "../alert-record.ts";
import { type AlertSpike, type StoredSpike, toAlertSpike } from "../alert-spike.ts";
import { type Decisions, decideAll } from "../decide-all.ts";
import { type Routing, routeToAll } from "../routing/routing.ts";
import type { ReplayedMessage } from "./replay-incidents.ts";
import { createVerdictReplay, type JudgedSpike, type RecordedEvent } from "./replay-verdicts.ts";

/** The one channel that a replay sends to. Every message is a new one. */
const CHANNEL = "replay";

/** Minutes [from, to) whose events come at their end. */
export interface LateMinutes {
  readonly from: number;
  readonly to: number;
}

/** A spike at the end of a minute: open, or closed in it. */
export interface ReplayedSpike extends StoredSpike, Pick<JudgedSpike, "attackers" | "since"> {}

export interface AlertReplay {
  readonly take: (event: RecordedEvent, minute: number) => void;
  /** Decides which messages are sent at the end of a minute. `spikes` are all that are open, and those that closed in it. */
  readonly decide: (minute: number, spikes: readonly ReplayedSpike[]) => void;
  /** Returns whether an alert has not ended, so that every minute is decided. */
  readonly isOpen: () => boolean;
  /** Returns whether by the latest verdict on a spike it is likelier that nobody attacks. */
  readonly isBenign: (id: number) => boolean;
  readonly finish: () => readonly ReplayedMessage[];
}

/**
 * Replays the alerts of a zone: verdicts, severities, mutes and messages are decided by the functions that the service decides by,
 * for one channel that is notified of everything.
 */
export function createAlertReplay({
  judge,
  fewAddresses,
  late = null,
}: {
  readonly judge: ((evidence: VerdictEvidence) => StoredVerdict) | undefined;
  readonly fewAddresses: number;
  readonly late?: LateMinutes | null | undefined;
}): AlertReplay {
  const routing: Routing = { ...routeToAll([CHANNEL]), fewAddresses };
  const messages: ReplayedMessage[] = [];
  const alerts = new Map<string, { readonly number: number | null; readonly record: AlertRecord }>();
  const taken = new Map<number, string>();
  const verdicts = judge === undefined ? null : createVerdictReplay(judge);
  const lateNews = createLateNews(late, (spike) => {
    const alert = alerts.get(fingerprintOf(spike));
    return alert !== undefined && alert.number !== null && holdsAlert(alert.record, spike);
  });
  // Spikes that have closed and whose alerts have not ended.
  let closed = new Map<string, ReplayedSpike>();
  let count = 0;
  let firstMinutes: ReadonlyMap<number, number> = new Map();
  const recordOf = (fingerprint: string) => alerts.get(fingerprint)?.record ?? null;

  function readVerdicts(spikes: readonly ReplayedSpike[], minute: number) {
    const bySpike = new Map<number, readonly StoredVerdict[]>();
    for (const spike of spikes) {
      if (verdicts === null || isChangeKind(spike.kind)) continue;
      // A rule that was alone before keeps what was said about it.
      if (spike.memberOf != null) bySpike.set(spike.id, verdicts.knownOf(spike.id));
      if (spike.memberOf != null) continue;
      const { id, attackers, since, closedAt, peak } = spike;
      const ruleId = spike.kind === "sources" ? null : spike.ruleId;
      const openedAt = Math.ceil(spike.openedAt.getTime() / MINUTE_MS);
      const judged = { id, ruleId, attackers, since, openedAt, peak, isOpen: closedAt === null };
      bySpike.set(id, verdicts.verdictsOf(judged, minute));
    }
    return bySpike;
  }

  /** Returns the spikes with the alerts that incidents have taken over from rules. */
  function takeOver(found: readonly AlertSpike[]): AlertSpike[] {
    const known = found.map((spike) => ({ ...spike, takesOver: taken.get(spike.id) ?? null }));
    for (const { spike, member } of findTakeOvers(known, (one) => recordOf(fingerprintOf(one)))) {
      const fingerprint = fingerprintOf(member);
      const before = alerts.get(fingerprint);
      if (before === undefined) continue;
      taken.set(spike.id, fingerprint);
      alerts.set(fingerprint, { ...before, record: { ...before.record, spikeId: spike.id } });
    }
    return known.map((spike) => ({ ...spike, takesOver: taken.get(spike.id) ?? null }));
  }

  function decisionsAt(minute: number, spikes: readonly ReplayedSpike[]) {
    const nowMs = minute * MINUTE_MS;
    const ended = endTogether(
      spikes.map((spike) => toAlertSpike(spike)),
      nowMs,
    );
    const verdicts = readVerdicts(spikes, minute);
    return decideAll(takeOver(ended), {
      nowMs,
      routing,
      asks: [],
      silences: [],
      firstMinutes,
      verdicts,
      recordOf,
    });
  }

  function decideAt(minute: number, given: readonly ReplayedSpike[]): void {
    // The newest spike of each rule and incident decides.
    const newest = new Map(closed);
    for (const spike of given) {
      const known = newest.get(fingerprintOf(spike));
      if (known === undefined || known.id <= spike.id) newest.set(fingerprintOf(spike), spike);
    }
    const spikes = [...newest.values()];
    let decisions = decisionsAt(minute, spikes);
    while ((verdicts?.judgeAgain(findLacking(decisions), minute) ?? 0) > 0)
      decisions = decisionsAt(minute, spikes);
    const { context, decideOn } = decisions;
    const replayed = new Map(spikes.map((spike) => [spike.id, spike]));
    for (const { spike, assessment, decision } of decisions.deciding.map(decideOn)) {
      const fingerprint = alertOf(spike);
      const before = alerts.get(fingerprint);
      if (decision === null) continue;
      const isSent = decision.notified.length > 0;
      const known = decision.reason === "first" ? null : (before?.number ?? null);
      const number = known === null && isSent ? (count += 1) : known;
      alerts.set(fingerprint, { number, record: decision.alert });
      if (number === null || !isSent) continue;
      const { attackers = [] } = replayed.get(spike.id) ?? {};
      const verdict = context.verdicts?.get(spike.id)?.at(-1);
      messages.push({
        at: minute,
        incident: number,
        // The service calls the first message of a channel so, whatever the reason.
        reason: known === null ? "first" : decision.reason,
        severity: assessment.spike.severity,
        subject: spike.kind === "sources" ? "incident" : isChangeKind(spike.kind) ? "flip" : "rule",
        attackers,
        rules: rulesOf(spike, decisions.spikes),
        ...(verdict !== undefined && { verdict }),
      });
    }
    keepClosed(replayed, decisions);
  }

  /** Keeps the closed spikes that later decisions need: those whose alerts have not ended, and the members of these. */
  function keepClosed(
    replayed: ReadonlyMap<number, ReplayedSpike>,
    { spikes, deciding, context }: Decisions,
  ): void {
    const goOn = new Set(context.waitingSums);
    for (const spike of deciding) {
      const alert = recordOf(alertOf(spike));
      if (alert !== null && alert.state !== "resolved") goOn.add(spike.id);
    }
    closed = new Map();
    for (const { id, memberOf } of spikes) {
      const spike = replayed.get(id);
      if (spike === undefined || spike.closedAt === null) continue;
      if (goOn.has(id) || (memberOf != null && goOn.has(memberOf))) closed.set(fingerprintOf(spike), spike);
      else verdicts?.forget(id);
    }
  }

  function sayLate(news: News, at: number): void {
    count += 1;
    messages.push({ at, incident: count, reason: "late", severity: "info", subject: "incident", ...news });
  }

  return {
    take(event, minute) {
      if (firstMinutes.size === 0) firstMinutes = new Map([[0, minute]]);
      verdicts?.take(event, minute);
    },
    decide(minute, spikes) {
      const news = lateNews(minute, spikes);
      if (news === "waits") return;
      if (news !== null) sayLate(news, late?.to ?? minute);
      decideAt(minute, spikes);
    },
    isOpen: () => closed.size > 0,
    isBenign(id) {
      const latest = verdicts?.knownOf(id).at(-1);
      return latest !== undefined && leansBenign(latest);
    },
    finish() {
      const news = lateNews(Number.POSITIVE_INFINITY, []);
      if (news !== null && news !== "waits") sayLate(news, late?.to ?? 0);
      return messages;
    },
  };
}

/** Returns the spikes that are judged again before their messages. */
function findLacking({ deciding, decideOn }: Decisions): number[] {
  return deciding.map(decideOn).flatMap(({ spike, needsVerdict }) => (needsVerdict ? [spike.id] : []));
}

/** The rule and those that are part of its alert; the members of an incident; the changed rules. */
function rulesOf(spike: AlertSpike, all: readonly AlertSpike[]): string[] {
  const members = all.filter(({ memberOf }) => memberOf === spike.id).map(({ ruleId }) => ruleId);
  if (spike.rules !== undefined) return [...spike.rules];
  return [...new Set(spike.kind === "sources" ? members : [spike.ruleId, ...members])];
}

type News = Pick<ReplayedMessage, "attackers" | "rules">;

/**
 * Returns a function that waits for the end of the minutes whose events come late. At their end it returns what they have shown and nobody was
 * notified of; null for every other minute, and if there is nothing. What goes on is decided from then on.
 */
function createLateNews(late: LateMinutes | null, wasNotified: (spike: ReplayedSpike) => boolean) {
  const known = new Set<string>();
  const attackers = new Map<string, News["attackers"][number]>();
  const rules = new Set<string>();
  let isOver = false;
  return (minute: number, spikes: readonly ReplayedSpike[]): News | "waits" | null => {
    if (late === null || isOver) return null;
    for (const spike of spikes) {
      if (isChangeKind(spike.kind)) continue;
      const isKnown = minute <= late.from;
      for (const one of spike.attackers)
        if (isKnown) known.add(attackerIdOf(one));
        else if (!known.has(attackerIdOf(one))) attackers.set(attackerIdOf(one), one);
      const isAlone = spike.kind !== "sources" && spike.memberOf == null;
      if (isAlone && !isKnown && !wasNotified(spike)) rules.add(spike.ruleId);
    }
    if (minute <= late.from) return null;
    if (minute <= late.to) return "waits";
    isOver = true;
    return attackers.size + rules.size === 0
      ? null
      : { attackers: [...attackers.values()], rules: [...rules] };
  };
}
