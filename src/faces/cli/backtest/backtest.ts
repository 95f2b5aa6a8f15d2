/** The command that replays past counts or events through the detector, and its report. */

import { createWriteStream } from "node:fs";
import { rename, rm } from "node:fs/promises";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import type { Command } from "commander";
import type { Config } from "#config/config.ts";
import { listKnownSources, toKnownSource } from "#db/detection/exclusions.ts";
import { listKnownZones } from "#db/proof/coverage-report.ts";
import { replaySources, replayStore, type StoredReplay } from "#detection/exclusions/replay-store.ts";
import type { BacktestAlert, BacktestReport } from "#detection/rules/backtest/backtest.ts";
import { DEFAULT_Z, FLOOR } from "#detection/rules/detection-settings.ts";
import { createProcessIo, writeJson, writeOut } from "#faces/cli/edge/edge-io.ts";
import { requireRule, requireZones } from "#faces/cli/options/read-options.ts";
import { withStore } from "#faces/cli/store/open-store.ts";
import { type StoreIo, storeAction, storeCommand } from "#faces/cli/store/store-command.ts";
import { formatDecimal, formatWhole, many, showTime } from "#lib/format.ts";
import { shortenText } from "#lib/text.ts";
import { DAY_MS, MINUTE_MS } from "#lib/units.ts";
import type { ExclusionProposal } from "#model/advice.ts";
import type { Span } from "#model/horizon.ts";
import { FEW_ADDRESSES } from "#model/ip-address.ts";
import { ENDINGS } from "#model/words.ts";
import { type BacktestFlags, readBacktestFlags } from "./read-backtest-flags.ts";
import { type EventsReport, replayEvents } from "./replay-events.ts";
import { replayFile } from "./replay-file.ts";

const HELP = `
The file has the header series,timestamp,count and one row per series and minute with events. The timestamp is the epoch
second at which the minute starts. Minutes without events need no row. If the rows of a series are not in ascending
order, the command sorts them in memory. Counts before --start are history. An alert lasts from the minute that reached
its threshold to the last minute that was not quiet. The 15 quiet minutes that close an alert are not counted.

With --events the file has one row per event and the header zone,timestamp,rule_id,ip,asn,country,ja4,ua,url,action. The
timestamps are epoch seconds, ascending within a zone. A file whose name ends in .gz is decompressed. Rules and sources
are judged minute by minute, as the service does. A file that begins with { is NDJSON: one
entry of the platform's list per line, with its zone, and values of a search's row in fields. --alerts then gets one row per message:
zone,at,incident,reason,severity,subject,attackers,rules,verdict,odds,exclusion. With --late the events of a time come at its end, as after an
outage: one message of the reason late names what they have shown.

With --sources the stored events of a zone, or of all, go through the source series: the messages that would have been sent
since --from, with the known sources of now. The week before is history. Only events of days that are in Postgres are
read (LONGWATCH_HOT_DAYS); the first of these days raises nothing.

Examples:
  npm run -s longwatch -- backtest --counts counts.csv --alerts alerts.csv
  npm run -s longwatch -- backtest --counts counts.csv --z 4.5 --start 2026-11-08 --json
  npm run -s longwatch -- backtest --events events.csv.gz --alerts alerts.csv
  npm run -s longwatch -- backtest --events entries.ndjson.gz --alerts alerts.csv
  npm run -s longwatch -- backtest --events events.csv --alerts alerts.csv --late 2026-11-20T02:05Z/2026-11-20T04:20Z
  npm run -s longwatch -- backtest --sources --from -7d
  npm run -s longwatch -- backtest --zone 101 --rule 942100 --days 14 --z 3`;

