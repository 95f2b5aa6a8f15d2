import path from "node:path";
import type { Cluster } from "./cluster.ts";

const COLUMNS =
  "occurred_at, zone_id, log_id, route, feature, rule_id, ip, ja4, ua, url, asn, country, action, message";

function fileOf(cluster: Cluster, zoneId: number): string {
  return path.join(cluster.serverFiles, `zone-${zoneId}.copy`);
}

/** Writes the rows that the service stored to files of the server, one per session, in key order. */
export async function writeCopyFiles(
  cluster: Cluster,
  from: string,
  zones: readonly number[],
): Promise<void> {
  for (const zoneId of zones) {
    const rows = `select ${COLUMNS} from waf_events where zone_id = ${zoneId} order by occurred_at, log_id`;
    await cluster.query(from, `copy (${rows}) to '${fileOf(cluster, zoneId)}'`);
  }
}

/** Loads those files with COPY by the server itself, one session per zone at once; returns milliseconds. */
export async function runCopyPeer(cluster: Cluster, into: string, zones: readonly number[]): Promise<number> {
  const startedAt = performance.now();
  await Promise.all(
    zones.map((zoneId) =>
      cluster.query(into, `copy waf_events (${COLUMNS}) from '${fileOf(cluster, zoneId)}'`),
    ),
  );
  return performance.now() - startedAt;
}
