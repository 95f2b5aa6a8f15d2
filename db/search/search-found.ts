import type { Dimension } from "#model/kinds.ts";

/** An event as searches show it; what is not known is ''. */
export interface FoundEvent {
  readonly logId: string;
  /** Epoch ms. */
  readonly occurredAt: number;
  readonly route: string;
  readonly fields: Readonly<Record<Dimension, string>>;
  readonly message: string;
  readonly method: string;
  readonly requestId: string;
}

/** A row as `FOUND_COLUMNS` selects it. */
export interface FoundColumns extends Record<Dimension, string>, Record<string, unknown> {
  readonly at: number;
  readonly log_id: string;
  readonly route: string;
  readonly message: string;
  readonly method: string;
  readonly requestId: string;
}

export const FOUND_COLUMNS = `(date_part('epoch', e.occurred_at) * 1000)::bigint::float8 as at, e.log_id, e.route,
  coalesce(e.feature, '') as feature, coalesce(e.rule_id, '') as "ruleId", coalesce(e.ip, '') as ip,
  coalesce(e.ja4, '') as ja4, coalesce(e.ua, '') as ua, coalesce(e.url, '') as url, coalesce(e.asn, '') as asn,
  coalesce(e.country, '') as country, coalesce(e.action, '') as action, coalesce(e.message, '') as message,
  coalesce(e.method, '') as method, coalesce(e.request_id, '') as "requestId"`;

export function toFoundEvent(row: FoundColumns): FoundEvent {
  const {
    at,
    log_id: logId,
    route,
    message,
    method,
    requestId,
    feature,
    ruleId,
    ip,
    ja4,
    ua,
    url,
    asn,
    country,
    action,
  } = row;
  return {
    logId,
    occurredAt: at,
    route,
    fields: { feature, ruleId, ip, ja4, ua, url, asn, country, action },
    message,
    method,
    requestId,
  };
}