/** `longwatch backtest`: shows the alerts that the detector would have raised, at any z, for a file of counts or the stored history. */
export function backtestCommand(readConfig: () => Config, io: StoreIo = createProcessIo()): Command {
  return storeCommand("backtest", HELP, io)
    .option("--counts <file>", "CSV file of counts per series and minute")
    .option("--events <file>", "CSV or NDJSON file of events; .gz is decompressed")
    .option("--late <from/to>", "with --events: hold the events of this time back until its end")
    .option("--sources", "replay the stored events through the source series")
    .option("--from <time>", "with --sources: the start, such as -7d (default: -7d)")
    .option("--start <time>", "start of the replay: epoch seconds or ISO-8601 (default: the first count)")
    .option("--end <time>", "end of the replay, exclusive (default: the last count)")
    .option("--zone <id>", "replay the stored counts of this shield zone")
    .option("--rule <id>", "only this rule of the zone (default: all)")
    .option("--days <count>", "replay this many days up to now (default: 7)")
    .option("--z <number>", `deviations above a rule's usual peaks (default: ${DEFAULT_Z})`)
    .option("--floor <count>", `the fewest events that a spike needs (default: ${FLOOR})`)
    .option("--alerts <file>", "write every minute in alert, or with --events every message, to this file")
    .option("--json", "print the summary and the alerts as JSON")
    .action(
      storeAction<BacktestFlags>(io, async (flags, read) => {
        const now = io.clock();
        const asked = readBacktestFlags(read, flags, now);
        if (asked === undefined) return;
        const { source, ...policy } = { ...asked, fewAddresses: FEW_ADDRESSES };
        if (source.kind === "events") {
          const replayed = await replayEvents(
            source.path,
            { ...policy, late: source.late, actions: readConfig().alerting.actions },
            io.stderr,
          );
          await show(replayed, flags, policy, io);
          return;
        }
        if (source.kind === "sources") {
          await show(await replayStored(readConfig(), source), flags, policy, io);
          return;
        }
        const report =
          source.kind === "file"
            ? await replayFile(source.path, { ...policy, ...source }, io.stderr)
            : await replay(readConfig(), { ...source, nowMs: now }, policy);
        if (flags.alerts !== undefined) await writeAlertMinutes(flags.alerts, report.alerts);
        if (flags.json === true) await writeJson(io.stdout, toReportJson(report, policy));
        else await writeOut(io.stdout, describeReport(report, policy));
      }),
    );
}

async function show(
  replayed: EventsReport,
  { alerts, json }: BacktestFlags,
  policy: { z: number; floor: number },
  io: StoreIo,
): Promise<void> {
  if (alerts !== undefined) await writeMessages(alerts, replayed);
  if (json === true) await writeJson(io.stdout, toEventsJson(replayed, policy));
  else await writeOut(io.stdout, describeEvents(replayed));
}

function replayStored(
  config: Config,
  { zoneId, span }: { zoneId: number | undefined; span: Span },
): Promise<EventsReport> {
  return withStore(config, async ({ db }) => {
    if (zoneId !== undefined) await requireZones(db, config, [zoneId]);
    const zones = await listKnownZones(db, zoneId);
    const known = [
      ...config.alerting.detection.knownSources,
      ...(await listKnownSources(db)).map(toKnownSource),
    ];
    const messages: EventsReport["messages"][number][] = [];
    let rows = 0;
    for (const one of zones) {
      const replayed = await replaySources(db, one.zoneId, span, known);
      rows += replayed.events;
      messages.push(...replayed.messages.map((message) => ({ zone: String(one.zoneId), ...message })));
    }
    return { zones: zones.length, rows, zoneDays: (zones.length * (span.to - span.from)) / DAY_MS, messages };
  });
}

function replay(
  config: Config,
  asked: StoredReplay,
  policy: { z: number; floor: number },
): Promise<BacktestReport> {
  return withStore(config, async ({ db }) => {
    await requireZones(db, config, [asked.zoneId]);
    if (asked.ruleId !== undefined) await requireRule(db, asked.zoneId, asked.ruleId);
    const [report] = await replayStore(db, asked, [policy]);
    return report;
  });
}

/** Writes `series,timestamp` for every minute in alert. */
function writeAlertMinutes(path: string, alerts: readonly BacktestAlert[]): Promise<void> {
  return writeLines(path, minuteLines(alerts));
}

