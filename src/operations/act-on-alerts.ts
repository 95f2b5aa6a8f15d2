import { readAlert } from "#db/alerting/alert-reports.ts";
import type { AlertRow } from "#db/alerting/alerts.ts";
import type { Database } from "#db/client.ts";
import { writeAuditEntry } from "#db/keys/audit-entries.ts";
import { inTransaction } from "#db/postgres/transaction.ts";
import type { SilenceScope } from "#stages/alerting/message/silence-choices.ts";
import { maskText } from "#stages/archive/mask/mask-text.ts";
import { acknowledgeByHand, resolveAlert } from "./act-on-alert.ts";
import { matchAlert, storeSilence } from "./silences/plan-silence.ts";

/** The same act of a person on several alerts. The note of a silence is its reason. Texts are hostile. */
export interface ActOnAlerts {
  readonly act: "ack" | "resolve" | "silence";
  readonly alertIds: readonly number[];
  readonly by: string;
  /** The actor in the audit trail. By default the name of the person. */
  readonly actor?: string;
  readonly note: string | null;
  readonly atMs: number;
  readonly silence?: {
    readonly durationMs: number;
    readonly scope?: SilenceScope | undefined;
    /** The matchers must not name an address. */
    readonly masked: boolean;
  };
}

/** The result for one alert. `refused`: nothing was changed, and `detail` says why. */
export interface ActedAlert {
  readonly id: number;
  readonly result: "done" | "noted" | "unchanged" | "refused";
  readonly state: AlertRow["state"] | null;
  readonly channels: readonly string[];
  readonly silenceId: number | null;
  readonly detail: string | null;
}

/**
 * Acts on each alert in a transaction of its own, with its audit entry: one that cannot be changed does not stop the
 * others. Alerts that the same matchers mute get one silence.
 */
export async function actOnAlerts(database: Database, wanted: ActOnAlerts): Promise<ActedAlert[]> {
  const silences = new Map<string, number>();
  const acted: ActedAlert[] = [];
  for (const id of new Set(wanted.alertIds))
    acted.push(
      await (wanted.act === "silence" ? silence(database, id, wanted, silences) : act(database, id, wanted)),
    );
  return acted;
}

async function act(database: Database, alertId: number, wanted: ActOnAlerts): Promise<ActedAlert> {
  const { by, actor = by, note, atMs } = wanted;
  const change = wanted.act === "ack" ? acknowledgeByHand : resolveAlert;
  const result = await change(database, { alertId, by, actor, note, atMs });
  if (result.kind === "unknown") return refuse(alertId, `There is no alert ${alertId}.`);
  const { state, kind } = result;
  if (wanted.act === "ack" && kind === "unchanged" && state === "resolved")
    return refuse(
      alertId,
      `Alert ${alertId} is already resolved. Only unresolved alerts can be acknowledged.`,
    );
  const channels = kind === "unchanged" ? [] : result.channels;
  return { id: alertId, result: kind, state, channels, silenceId: null, detail: null };
}

async function silence(
  database: Database,
  alertId: number,
  { by, actor = by, note, atMs, silence: asked }: ActOnAlerts,
  silences: Map<string, number>,
): Promise<ActedAlert> {
  const { durationMs = 0, scope, masked = false } = asked ?? {};
  const row = await readAlert(database.db, alertId);
  const matchers = row === null ? `There is no alert ${alertId}.` : matchAlert(row, { masked }, scope);
  if (typeof matchers === "string") return refuse(alertId, matchers);
  const key = JSON.stringify(matchers);
  let silenceId = silences.get(key);
  if (silenceId === undefined) {
    const wanted = { matchers, expiresAtMs: atMs + durationMs, reason: note ?? "", by, nowMs: atMs };
    silenceId = await inTransaction(database, async ({ tx }) => {
      const { id, audit } = await storeSilence(tx, wanted);
      await writeAuditEntry(tx, { actor: maskText(actor), ...audit });
      return id;
    });
    silences.set(key, silenceId);
  }
  return { id: alertId, result: "done", state: null, channels: [], silenceId, detail: null };
}

function refuse(id: number, detail: string): ActedAlert {
  return { id, result: "refused", state: null, channels: [], silenceId: null, detail };
}
