import {
  describeCount,
  describeSubject,
  isAdvised,
  TOP_KEYS,
} from "#delivery/rules/message/describe-alert.ts";
import { toSafeLinks } from "#delivery/rules/message/document.ts";
import { stripMarkdown } from "#lib/strip-markdown.ts";
import { cutText } from "#lib/text.ts";
import type { AlertMessage } from "#model/alert-message.ts";
import type { AlertState, Severity } from "#model/kinds.ts";
import { OCSF_VERSION, toSource, toUrl } from "#model/ocsf.ts";
import { isEnding } from "#model/words.ts";
import { nameZone } from "#model/zones.ts";
import { MAX_BODY_BYTES, toFittingJson } from "./webhook-body.ts";

/** Detection Finding, of the category Findings. */
const FINDING = { category_uid: 2, class_uid: 2004 } as const;
const CREATED = 1;
const UPDATED = 2;
const CLOSED = 3;
const STATUS: Readonly<Record<AlertState, number>> = { firing: 1, acknowledged: 2, resolved: 4 };
const SEVERITY: Readonly<Record<Severity, number>> = { info: 1, warning: 3, error: 4, critical: 5 };
/** `type_id` of an analytic. */
const RULE = 1;
const STATISTICAL = 3;
/** `role_id` of a resource. */
const TARGET = 1;

/** Caps to try in order: maximum characters of a text, and items of a list. The first cuts nothing that could fit. */
const STEPS = [
  [MAX_BODY_BYTES, 1_000],
  [2_000, 60],
  [600, 20],
  [200, 8],
  [16, 3],
] as const;

/**
 * Returns a transition of an alert as the JSON text of a Detection Finding of OCSF 1.8 with fewer than 20,000 bytes. If
 * necessary, texts and lists are cut and `metadata.is_truncated` is true.
 */
export function toOcsfFinding(message: AlertMessage, atMs: number): string {
  const finding = makeFinding(message, atMs);
  return toFittingJson(STEPS, (caps, step) => cutFinding(finding, caps, step > 0));
}

type Finding = ReturnType<typeof makeFinding>;

/** Receivers group by the key, people follow the link, and a digest must name every alert: these stay whole. */
function cutFinding(finding: Finding, [chars, items]: (typeof STEPS)[number], isCut: boolean): object {
  const { uid, src_url, related_events } = finding.finding_info;
  const cut = JSON.parse(
    JSON.stringify(finding, (name, value: unknown) => {
      // An address that is cut is none.
      if (typeof value === "string") return name === "ip" ? value : cutText(value.toWellFormed(), chars);
      return Array.isArray(value) ? value.slice(0, items) : value;
    }),
  ) as Finding;
  return {
    ...cut,
    metadata: { ...cut.metadata, is_truncated: isCut || undefined },
    finding_info: { ...cut.finding_info, uid: uid.toWellFormed(), src_url, related_events },
  };
}

function makeFinding(message: AlertMessage, atMs: number) {
  const { alertId, transition, reason, state, zoneId, zoneName, zoneLabels, verdict } = message;
  const activity = isEnding(reason) ? CLOSED : reason === "first" ? CREATED : UPDATED;
  const advised = isAdvised(message) ? known(stripMarkdown(message.advice.text ?? "")) : undefined;
  const remedy = [verdict?.nextStep, advised].filter((text) => text !== undefined && text !== "");
  return {
    ...FINDING,
    activity_id: activity,
    type_uid: FINDING.class_uid * 100 + activity,
    time: atMs,
    start_time: message.startedAt,
    end_time: message.endedAt ?? undefined,
    severity_id: SEVERITY[message.severity],
    status_id: STATUS[state],
    is_alert: activity !== CLOSED,
    message: known(message.headline),
    metadata: {
      version: OCSF_VERSION,
      uid: `${alertId}-${transition}`,
      product: { name: "Longwatch", vendor_name: "Longwatch" },
    },
    finding_info: toInfo(message),
    resources:
      zoneId === null
        ? undefined
        : [
            {
              uid: String(zoneId),
              name: known(zoneName),
              type: "zone",
              role_id: TARGET,
              tags: toTags(zoneLabels),
            },
          ],
    evidences: orNone(toEvidences(message)),
    anomaly_analyses: orNone(toAnalyses(message)),
    remediation: remedy.length === 0 ? undefined : { desc: remedy.join("\n\n") },
    unmapped: {
      reason,
      fingerprint: message.fingerprint,
      verdict: verdict?.said,
      actions: message.actions,
      how_to_silence: message.howToSilence ?? undefined,
      how_to_list: message.howToList,
      member_count: message.members?.length,
    },
  };
}

