/** An event in the format that was asked for: native, as the platform's, or OCSF. */

import { isObject, parseJson } from "#lib/json.ts";
import { type ActionStates, foldAction } from "#model/action-class.ts";
import type { EventFormat } from "#model/kinds.ts";
import {
  HTTP_ACTIVITY,
  HTTP_PROFILE,
  known,
  METHODS,
  OBSERVED,
  OCSF_VERSION,
  type OcsfSettings,
  OTHER,
  OUTCOMES,
  PRODUCT,
  SEVERITY_IDS,
  toSource,
  toUrl,
  UNKNOWN,
} from "#model/ocsf.ts";
import { findHeader, readMatch } from "#model/record-parts.ts";
import { maskAddress } from "../mask.ts";
import { readRecord } from "./find-records.ts";
import { REQUEST_ID, restoreTexts, toListEntry, toNativeRow, type ZonedEvent } from "./to-row.ts";

/**
 * Returns an event as the JSON text of one object. `raw`: the entry of the platform's list, as received if the record is
 * there. `event`: the row of a search with the zone's id. `ocsf`: an HTTP Activity.
 */
export function formatEvent(
  format: EventFormat,
  event: ZonedEvent,
  record: Buffer | undefined,
  options: OcsfOptions,
): string {
  const { isMasked = false } = options;
  if (format === "raw") return toListEntry(event, record, isMasked);
  if (format === "ocsf") return toOcsf(event, record, options);
  return JSON.stringify({ zoneId: event.zoneId, ...toNativeRow(event, record, isMasked) });
}

interface OcsfOptions extends OcsfSettings {
  /** Leaves out the record and the request's id, and shortens the address. */
  readonly isMasked?: boolean;
}

/**
 * Returns an event as the JSON text of an HTTP Activity of OCSF 1.8 with the profile security_control. `raw_data` is the
 * record as received; `unmapped` has the texts and numbers of the record that OCSF has no attribute for. Values that are not known are
 * left out. `toOcsfLine` computes the same in SQL without a record.
 */
export function toOcsf(
  event: ZonedEvent,
  record: Buffer | undefined,
  { vendor, actions, isMasked = false }: OcsfOptions,
): string {
  const parts = isMasked ? NO_RECORD : read(record);
  const { log, labels } = parts;
  const fields = restoreTexts(event.fields, log);
  const method = toText(labels["method"]) || event.method;
  const id = method === "" ? 0 : (METHODS.get(method) ?? OTHER);
  const trigger = readMatch(log["TriggerMatch"]);
  const ocsf = {
    ...HTTP_ACTIVITY,
    activity_id: id,
    activity_name: id === OTHER ? method : undefined,
    type_uid: HTTP_ACTIVITY.class_uid * 100 + id,
    time: event.occurredAt,
    ...toSeverity(toText(labels["severity"])),
    ...toOutcome(fields.action, actions),
    metadata: {
      version: OCSF_VERSION,
      uid: event.logId,
      profiles: [HTTP_PROFILE],
      product: {
        name: PRODUCT,
        vendor_name: vendor ?? undefined,
        feature: { uid: String(event.zoneId), name: known(fields.feature) },
      },
    },
    src_endpoint: toSource(isMasked ? { ...fields, ip: maskAddress(fields.ip) } : fields),
    http_request: {
      uid: known((findHeader(log["Headers"], REQUEST_ID) ?? "") || (isMasked ? "" : event.requestId)),
      http_method: METHODS.has(method) ? method : undefined,
      user_agent: known(fields.ua),
      url: toUrl(fields.url),
    },
    ja4_fingerprint_list: fields.ja4 === "" ? undefined : [{ type_id: 1, value: fields.ja4 }],
    firewall_rule: toRule({
      uid: known(fields.ruleId),
      desc: known(event.message),
      category: known(toText(labels["ruleGroup"])),
      condition: known(toText(trigger?.name)),
      match_details: toText(trigger?.value) === "" ? undefined : [toText(trigger?.value)],
    }),
    raw_data: parts.raw,
    unmapped: toUnmapped(parts),
  };
  // Receivers refuse JSON with half a surrogate pair, which a record may hold as an escape sequence.
  return JSON.stringify(ocsf, (_, value: unknown) =>
    typeof value === "string" ? value.toWellFormed() : value,
  );
}

interface RecordParts {
  readonly log: Record<string, unknown>;
  readonly labels: Record<string, unknown>;
  readonly raw: string | undefined;
}

const NO_RECORD: RecordParts = { log: {}, labels: {}, raw: undefined };

function read(record: Buffer | undefined): RecordParts {
  if (record === undefined) return NO_RECORD;
  const parts = readRecord(record);
  return {
    log: toObject(parseJson(parts?.log ?? "")),
    labels: parts?.labels ?? {},
    raw: record.toString(),
  };
}

/** The members of a record that have attributes. Headers are in `raw_data` only, which repeats all of the record. */
const MAPPED: ReadonlySet<string> = new Set([
  "Message",
  "Url",
  "RemoteIp",
  "Headers",
  "TriggerMatch",
  "asn",
  "country",
  "ruleId",
  "severity",
  "method",
  "ruleGroup",
  "status",
]);

function toUnmapped({ log, labels }: RecordParts) {
  const rest = Object.entries({ ...log, ...labels }).filter(
    // Lists and objects are in `raw_data` only: they may be nested deeper than JSON.stringify can follow.
    ([name, value]) => !MAPPED.has(name) && typeof value !== "object" && value !== "",
  );
  return rest.length === 0 ? undefined : Object.fromEntries(rest);
}

function toSeverity(label: string) {
  if (label === "") return { severity_id: 0 };
  const id = SEVERITY_IDS.get(label.toLowerCase());
  return id === undefined ? { severity_id: OTHER, severity: label } : { severity_id: id };
}

function toOutcome(action: string, { classify }: ActionStates) {
  if (action === "") return {};
  const name = classify(action);
  if (name === "other") return { action_id: OTHER, action, disposition_id: OTHER, disposition: action };
  const isObserved = name === "logged" && OBSERVED.words.some((word) => word === foldAction(action));
  const [action_id, disposition_id] = isObserved ? OBSERVED.outcome : OUTCOMES[name];
  return { action_id, disposition_id };
}

function toRule<Rule extends { readonly uid?: string | undefined }>(rule: Rule) {
  if (Object.values(rule).every((value) => value === undefined)) return undefined;
  return rule.uid === undefined ? { ...rule, name: UNKNOWN } : rule;
}

function toText(value: unknown): string {
  return typeof value === "string" ? value : "";
}

function toObject(value: unknown): Record<string, unknown> {
  return isObject(value) ? value : {};
}