function* minuteLines(alerts: readonly BacktestAlert[]): Generator<string> {
  yield "series,timestamp\n";
  for (const { series, fromMinute, toMinute } of alerts) {
    const name = toCell(series);
    let text = "";
    for (let minute = fromMinute; minute < toMinute; minute += 1) text += `${name},${minute * 60}\n`;
    yield text;
  }
}

/** Writes one row per message that would have been sent; `at` is the epoch second of its minute's end. */
function writeMessages(path: string, { messages }: EventsReport): Promise<void> {
  return writeLines(path, lines(messages));
}

function* lines(messages: EventsReport["messages"]): Generator<string> {
  yield "zone,at,incident,reason,severity,subject,attackers,rules,verdict,odds,exclusion\n";
  for (const { zone, at, incident, reason, severity, subject, attackers, rules, verdict } of messages) {
    const names = attackers.map(({ kind, key }) => `${kind}=${encodeName(key)}`).join(" ");
    const members = rules.map(encodeName).join(" ");
    const said = verdict === undefined ? "," : `${verdict.said},${verdict.odds.toFixed(3)}`;
    const exclusion = toExclusion(verdict?.exclusion ?? null);
    yield `${toCell(zone)},${at * 60},${incident},${reason},${severity},${subject},${names},${members},${said},${exclusion}\n`;
  }
}

/** Returns the clauses of a proposal as `rule path method parameter`, one after the other; `*` stands for any. */
function toExclusion(proposal: ExclusionProposal | null): string {
  if (proposal?.form !== "narrow") return "";
  return proposal.clauses
    .map(({ ruleIds, template, method, parameter }) =>
      [ruleIds.join("+"), template, method, parameter]
        .map((part) => encodeName(part ?? "*").replaceAll(";", "%3B"))
        .join(" "),
    )
    .join(";");
}

