import { type ActionStates, toActionWordSql } from "#model/action-class.ts";
import {
  ADDRESS,
  HTTP_ACTIVITY,
  HTTP_PROFILE,
  METHODS,
  NETWORK_NUMBER,
  OBSERVED,
  OCSF_VERSION,
  type OcsfSettings,
  OTHER,
  OUTCOMES,
  PRODUCT,
  UNKNOWN,
} from "#model/ocsf.ts";
import { bound, duck, type Piece, raw } from "./piece.ts";

/** Returns SQL for a text that is written if a column is known, and for '' otherwise. */
const ifKnown = (column: string, text: string) => `case when ${column} <> '' then ${text} else '' end`;
/** Returns SQL for a member behind others, of a column that may be unknown. */
const member = (name: string, column: string) => ifKnown(column, `',"${name}":' || to_json(${column})`);

const { class_uid: CLASS, category_uid: CATEGORY } = HTTP_ACTIVITY;
/** Only ASCII letters are folded, as in `toOcsf`. Most texts are in lower case, and translate takes longer than the rest. */
const fold = (text: string) => `case when ${text} = lower(${text}) then ${text}
  else translate(${text}, 'ABCDEFGHIJKLMNOPQRSTUVWXYZ', 'abcdefghijklmnopqrstuvwxyz') end`;
/** Nearly all actions are one of the platform's own words, whose state no setting changes. */
function toOutcome({ toSql }: ActionStates): string {
  const given = ([action, disposition]: readonly [number, number]) =>
    `then ',"action_id":${action},"disposition_id":${disposition}'`;
  const observed = OBSERVED.words.map((word) => `'${word}'`).join(", ");
  return ifKnown(
    "action",
    `case action when 'block' ${given(OUTCOMES.blocked)} when 'challenge' ${given(OUTCOMES.challenged)}
      when 'log' ${given(OBSERVED.outcome)} else case ${toSql("action")}
      when 'blocked' ${given(OUTCOMES.blocked)} when 'challenged' ${given(OUTCOMES.challenged)}
      when 'logged' then case when ${toActionWordSql("action")} in (${observed}) ${given(OBSERVED.outcome)}
        else ',"action_id":${OUTCOMES.logged[0]},"disposition_id":${OUTCOMES.logged[1]}' end
      else concat(',"action_id":${OTHER},"action":', to_json(action), ',"disposition_id":${OTHER},"disposition":', to_json(action)) end end`,
  );
}

const SOURCE = [
  `case when regexp_matches(ip, '${ADDRESS}') then '"ip":"' || ip || '"'
    else '"name":' || to_json(coalesce(nullif(ip, ''), '${UNKNOWN}')) end`,
  ifKnown("country", `',"location":{"country":' || to_json(country) || '}'`),
  ifKnown(
    "asn",
    `',"autonomous_system":{' || case when regexp_matches(asn, '${NETWORK_NUMBER}') then '"number":' || asn
      else '"name":' || to_json(asn) end || '}'`,
  ),
];

/** The parts of `toUrlPart`, several times as fast as `toUrlPartSql`, which Postgres must read as well. */
const PATH = String.raw`coalesce(nullif(regexp_extract(url, '^(?:[^/?#]+://[^/?#]*)?([^?#]*)', 1), ''), '/')`;
const AUTHORITY = "regexp_extract(url, '^[^/?#]+://([^/?#]*)', 1)";
const HOST = fold(String.raw`regexp_extract(${AUTHORITY}, '^(?s:.*@)?(\[[^\]]*\]|[^:\[][^:]*|)', 1)`);
const QUERY = String.raw`regexp_extract(url, '^[^?#]*\?([^#]*)', 1)`;
const URL = ifKnown(
  "url",
  `concat('"url":{"url_string":', to_json(url), ',"path":', to_json(${PATH}), ${member("hostname", HOST)},
    ${member("query_string", QUERY)}, '}')`,
);
/** The members of the request, with a comma behind each. */
const REQUEST = [
  ifKnown("request_id", `'"uid":' || to_json(request_id) || ','`),
  `case when method in (${[...METHODS.keys()].map((name) => `'${name}'`).join(", ")}) then '"http_method":"' || method || '",' else '' end`,
  ifKnown("ua", `'"user_agent":' || to_json(ua) || ','`),
  ifKnown("url", `${URL} || ','`),
];
const ACTIVITY = `case ${[...METHODS].map(([name, id]) => `when method = '${name}' then ${id}`).join(" ")}
  when method <> '' then ${OTHER} else 0 end`;
const ACTIVITY_NAME = `case when ${ACTIVITY} = ${OTHER} then ',"activity_name":' || to_json(method) else '' end`;

const FINGERPRINT = ifKnown(
  "ja4",
  `',"ja4_fingerprint_list":[{"type_id":1,"value":' || to_json(ja4) || '}]'`,
);
const RULE = `case when rule_id <> '' or message <> '' then concat(',"firewall_rule":{',
    case when rule_id <> '' then '"uid":' || to_json(rule_id) else '"name":"${UNKNOWN}"' end,
    ${member("desc", "message")}, '}') else '' end`;

/**
 * Returns SQL for an event's line of JSON: the object of `toOcsf` without a record. The text is put together by hand, because
 * DuckDB reads and writes each object anew that a function for JSON gets.
 */
export function toOcsfLine({ zoneId, vendor, actions }: OcsfSettings & { readonly zoneId: number }): Piece {
  const vendorName =
    vendor === null ? raw("''") : duck`',"vendor_name":' || to_json(${bound(vendor)}::varchar)`;
  return duck`concat(
    '{"category_uid":${CATEGORY},"class_uid":${CLASS},"activity_id":', ${raw(ACTIVITY)}, ${raw(ACTIVITY_NAME)},
    ',"type_uid":', ${CLASS * 100} + ${raw(ACTIVITY)}, ',"severity_id":0,"time":', epoch_ms(occurred_at), ${raw(toOutcome(actions))},
    ',"metadata":{"version":"${raw(OCSF_VERSION)}","uid":', to_json(log_id), ',"profiles":["${raw(HTTP_PROFILE)}"]',
    ',"product":{"name":"${raw(PRODUCT)}"', ${vendorName}, ',"feature":{"uid":"${zoneId}"', ${raw(member("name", "feature"))},
    '}}},"src_endpoint":{', ${raw(SOURCE.join(", "))}, '},"http_request":{', rtrim(concat(${raw(REQUEST.join(", "))}), ','), '}',
    ${raw(FINGERPRINT)}, ${raw(RULE)}, '}')`;
}