function toInfo(message: AlertMessage) {
  const { kind, ruleId, ruleTitle, verdict, details = [], rules = [], members = [], digest } = message;
  const words =
    verdict === undefined ? [] : [verdict.title, ...verdict.for, verdict.against ?? "", verdict.who];
  const named = [
    { uid: ruleId ?? "", name: ruleTitle ?? "" },
    ...[...rules, ...members.map((one) => one.ruleId)].map((uid) => ({ uid, name: "" })),
  ];
  const related = named.filter(({ uid }) => uid !== "" && !uid.startsWith("("));
  return {
    uid: message.dedupeKey,
    uid_alt: String(message.alertId),
    title: known(describeSubject(message)),
    desc: known([...words, ...details].filter((line) => line !== "").join("\n")),
    created_time: message.startedAt,
    last_seen_time: message.endedAt ?? undefined,
    types: [kind],
    analytic: { type_id: STATISTICAL, uid: kind },
    related_analytics: orNone(related.map(({ uid, name }) => ({ type_id: RULE, uid, name: known(name) }))),
    related_events: orNone(
      (digest ?? []).map(({ alertId, name, reason, severity }) => ({
        uid: String(alertId),
        title: known(name),
        type: reason,
        severity_id: SEVERITY[severity],
      })),
    ),
    src_url: toSafeLinks(message.links)[0]?.href,
  };
}

/** The request that the verdict shows, then the most frequent values. */
function toEvidences({ top, verdict }: AlertMessage) {
  const sample = verdict?.sample;
  const request =
    sample == null
      ? []
      : [
          {
            name: "request",
            uid: known(sample.logId),
            src_endpoint: toSource(sample),
            url: toUrl(sample.url),
            data: {
              at: sample.at,
              method: sample.method,
              rule: sample.ruleId,
              action: sample.action,
              parameter: sample.parameter,
              matched: sample.matched,
            },
          },
        ];
  const values = TOP_KEYS.flatMap((key) =>
    top[key].map(({ value, count, share }) => ({
      name: key,
      data: { value, count, share },
      ...(key === "ips" ? { src_endpoint: toSource({ ip: value }) } : {}),
      ...(key === "paths" && value !== "" ? { url: { path: value } } : {}),
      ...(key === "userAgents" && value !== "" ? { http_request: { user_agent: value } } : {}),
      ...(key === "ja4s" && value !== "" ? { ja4_fingerprint_list: [{ type_id: 1, value }] } : {}),
    })),
  );
  return [...request, ...values];
}

/** Returns the counts and the expected counts of the alert, and of each rule of an incident. */
function toAnalyses(message: AlertMessage) {
  const { members = [], unit = "events" } = message;
  const own = describeCount(message) === null ? [] : [{ ...message, name: describeSubject(message), unit }];
  const each = members.map((one) => ({
    ...one,
    name: `${nameZone(one.zoneId, one.zoneName)} · rule ${one.ruleId}`,
    unit: "events",
    threshold: undefined,
  }));
  return [...own, ...each].map(({ name, count, usual, threshold, windowMinutes, unit: counted }) => {
    const parameter = `${counted} in ${windowMinutes} minutes`;
    const observe = (what: string, value: number) => ({
      observation_parameter: parameter,
      observation_type: "Volume Analysis",
      observed_pattern: what,
      observations: [{ value: String(value) }],
    });
    return {
      analysis_targets: [{ name, type: "WAF rule" }],
      anomalies: [observe("SURGE", count)],
      baselines: [
        observe("USUAL", usual),
        ...(threshold === undefined ? [] : [observe("THRESHOLD", threshold)]),
      ],
    };
  });
}

function toTags(labels: AlertMessage["zoneLabels"]) {
  return orNone(
    Object.entries(labels ?? {}).flatMap(([name, value]) => (value === "" ? [] : [{ name, value }])),
  );
}

function orNone<Item>(items: readonly Item[]): readonly Item[] | undefined {
  return items.length === 0 ? undefined : items;
}

function known(text: string | undefined): string | undefined {
  return text === "" ? undefined : text;
}