/** Encodes what separates names and cells, as in a URL. Keys are hostile text. */
function encodeName(text: string): string {
  return text.replaceAll(/[\s%,"=]|\p{Cc}/gu, (character) => encodeURIComponent(character.toWellFormed()));
}

/** Writes the lines to a file, which appears only when it is complete. */
async function writeLines(path: string, lines: Iterable<string>): Promise<void> {
  const unfinished = `${path}.${process.pid}.tmp`;
  try {
    await pipeline(Readable.from(lines), createWriteStream(unfinished, { flags: "wx" }));
    await rename(unfinished, path);
  } catch (cause) {
    await rm(unfinished, { force: true });
    throw cause;
  }
}

/** Returns the text as a cell of a CSV file. */
function toCell(text: string): string {
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

const SHOWN = 20;
const MAX_SERIES_CHARS = 48;

interface Judged {
  readonly z: number;
  readonly floor: number;
}

/** Returns the summary and the strongest alerts as text. */
export function describeReport(report: BacktestReport, { z, floor }: Judged): string {
  const { series, seriesDays, rows, events, alerts, alertMinutes, alertsPerSeriesDay, bySeverity } = report;
  const span = `${showTime(report.fromMinute * MINUTE_MS)} to ${showTime(report.toMinute * MINUTE_MS)} UTC`;
  const facts: [string, string][] = [
    ["span", span],
    ["series", `${formatWhole(series)}, ${formatWhole(seriesDays)} series-days`],
    ["counts", `${many(events, "event")} in ${many(rows, "minute")}`],
    [
      "alerts",
      `${formatWhole(alerts.length)} at z ${z}${floor === FLOOR ? "" : `, floor ${floor}`}, ${alertsPerSeriesDay.toFixed(4)} per series-day`,
    ],
    ["", `${bySeverity.critical} critical, ${bySeverity.error} error, ${bySeverity.warning} warning`],
    ["", `${report.newRules} for new rules`],
    ["in alert", many(alertMinutes, "minute")],
  ];
  const summary = facts.map(([name, fact]) => `${name.padEnd(10)}${fact}\n`).join("");
  const strongest = alerts.toSorted((a, b) => b.episode.score - a.episode.score).slice(0, SHOWN);
  if (strongest.length === 0) return summary;
  const more = alerts.length > SHOWN ? `the ${SHOWN} strongest` : "alerts, the strongest first";
  return `${summary}\n${more}:\n${strongest.map((alert) => `  ${describeAlert(alert)}\n`).join("")}`;
}

function describeAlert({ series, fromMinute, toMinute, isOpen, episode }: BacktestAlert): string {
  const lasted = `${many(toMinute - fromMinute, "minute")}${isOpen ? ", still open" : ""}`;
  const severity = episode.kind === "new-rule" ? "new rule" : episode.severity;
  const compared = `${formatWhole(episode.peak)} in ${episode.windowMinutes} minutes against usual ${formatDecimal(episode.usual)}`;
  // An alert fires at the end of the minute that reached the threshold, or in the service up to a minute earlier.
  return `${showTime((fromMinute + 1) * MINUTE_MS)}  ${severity.padEnd(8)}  ${shortenText(series, MAX_SERIES_CHARS)}  ${compared}, ${lasted}`;
}

/** Returns the report as JSON. */
export function toReportJson(report: BacktestReport, { z, floor }: Judged) {
  const { fromMinute, toMinute, alerts, ...facts } = report;
  return {
    z,
    floor,
    from: isoOf(fromMinute),
    to: isoOf(toMinute),
    ...facts,
    alerts: alerts.map(({ series, fromMinute: from, toMinute: to, isOpen, episode }) => ({
      series,
      from: isoOf(from),
      to: isoOf(to),
      isOpen,
      severity: episode.severity,
      kind: episode.kind,
      windowMinutes: episode.windowMinutes,
      peak: episode.peak,
      usual: episode.usual,
      threshold: episode.threshold,
      score: episode.score,
    })),
  };
}

function isoOf(minute: number): string {
  return new Date(minute * MINUTE_MS).toISOString();
}

const MAX_NAME_CHARS = 48;
const NAMED = 3;
const PAGING = new Set(["error", "critical"]);

/** Returns the summary and the newest messages that page as text. */
export function describeEvents({ zones, zoneDays, rows, messages }: EventsReport): string {
  const alerts = messages.filter(({ reason }) => reason === "first");
  const incidents = alerts.filter(({ subject }) => subject === "incident").length;
  const paging = messages.filter(
    ({ severity, reason }) => PAGING.has(severity) && !ENDINGS.some((end) => end === reason),
  );
  const facts: [string, string][] = [
    ["zones", `${formatWhole(zones)}, ${zoneDays.toFixed(1)} zone-days`],
    ["events", formatWhole(rows)],
    ["alerts", `${many(incidents, "incident")}, ${many(alerts.length - incidents, "rule")} alone`],
    ["messages", formatWhole(messages.length)],
    ["paging", `${formatWhole(paging.length)} of severity error and above`],
  ];
  const summary = facts.map(([name, fact]) => `${name.padEnd(10)}${fact}\n`).join("");
  if (paging.length === 0) return summary;
  const shown = paging.slice(-SHOWN).map((message) => `  ${describeMessage(message)}\n`);
  return `${summary}\nthe newest that page:\n${shown.join("")}`;
}

function describeMessage({
  zone,
  at,
  incident,
  reason,
  severity,
  attackers,
  rules,
}: EventsReport["messages"][number]) {
  const names = attackers.length > 0 ? attackers.map(({ kind, key }) => `${kind} ${key}`) : rules;
  const named = names.slice(0, NAMED).map((name) => shortenText(name, MAX_NAME_CHARS));
  const rest = names.length - named.length;
  const more = rest > 0 ? ` and ${formatWhole(rest)} more` : "";
  const where = `${shortenText(zone, MAX_NAME_CHARS)}/${incident}`;
  return `${showTime(at * MINUTE_MS)}  ${severity.padEnd(8)}  ${reason.padEnd(8)}  ${where}  ${named.join(", ")}${more}`;
}

export function toEventsJson({ messages, ...facts }: EventsReport, policy: { z: number; floor: number }) {
  return {
    ...policy,
    ...facts,
    messages: messages.map(({ at, ...message }) => ({
      ...message,
      at: new Date(at * MINUTE_MS).toISOString(),
    })),
  };
}
