import type { Command } from "commander";
import type { EdgeClient } from "#adapters/edge/edge-client.ts";
import type { Config } from "#config/config.ts";
import type { Database } from "#db/client.ts";
import { UsageError } from "#lib/errors.ts";
import { createProgressLine, drawBar } from "#lib/progress-bar.ts";
import type { Secret } from "#lib/secret.ts";
import type { Span } from "#model/horizon.ts";
import { toIso } from "#operations/fields.ts";
import type { Check } from "#operations/verify/check.ts";
import { runChecks } from "#operations/verify/run-checks.ts";
import { widenSpan } from "#operations/verify/widen-span.ts";
import { createProcessIo, writeOut } from "../edge/edge-io.ts";
import { withEdge } from "../edge/open-edge.ts";
import { writeJson } from "../edge/write-json.ts";
import { readSpan, readZone, type SpanFlags } from "../options/read-span.ts";
import { requireZones } from "../options/require-known.ts";
import { withStore } from "../store/open-store.ts";
import { type StoreIo, storeAction, storeCommand } from "../store/store-command.ts";
import { SUMMARIES } from "../summaries.ts";
import { describeChecks, isAlike } from "./describe-checks.ts";

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

interface Flags extends SpanFlags {
  readonly ids?: true;
  readonly json?: true;
}

/** `longwatch verify`: compares the stored data with the platform and with itself. */
export function verifyCommand(readConfig: () => Config, io: StoreIo = createProcessIo()): Command {
  return storeCommand("verify", SUMMARIES.verify, HELP, io)
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
            checks: await runAll({ io, config, database, databaseUrl }, { zoneId, now, ids, ...span }),
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

async function widen(
  { db }: Database,
  asked: Span & { readonly zoneId: number; readonly now: number },
): Promise<Span> {
  const span = await widenSpan(db, asked);
  if (span.kind === "whole") return span;
  throw new UsageError([
    span.kind === "archived"
      ? `--to must be after ${toIso(span.coldEnd)}: earlier days are only in the archive, which archive verify checks`
      : `--zone ${asked.zoneId} must be a zone with stored data in the span`,
  ]);
}

interface Surroundings {
  readonly io: StoreIo;
  readonly config: Config;
  readonly database: Database;
  readonly databaseUrl: Secret;
}

async function runAll(
  { io, config, database, databaseUrl }: Surroundings,
  asked: Span & { readonly zoneId: number; readonly now: number; readonly ids: boolean },
): Promise<Check[]> {
  const line = createProgressLine(io.stderr);
  const onStep = (label: string, share: number) => line.update(`${drawBar(share)}  ${label}`);
  const { knownSources } = config.alerting.detection;
  const run = (edge: EdgeClient | null) =>
    runChecks({ ...asked, db: database.db, edge, knownSources, onStep });
  try {
    return await (config.edge.url === null ? run(null) : withEdge(config, databaseUrl, run));
  } finally {
    line.clear();
  }
}
