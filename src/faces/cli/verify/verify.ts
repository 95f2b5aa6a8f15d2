/** The command that compares stored events with the platform's. */

import { accountsOf } from "#config/config.ts";
import type { Queryable } from "#db/client.ts";
import { UsageError } from "#lib/errors.ts";
import { formatWhole, many, showIso, showTime } from "#lib/format.ts";
import { ownCommand } from "#lib/process.ts";
import { escapeText, shortenText } from "#lib/text.ts";
import { HOUR_MS } from "#lib/units.ts";
import { horizonAt, type Span } from "#model/horizon.ts";
import { toIso } from "#operations/fields.ts";
import type { EdgeClient } from "#platform/edge-client.ts";
import { type Check, type Difference, widenSpan } from "#proof/verify/check.ts";
import { runChecks } from "#proof/verify/check-hours.ts";
import { withEdge } from "../edge/open-edge.ts";
import { readSpan, readZone, requireZones } from "../options/read-options.ts";
import { defineTask, onStore } from "../store/define-task.ts";

const HELP = `
Runs these checks and changes nothing:
  platform counts   events per rule and hour: the platform against the stored events, for hours the platform still has
  event ids         with --ids: every event of three hours of the span, id by id, with its values
  daily counts      the platform's last daily counts against the stored events; a higher count there is only a note
  hour counts       the count of each hour against its events
  seals             each sealed hour against its seal: the same events, each once, with every dimension
  roll-ups          the buckets of minutes, hours and days against the events
  raw records       each event that the list showed first has its record
Days that are only in the archive are left out: archive verify checks them.
The span is extended to whole hours and ends with the current hour. Without EDGE_API_URL the platform is not asked. Exit
code 0; 1 if there is a difference or a check failed.

Examples:
  npm run -s longwatch -- verify --zone 101 --from -24h --to now
  npm run -s longwatch -- verify --zone 101 --from -24h --to now --ids
  npm run -s longwatch -- verify --zone 101 --from 2026-11-01 --to 2026-11-08 --json`;

/** `longwatch verify`: compares the stored data with the platform and with itself. */
export const verifyCommand = defineTask({
  name: "verify",
  help: HELP,
  options: {
    "--zone <id>": "shield zone (required)",
    "--from <time>": "start: ISO-8601, epoch ms or relative such as -24h (required)",
    "--to <time>": "end (same formats, or now; required)",
    "--ids": "also compare a few hours id by id",
  },
  json: "print every difference as JSON",
  read: (flags, read) => ({
    zoneId: readZone(read, flags, true) ?? 0,
    ...readSpan(read, flags),
    ids: flags.ids === true,
  }),
  async run(asked, io, readConfig) {
    const { zoneId } = asked;
    const now = io.clock();
    const { span, checks } = await onStore(io, readConfig(), async ({ config, ...parts }) => {
      const { db } = parts.database;
      await requireZones(db, config, [zoneId]);
      const span = await widen(db, { ...asked, now });
      const { knownSources } = config.alerting.detection;
      const onStep = (label: string, share: number) => parts.onProgress(share, label);
      const { signal } = parts;
      const run = (edge: EdgeClient | null) =>
        runChecks({ ...asked, ...span, now, db, edge, knownSources, onStep, signal });
      const checks = await (accountsOf(config).length === 0
        ? run(null)
        : withEdge(config, parts.databaseUrl, run));
      return { span, checks };
    });
    return {
      facts: toJson(zoneId, now, span, checks),
      text: describeChecks(zoneId, { ...span, now }, checks),
      isFailed: !checks.every(isAlike),
    };
  },
});

function toJson(zoneId: number, now: number, { from, to }: Span, checks: readonly Check[]) {
  const dated = checks.map(({ differences, ...check }) => ({
    ...check,
    differences: differences.map(({ at, ...difference }) => ({ at: toIso(at), ...difference })),
  }));
  return { zoneId, now: toIso(now), from: toIso(from), to: toIso(to), checks: dated };
}

/** @throws {UsageError} if nothing of the span is in Postgres */
async function widen(
  db: Queryable,
  asked: Span & { readonly zoneId: number; readonly now: number },
): Promise<Span> {
  const span = await widenSpan(db, asked);
  if (span.kind === "whole") return { from: span.from, to: span.to };
  throw new UsageError([
    span.kind === "archived"
      ? `--to must be after ${toIso(span.coldEnd)}: earlier days are only in the archive, which archive verify checks`
      : `--zone ${asked.zoneId} must be a zone with stored data in the span`,
  ]);
}

