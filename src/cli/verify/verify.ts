import type { Command } from "commander";
import { readColdEnd } from "../../../db/archive/hot-days.ts";
import type { Database } from "../../../db/client.ts";
import { listKnownZones } from "../../../db/coverage/coverage-report.ts";
import type { Config } from "../../config/config.ts";
import { CountsUnreadableError } from "../../coverage/counts-unreadable-error.ts";
import { EdgeError } from "../../edge/edge-error.ts";
import { toIso } from "../../http/routes/v1/parts.ts";
import { UsageError } from "../../lib/errors.ts";
import { createProgressLine, drawBar } from "../../lib/progress-bar.ts";
import type { Secret } from "../../lib/secret.ts";
import { HOUR_MS } from "../../lib/units.ts";
import { startOfHour } from "../../model/horizon.ts";
import type { Span } from "../../model/span.ts";
import type { Check, Checked } from "../../operations/verify/check.ts";
import { checkCounts } from "../../operations/verify/check-counts.ts";
import { checkDays } from "../../operations/verify/check-days.ts";
import { checkHours } from "../../operations/verify/check-hours.ts";
import { checkIds } from "../../operations/verify/check-ids.ts";
import { checkRecords } from "../../operations/verify/check-records.ts";
import { checkRollUps } from "../../operations/verify/check-roll-ups.ts";
import { checkSeals } from "../../operations/verify/check-seals.ts";
import { checkSources } from "../../operations/verify/check-sources.ts";
import { createProcessIo, writeOut } from "../edge/edge-io.ts";
import { withEdge } from "../edge/open-edge.ts";
import { writeJson } from "../edge/write-json.ts";
import { readSpan, readZone, type SpanFlags } from "../options/read-span.ts";
import { requireZones } from "../options/require-known.ts";
import { withStore } from "../store/open-store.ts";
import { type StoreIo, storeAction, storeCommand } from "../store/store-command.ts";
import { describeChecks, isAlike } from "./describe-checks.ts";

const HELP = `
Runs these checks and changes nothing:
  platform counts   events per rule and hour: the platform against the stored events, for hours the platform still has
  event ids         with --ids: every event of three hours of the span, id by id
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

interface Flags extends SpanFlags {
  readonly ids?: true;
  readonly json?: true;
}

/** `longwatch verify`: compares the stored data with the platform and with itself. */
export function verifyCommand(readConfig: () => Config, io: StoreIo = createProcessIo()): Command {
  return storeCommand("verify", "Compare the stored data with the platform and with itself.", HELP, io)
    .option("--zone <id>", "shield zone (required)")
    .option("--from <time>", "start: ISO-8601, epoch ms or relative such as -24h (required)")
    .option("--to <time>", "end (same formats, or now; required)")
    .option("--ids", "also compare a few hours id by id")
    .option("--json", "print every difference as JSON")
    .action(
      storeAction<Flags>(io, async (flags, read) => {
        const now = io.clock();
        const zoneId = readZone(read, flags, true) ?? 0;
        const asked = readSpan(read, flags);
        read.finish();
        const config = readConfig();
        const { span, checks } = await withStore(config, async (database, databaseUrl) => {
          await requireZones(database.db, config, [zoneId]);
          const span = await widen(database, { zoneId, now, ...asked });
          const ids = flags.ids === true;
          return {
            span,
            checks: await runChecks({ io, config, database, databaseUrl }, { zoneId, now, ids, ...span }),
          };
        });
        if (flags.json === true) await writeJson(io.stdout, toJson(zoneId, now, span, checks));
        else await writeOut(io.stdout, describeChecks(zoneId, { ...span, now }, checks));
        if (!checks.every(isAlike)) io.setExitCode(1);
      }),
    );
}

function toJson(zoneId: number, now: number, { from, to }: Span, checks: readonly Check[]) {
  const dated = checks.map(({ differences, ...check }) => ({
    ...check,
    differences: differences.map(({ at, ...difference }) => ({ at: toIso(at), ...difference })),
  }));
  return { zoneId, now: toIso(now), from: toIso(from), to: toIso(to), checks: dated };
}

/**
 * Extends the span to whole hours, but not beyond the first known hour and the current hour, nor to days that Postgres no
 * longer has.
 */
async function widen(
  { db }: Database,
  { zoneId, now, from, to }: Span & { readonly zoneId: number; readonly now: number },
): Promise<Span> {
  const [zone] = await listKnownZones(db, zoneId);
  const coldEnd = (await readColdEnd(db, zoneId)) ?? 0;
  const first = Math.max(startOfHour(from), zone?.firstHour ?? 0, coldEnd);
  const last = Math.min(Math.ceil(to / HOUR_MS), Math.ceil(now / HOUR_MS)) * HOUR_MS;
  if (first >= last && last <= coldEnd)
    throw new UsageError([
      `--to must be after ${toIso(coldEnd)}: earlier days are only in the archive, which archive verify checks`,
    ]);
  if (zone === undefined || first >= last)
    throw new UsageError([`--zone ${zoneId} must be a zone with stored data in the span`]);
  return { from: first, to: last };
}

interface Surroundings {
  readonly io: StoreIo;
  readonly config: Config;
  readonly database: Database;
  readonly databaseUrl: Secret;
}

interface Asked extends Span {
  readonly zoneId: number;
  readonly now: number;
  readonly ids: boolean;
}

async function runChecks(
  { io, config, database, databaseUrl }: Surroundings,
  { ids, ...asked }: Asked,
): Promise<Check[]> {
  const line = createProgressLine(io.stderr);
  const counts = { name: "platform counts", check: checkCounts };
  const ofPlatform = ids ? [counts, { name: "event ids", check: checkIds }] : [counts];
  const checkCounted = (one: Checked) => checkSources(one, config.alerting.detection.knownSources);
  const ofStore = [checkDays, checkHours, checkSeals, checkRollUps, checkCounted, checkRecords];
  const all = ofPlatform.length + ofStore.length;
  const checks: Check[] = [];
  const checked: Checked = {
    ...asked,
    db: database.db,
    onStep: (label, share) => line.update(`${drawBar((checks.length + share) / all)}  ${label}`),
  };
  try {
    if (config.edge.url === null) checks.push(notAsked());
    else {
      await withEdge(config, databaseUrl, async (edge) => {
        for (const { name, check } of ofPlatform)
          checks.push(await askPlatform(name, () => check(checked, edge)));
      });
    }
    for (const check of ofStore) checks.push(await check(checked));
    return checks;
  } finally {
    line.clear();
  }
}

/** Turns a failure of the platform into a failed check, so that the other checks still run. */
async function askPlatform(name: string, check: () => Promise<Check>): Promise<Check> {
  try {
    return await check();
  } catch (thrown) {
    if (!(thrown instanceof EdgeError) && !(thrown instanceof CountsUnreadableError)) throw thrown;
    return { ...NOTHING, name, failure: `${thrown.code} ${thrown.message}` };
  }
}

function notAsked(): Check {
  return {
    ...NOTHING,
    compared: "nothing",
    notes: ["the platform was not asked, because EDGE_API_URL is not set"],
  };
}

const NOTHING: Check = {
  name: "platform counts",
  sides: ["the platform", "stored"],
  compared: "nothing",
  differences: [],
  notes: [],
  failure: null,
};
