/** The message of the weekly digest. */

import { formatBytes } from "#lib/disk.ts";
import { formatDuration, formatNumber, formatWhole, many } from "#lib/format.ts";
import { toLine } from "#lib/text.ts";
import { DAY_MS } from "#lib/units.ts";
import type { AlertMessage } from "#model/alert-message.ts";
import { digest } from "#model/fingerprint.ts";
import { toDay } from "#model/horizon.ts";
import type { DigestLine, WeekFigures } from "#model/weekly-digest.ts";
import { nameZone, type Zones } from "#model/zones.ts";
import { ruleTitle } from "../alert-spike.ts";
import { buildSelfMessage, type SelfMessageFacts } from "./self-message.ts";

const WEEK_MS = 7 * DAY_MS;
/** 1 January 1970 was a Thursday, so the first Monday is four days after the epoch. */
const FIRST_MONDAY_MS = 4 * DAY_MS;

/** Week from Monday to Monday in UTC; epoch ms. */
export interface Week {
  readonly fromMs: number;
  readonly toMs: number;
}

/** Returns the last week that is over at a time. */
export function lastWeek(nowMs: number): Week {
  const toMs = nowMs - ((((nowMs - FIRST_MONDAY_MS) % WEEK_MS) + WEEK_MS) % WEEK_MS);
  return { fromMs: toMs - WEEK_MS, toMs };
}

/** One alert carries the digest of a week to its channels. */
export function weeklyFingerprint(fromMs: number): string {
  return digest(["weekly", toDay(fromMs)]);
}

interface WeeklyFacts extends Pick<SelfMessageFacts, "alertId" | "fingerprint" | "alert" | "reason"> {
  readonly figures: WeekFigures;
  readonly zones: Zones;
}

/** Builds the message of a digest. It is over from the beginning, so that it pages nobody. */
export function buildWeeklyMessage({ figures, zones, ...facts }: WeeklyFacts): AlertMessage {
  const headline = `Week of ${figures.from}: ${describeProof(figures)}`;
  // The headline has the first row.
  const [, ...rows] = describeWeek(figures, zones);
  return {
    ...buildSelfMessage({ ...facts, severity: "info", zoneId: null, headline }),
    kind: "weekly",
    details: rows.flatMap(({ label, lines }) => lines.map(({ text }) => `${label}: ${text}`)),
  };
}

const RULE_CHARS = 60;
/** The figures have the rest. */
const MOST_HANDS = 8;

/** Returns `1,176 of 1,176 hours sealed`, the proof in one line. */
function describeProof({ hours: { passed, sealed, open, gap, unwatched } }: WeekFigures): string {
  if (passed === 0) return "no hour was watched";
  const rest = Object.entries({ open, lost: gap, unwatched }).filter(([, hours]) => hours > 0);
  const others = rest.map(([name, hours]) => `, ${formatWhole(hours)} ${name}`).join("");
  return `${formatWhole(sealed)} of ${many(passed, "hour")} sealed${others}`;
}

/** Returns the digest in words. A row without anything to say is left out. */
export function describeWeek(figures: WeekFigures, zones: Zones): { label: string; lines: DigestLine[] }[] {
  const { changedZones, changedRules, silentRules, fewAddresses, hands } = figures;
  const ofRule = ({ zoneId, ruleId }: { zoneId: number; ruleId: string }, rest: string) => {
    const title = ruleTitle(ruleId);
    const name = ruleId === "" ? "events without a rule" : `rule ${toLine(ruleId, RULE_CHARS)}`;
    const subject = `${nameZone(zoneId, zones[zoneId]?.name)}, ${name}${title === null ? "" : ` (${title})`}`;
    return { text: `${subject}: ${rest}`, page: toRulePage(zoneId, ruleId) };
  };
  const left = hands.length - MOST_HANDS;
  const more = left > 0 ? [plain(`and ${left} more`)] : [];
  const rows = {
    Hours: [{ text: describeProof(figures), page: "/coverage" }],
    Events: [plain(describeEvents(figures))],
    Alerts: [{ text: describeAlerts(figures), page: "/alerts?state=all" }],
    Marks: describeMarks(figures).map(plain),
    Storage: describeStorage(figures).map(plain),
    "Next week":
      hands.length === 0 ? [plain("nothing needs a hand")] : [...hands.slice(0, MOST_HANDS), ...more],
    Zones: changedZones.map(({ zoneId, ...zone }) => ({
      text: `${nameZone(zoneId, zones[zoneId]?.name)}: ${describeChange(zone)}`,
      page: `/?zone=${zoneId}`,
    })),
    "Changed most": changedRules.map((one) =>
      ofRule(one, `${formatNumber(one.total)} events after ${formatNumber(one.before)}`),
    ),
    Silent: silentRules.map((one) => ofRule(one, "no events any more")),
    "Listed only": fewAddresses.map((one) => ofRule(one, `few addresses, ${many(one.alerts, "time")}`)),
  };
  return Object.entries(rows).flatMap(([label, lines]) => (lines.length === 0 ? [] : [{ label, lines }]));
}

const plain = (text: string) => ({ text, page: null });

/** Returns the address of a rule's page in the console. */
export function toRulePage(zoneId: number, ruleId: string): string {
  return `/rules/${zoneId}?rule=${encodeURIComponent(ruleId.toWellFormed())}`;
}

function describeEvents({ events: { total, before } }: WeekFigures): string {
  return `${formatNumber(total)} (${before === null ? "nothing was watched" : formatNumber(before)} the week before)`;
}

const WEEK_HOURS = 168;

function describeChange({ total, before, hoursBefore }: Omit<WeekFigures["changedZones"][number], "zoneId">) {
  if (hoursBefore === 0) return `${many(total, "event")}, nothing is known of the week before`;
  const known =
    hoursBefore < WEEK_HOURS ? ` in the ${many(hoursBefore, "known hour")} of the week before` : "";
  return `${many(total, "event")} after ${formatNumber(before)}${known}`;
}

function describeAlerts({ alerts }: WeekFigures): string {
  const { fired, notified, acknowledged, medianMs, worstMs } = alerts;
  const times =
    medianMs === null || worstMs === null
      ? ""
      : ` after ${formatDuration(medianMs)} (median) and ${formatDuration(worstMs)} (worst)`;
  return `${many(fired, "alert")}, ${formatWhole(notified)} notified, ${formatWhole(acknowledged)} acknowledged${times}`;
}

/** Everything but an attack is a false alert. */
function describeMarks({ marks }: WeekFigures): string[] {
  const sum = (of: WeekFigures["marks"]) => of.reduce((all, { alerts }) => all + alerts, 0);
  const wrong = marks.filter(({ mark }) => mark !== "attack");
  const named = wrong.map(({ mark, alerts }) => `, ${mark} ${formatWhole(alerts)}`).join("");
  return marks.length === 0 ? [] : [`${sum(wrong)} of ${many(sum(marks), "marked alert")} false${named}`];
}

function describeStorage({ storage }: WeekFigures): string[] {
  if (storage === null) return [];
  const { daysKept, freeBytes, dayBytes, daysLeft } = storage;
  const room = daysLeft === null ? "" : `, ${many(daysLeft, "day")} at ${formatBytes(dayBytes)} a day`;
  const disk = freeBytes === null ? [] : [`${formatBytes(freeBytes)} of disk left${room}`];
  return [`${many(daysKept, "day")} of events kept`, ...disk];
}