const MAX_SHOWN = 40;
const MAX_RULE_CHARS = 60;
const WIDTH = 18;

function isAlike({ differences, failure }: Check): boolean {
  return differences.length === 0 && failure === null;
}

/** Returns one line per check, followed by its differences and its notes. */
function describeChecks(
  zoneId: number,
  { from, to, now }: Span & { readonly now: number },
  checks: readonly Check[],
): string {
  const differences = checks.reduce((sum, check) => sum + check.differences.length, 0);
  const failed = checks.filter(({ failure }) => failure !== null).length;
  const lines = checks.flatMap(describeCheck).map((line) => `${line}\n`);
  return [
    `zone ${zoneId}, ${showTime(from)} to ${showTime(to)} UTC\n`,
    ...lines,
    differences + failed === 0
      ? "No differences.\n"
      : `${many(differences, "difference")}${failed === 0 ? "" : `, ${many(failed, "check")} failed`}.\n`,
    ...adviseRepair(zoneId, now, checks),
  ].join("");
}

function describeCheck(check: Check): string[] {
  const { name, compared, differences, notes, failure } = check;
  const verdict =
    check.verdict ?? (differences.length === 0 ? "no difference" : many(differences.length, "difference"));
  const head = failure === null ? `${compared}: ${verdict}` : `check failed: ${escapeText(failure)}`;
  const more = differences.length - MAX_SHOWN;
  return [
    `  ${name.padEnd(WIDTH)}${head}`,
    ...differences.slice(0, MAX_SHOWN).map((difference) => `    ${describeDifference(check, difference)}`),
    ...(more > 0 ? [`    and ${formatWhole(more)} more (--json shows all)`] : []),
    ...notes.map((note) => `    ${note}`),
  ];
}

function describeDifference({ sides }: Check, { at, ruleId, expected, found, detail }: Difference): string {
  const rule =
    ruleId === null ? "" : `  rule ${ruleId === "" ? "unknown" : shortenText(ruleId, MAX_RULE_CHARS)}`;
  const counts = `${sides[0]} ${formatWhole(expected)}, ${sides[1]} ${formatWhole(found)}`;
  return `${showTime(at)}${rule}: ${counts}${detail === null ? "" : ` (${escapeText(detail)})`}`;
}

/** Checks whose differences a backfill can repair. */
const COPIED_AGAIN = new Set(["platform counts", "event ids", "seals"]);

const VALUES = `Other values need no command: the service searches the last 72 hours again, also sealed ones, and stores a value
that two searches, at least ten minutes apart, have shown.
`;

const UNSHOWN = `Events that are not on the platform: the service names them as withdrawn once later looks confirm that. If they are not
the zone's own, remove them: ${ownCommand("coverage withdraw --help")}
`;

/** Returns the command that repairs the hours that the platform still has, and the number of hours that it has forgotten. */
function adviseRepair(zoneId: number, now: number, checks: readonly Check[]): string[] {
  const ofEvents = checks.filter(({ name }) => COPIED_AGAIN.has(name));
  const all = ofEvents.flatMap(({ differences }) => differences);
  const hours = all.flatMap(({ at, correctsItself, isUnshown }) =>
    correctsItself === true || isUnshown === true ? [] : [at],
  );
  const askable = hours.filter((at) => at >= horizonAt(now));
  const forgotten = new Set(hours.filter((at) => at < horizonAt(now)));
  return [
    ...(askable.length === 0
      ? []
      : [
          `To copy these hours again: ${ownCommand(`backfill --zone ${zoneId} --from ${showIso(Math.min(...askable))} --to ${showIso(Math.max(...askable) + HOUR_MS)}`)}\n`,
        ]),
    ...(forgotten.size === 0
      ? []
      : [`${many(forgotten.size, "hour")} cannot be copied again: the platform has forgotten them.\n`]),
    ...(all.some(({ correctsItself }) => correctsItself === true) ? [VALUES] : []),
    ...(all.some(({ isUnshown }) => isUnshown === true) ? [UNSHOWN] : []),
  ];
}
