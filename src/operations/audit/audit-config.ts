import { hash } from "node:crypto";
import type { Config } from "#config/config.ts";
import type { Alerting } from "#config/file/config-file.ts";
import type { Database } from "#db/client.ts";
import { readLatestAct, writeAuditEntry } from "#db/keys/audit-trail.ts";
import { isObject } from "#lib/json.ts";
import { whoRuns } from "#lib/process.ts";

const ACTION = "config.changed";

/**
 * Writes an audit entry with the settings that all replicas share, if they differ from those of the last entry. The
 * entry contains only whether a secret is set. Replicas that start at once may each write the same entry.
 */
export async function auditConfig({ db }: Database, config: Config, alerting: Alerting): Promise<void> {
  const { edge, spikeZ, advicePerHour, retention, fallback } = config;
  const settings = {
    platform: edge.url === null ? "emulator" : new URL(edge.url).origin,
    zones: edge.zones,
    requestsPerSecond: edge.requestsPerSecond,
    schedule: alerting.schedule,
    spikeZ,
    advicePerHour,
    retention,
    fallback,
    host: config.http.host,
    trustedProxies: config.http.trustedProxies,
    areMetricsPublic: config.http.areMetricsPublic,
    allowsPrivateWebhooks: config.channels.allowPrivate,
    adviceOnRequest: config.adviceOnRequest,
    hasPseudonymKey: config.pseudonymKey !== null,
    channels: alerting.channels.map(({ name, kind }) => `${name} (${kind})`),
    destinations: alerting.destinations.map(({ name, kind }) => `${name} (${kind})`),
    // Routes and detection settings may be long and may name people.
    alerting: hash("sha256", JSON.stringify(alerting), "hex").slice(0, 16),
  };
  const digest = hash("sha256", JSON.stringify(settings), "hex").slice(0, 16);
  const latest = await readLatestAct(db, ACTION);
  if (isObject(latest?.details) && latest.details["digest"] === digest) return;
  const details = { ...settings, digest };
  await writeAuditEntry(db, { actor: whoRuns(), action: ACTION, subject: "configuration", details });
}
