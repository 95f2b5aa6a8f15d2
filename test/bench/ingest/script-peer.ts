import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { findProgram } from "../../support/find-program.ts";
import type { Cluster } from "./cluster.ts";

/** A row of jsonb per event, a primary key that detects repeated events, and three indexes to search by. */
export const JSONB_TABLE = `
  create table entries (zone_id integer not null, occurred_at timestamptz not null, log_id text not null,
    entry jsonb not null, primary key (zone_id, occurred_at, log_id));
  create index on entries (zone_id, (entry #>> '{labels,ruleId}'), occurred_at);
  create index on entries (zone_id, (entry #>> '{labels,country}'), occurred_at);
  create index on entries (zone_id, (entry #>> '{labels,status}'), occurred_at);`;

/** A simple script as a comparison: per page one curl, one jq, one psql with staging and a commit. */
const SCRIPT = `
set -euo pipefail
platform=$1 database=$2 zone=$3; shift 3
for day in "$@"; do
  token=
  while :; do
    {
      read -r token
      psql -X -q -1 -v ON_ERROR_STOP=1 "$database" \\
        -c 'create temp table staged (zone_id integer, at bigint, log_id text, entry jsonb) on commit drop' \\
        -c 'copy staged from stdin' \\
        -c 'insert into entries select zone_id, to_timestamp(at / 1000.0), log_id, entry from staged on conflict do nothing'
    } < <(curl -sf --compressed "$platform/shield/event-logs/$zone/$day\${token:+/$token}" |
      jq -r --argjson zone "$zone" \\
        '(.continuationToken // ""), (.logs[] | [$zone, .timestamp, .logId, tojson] | @tsv)')
    [ -n "$token" ] || break
  done
done`;

/** The tools of the chain that this machine lacks. */
export function missingTools(): string[] {
  return ["bash", "curl", "jq", "psql"].filter((tool) => findProgram(tool) === null);
}

/** One chain, zone after zone; returns milliseconds. The table must be there. */
export async function runScriptPeer(
  cluster: Cluster,
  into: string,
  { platformUrl, zones, days }: { platformUrl: string; zones: readonly number[]; days: readonly string[] },
): Promise<number> {
  const startedAt = performance.now();
  for (const zoneId of zones) {
    const args = ["-c", SCRIPT, "chain", platformUrl, cluster.urlOf(into), String(zoneId), ...days];
    await promisify(execFile)("bash", args);
  }
  return performance.now() - startedAt;
}
