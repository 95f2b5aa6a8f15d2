import { type AlertRow, describeAlert } from "../../db/alerting/alerts.ts";
import type { Database } from "../../db/client.ts";
import { inTransaction } from "../../db/postgres/transaction.ts";
import type { CoverageNews } from "../../src/alerting/self/coverage-alert.ts";
import type { SelfRoute, SelfSubject } from "../../src/alerting/self/route-self.ts";
import { toAlertRecord } from "../../src/alerting/to-alert-record.ts";
import type { Log } from "../../src/lib/log.ts";
import { type AlertRecord, toldChannels } from "../../src/model/alert-record.ts";
import type { ZoneFacts } from "../../src/model/zones.ts";
import { writeSelfAlert } from "./write-self-alert.ts";

export interface SelfTeller {
  readonly database: Database;
  readonly log: Pick<Log, "info" | "error">;
  readonly routeOf: (subject: SelfSubject) => SelfRoute;
}

export interface SelfTelling {
  /** What it is about, for the log: `coverage`. */
  readonly about: string;
  readonly fingerprint: string;
  readonly zoneId: number | null;
  /** The newest alert of the fingerprint. */
  readonly row: AlertRow | null;
  /** Null where there is nothing to say. */
  readonly news: CoverageNews | null;
  readonly nowMs: number;
  /** More for the log. */
  readonly facts?: object;
}

/**
 * Writes what there is to say of Longwatch itself; true when a transition was written. Without news an open alert's words
 * are brought up to date, and it is told where a silence has kept it back that is over.
 */
export async function tellSelf(
  { database, log, routeOf }: SelfTeller,
  { about, fingerprint, zoneId, row, news, nowMs, facts }: SelfTelling,
): Promise<boolean> {
  if (news === null) return false;
  const { severity, openedAtMs } = news;
  const { channels, silencedBy, links, zone } = routeOf({ zoneId, severity });
  const headline = nameZoneIn(news.headline, zoneId, zone);
  const isOwed = row !== null && silencedBy === null && isUntold(toAlertRecord(row));
  const reason = news.reason === "none" && isOwed ? "repeat" : news.reason;
  if (reason === "none") {
    if (row !== null) await describe(database, row, headline);
    return false;
  }
  const open = reason === "first" ? null : row;
  const change = {
    fingerprint,
    zoneId,
    row: open,
    severity,
    headline,
    openedAtMs,
    nowMs,
    channels,
    silencedBy,
    links,
    zone,
  };
  if (!(await inTransaction(database, ({ tx }) => writeSelfAlert(tx, { ...change, reason })))) return false;
  const logged = { zoneId, severity, headline, ...facts };
  if (reason === "resolved") log.info(logged, `${about} recovered`);
  else log.error(logged, `${about} failed`);
  return true;
}

/** Our own headlines about one zone begin with its number. */
function nameZoneIn(headline: string, zoneId: number | null, { zoneName }: ZoneFacts): string {
  const begin = `Zone ${zoneId}:`;
  if (zoneId === null || zoneName === undefined || !headline.startsWith(begin)) return headline;
  return `Zone ${zoneId} (${zoneName}):${headline.slice(begin.length)}`;
}

/** Fires, and a silence has kept it from everybody. */
function isUntold(alert: AlertRecord): boolean {
  const isKept = alert.transitions.at(-1)?.silencedBy != null;
  return alert.state === "firing" && isKept && toldChannels(alert).size === 0;
}

/** Brings an open alert's words up to date; nobody is paged for it. */
async function describe({ db }: Database, row: AlertRow, headline: string): Promise<void> {
  const { message } = row.details as { message?: { headline: string } };
  if (message === undefined || message.headline === headline) return;
  await describeAlert(db, row.id, { details: { message: { ...message, headline } }, spikeId: null });
}
