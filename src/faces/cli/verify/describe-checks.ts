import { formatWhole, many, showTime } from "#lib/format.ts";
import { ownCommand } from "#lib/process.ts";
import { escapeText, shortenText } from "#lib/text.ts";
import { HOUR_MS } from "#lib/units.ts";
import { horizonAt, type Span } from "#model/horizon.ts";
import type { Check, Difference } from "#operations/verify/check.ts";

const MAX_SHOWN = 40;
const MAX_RULE_CHARS = 60;
const WIDTH = 18;

export function isAlike({ differences, failure }: Check): boolean {
  return differences.length === 0 && failure === null;
}

/** Returns one line per check, followed by its differences and its notes. */
export function describeChecks(
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
          `To copy these hours again: ${ownCommand(`backfill --zone ${zoneId} --from ${toIso(Math.min(...askable))} --to ${toIso(Math.max(...askable) + HOUR_MS)}`)}\n`,
        ]),
    ...(forgotten.size === 0
      ? []
      : [`${many(forgotten.size, "hour")} cannot be copied again: the platform has forgotten them.\n`]),
    ...(all.some(({ correctsItself }) => correctsItself === true) ? [VALUES] : []),
    ...(all.some(({ isUnshown }) => isUnshown === true) ? [UNSHOWN] : []),
  ];
}

function toIso(at: number): string {
  return new Date(at).toISOString().replace(".000Z", "Z");
}
