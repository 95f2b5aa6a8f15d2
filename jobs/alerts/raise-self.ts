/** Raises alerts about Longwatch itself. */

import { gravestSeverity, notifiedChannels } from "#alerts/rules/alert-history.ts";
import { NOBODY, nextAlert, parseDetails, toAlertRecord } from "#alerts/rules/alert-record.ts";
import { addLinks } from "#alerts/rules/message/links.ts";
import { buildSelfMessage, type SelfMessageFacts } from "#alerts/rules/message/self-message.ts";
import { reasonOf, type SelfChange, type SelfRoute, type SelfSubject } from "#alerts/rules/self-alert.ts";
import { type AlertRow, describeAlert, readNewestAlerts } from "#db/alerts/alerts.ts";
import type { Database, Queryable } from "#db/client.ts";
import { inTransaction } from "#db/postgres/transaction.ts";
import type { Log } from "#lib/log.ts";
import { isGraver } from "#model/words.ts";
import type { ZoneFacts } from "#model/zones.ts";
import type { Examined } from "../health/conditions/condition.ts";
import { persistTransition } from "./raise-spike.ts";

export interface SelfAlertDeps {
  readonly database: Database;
  readonly log: Pick<Log, "info" | "error">;
  readonly routeOf: (subject: SelfSubject) => SelfRoute;
}

interface SelfAlert {
  /** The subject of the alert, for the log: `coverage`. */
  readonly about: string;
  readonly fingerprint: string;
  readonly zoneId: number | null;
  /** The newest alert of the fingerprint. */
  readonly row: AlertRow | null;
  /** Null if there is no reason for an alert and none is open. */
  readonly news: SelfChange | null;
  readonly nowMs: number;
  /** More fields for the log. */
  readonly facts?: object;
}

/** The subjects of alerts in the log. */
const LOGGED = {
  service: "service",
  account: "service",
  zone: "coverage",
  channel: "channel",
  destination: "forwarding",
  silence: "silence",
} as const;

/**
 * Raises, updates and resolves the alerts about conditions. Returns the number of transitions written. Several replicas may
 * do this at once: one alert is open per subject, and it is changed only from the transition that was read.
 */
export async function raiseExamined(deps: SelfAlertDeps, examined: readonly Examined[]): Promise<number> {
  let written = 0;
  for (const one of examined) {
    const { condition, subject, fingerprint, row, nowMs } = one;
    const { zoneId = null, key } = subject;
    const facts = key === undefined ? {} : { [condition.of]: key };
    const given = { about: LOGGED[condition.of], fingerprint, zoneId, row, news: newsOf(one), nowMs, facts };
    written += Number(await raiseSelfAlert(deps, given));
  }
  return written;
}

/** Returns what the alert about a condition should say next; null if there is no reason for one and none is open. */
function newsOf({ condition, subject, found, row, severity, isDue, ...moment }: Examined): SelfChange | null {
  const { isOpen, nowMs } = moment;
  if (found === null || (isOpen && found.isOver === true)) {
    if (!isOpen) return null;
    const headline = condition.recovered(subject, moment);
    return { reason: "resolved", severity: condition.severity, headline, openedAtMs: nowMs };
  }
  // Postgres counts microseconds.
  const change = { severity, headline: found.headline, openedAtMs: Math.floor(found.since) };
  if (!isOpen || row === null) return isDue ? { ...change, reason: "first" } : null;
  return { ...change, reason: isGraver(severity, gravestSeverity(toAlertRecord(row))) ? "worse" : "none" };
}

/**
 * Writes the next transition of an alert about Longwatch itself. Returns whether one was written. Without one the
 * headline of an open alert is updated.
 */
export async function raiseSelfAlert(deps: SelfAlertDeps, given: SelfAlert): Promise<boolean> {
  const { database, log, routeOf } = deps;
  const { about, zoneId, row, news, facts } = given;
  if (news === null) return false;
  const { severity } = news;
  const route = routeOf({ zoneId, severity });
  const headline = nameZoneIn(news.headline, zoneId, route.zone);
  const reason = reasonOf(news, row === null ? null : toAlertRecord(row), route);
  if (reason === "none") {
    if (row !== null) await updateHeadline(database, row, headline);
    return false;
  }
  const change = { ...given, news: { ...news, headline }, reason, route };
  if (!(await inTransaction(database, ({ tx }) => write(tx, change)))) return false;
  const logged = { zoneId, severity, headline, ...facts };
  if (reason === "resolved") log.info(logged, `${about} recovered`);
  else log.error(logged, `${about} failed`);
  return true;
}

/** Returns the headline with the zone's name after its number, for headlines that begin with the number. */
function nameZoneIn(headline: string, zoneId: number | null, { zoneName }: ZoneFacts): string {
  const begin = `Zone ${zoneId}:`;
  if (zoneId === null || zoneName === undefined || !headline.startsWith(begin)) return headline;
  return `Zone ${zoneId} (${zoneName}):${headline.slice(begin.length)}`;
}

async function updateHeadline({ db }: Database, row: AlertRow, headline: string): Promise<void> {
  const { message } = parseDetails(row.details);
  if (message === null || message.headline === headline) return;
  await describeAlert(db, row.id, { details: { message: { ...message, headline } }, spikeId: null });
}

interface SelfTransition extends SelfAlert {
  readonly news: SelfChange;
  readonly reason: SelfMessageFacts["reason"];
  readonly route: SelfRoute;
}

/**
 * Writes the transition. A resolve goes to every channel that was notified, any other transition to the channels of
 * the route.
 */
async function write(tx: Queryable, given: SelfTransition): Promise<boolean> {
  const { fingerprint, zoneId, news, nowMs, route } = given;
  const { row, reason } = await findEpisode(tx, given);
  const { severity, headline, openedAtMs } = news;
  const { silencedBy, links, zone } = route;
  const before = row === null ? null : toAlertRecord(row);
  const isEnd = before !== null && reason === "resolved";
  const routed = silencedBy === null ? route.channels : [];
  const recipients = { ...NOBODY, notified: isEnd ? [...notifiedChannels(before)] : routed };
  const occurrence = { id: null, severity, openedAtMs };
  const mute = { silencedBy, mutedBy: null };
  const alert = nextAlert(before, { reason, occurrence, recipients, nowMs, mute });
  const toMessage = (alertId: number) => {
    const facts = { alertId, fingerprint, alert, reason, severity, zoneId, zone, headline };
    return addLinks(buildSelfMessage(facts), links, nowMs);
  };
  const identity = { fingerprint, kind: "self", zoneId, ruleId: null };
  return persistTransition(tx, { row, before, alert, reason, recipients, identity, toMessage });
}

/**
 * Returns the alert that the transition belongs to. An episode that a person has resolved while its cause went on fires
 * again as the same alert: receivers would take a second alert that began at the same moment for a repetition of the
 * first.
 */
async function findEpisode(
  tx: Queryable,
  { fingerprint, row, reason, news }: SelfTransition,
): Promise<Pick<SelfTransition, "row" | "reason">> {
  if (reason !== "first" && row !== null) return { row, reason };
  const newest = (await readNewestAlerts(tx, [fingerprint])).get(fingerprint);
  const isSame =
    newest !== undefined && newest.state === "resolved" && newest.firedAt.getTime() >= news.openedAtMs;
  return isSame ? { row: newest, reason: "worse" } : { row: null, reason };
}
