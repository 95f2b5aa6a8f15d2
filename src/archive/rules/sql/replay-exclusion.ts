import type { ExclusionClause } from "#model/advice.ts";
import type { Span } from "#model/horizon.ts";
import { EXCLUSION_REACHES, type ExclusionReach } from "#model/kinds.ts";
import { DIRTY_RULES } from "#model/verdict.ts";
import { type EventSource, prepareSource, readFiles } from "./event-source.ts";
import { bound, duck, join, type Piece, raw, toTimeCondition } from "./to-condition.ts";

/** The columns that a replay reads of events in Postgres. */
export const REPLAYED_COLUMNS = ["occurred_at", "log_id", "rule_id", "ip", "url", "action", "feature"];

/** Events of each form whose requests are looked at, and of addresses that look like attackers. */
const SAMPLED = 300;
const SAMPLED_DIRTY = 100;
/** Schemes and hosts that a form names: more would be those of attackers. */
const MOST_ORIGINS = 10;

/** Events that a form would have silenced, before method and parameter. */
export interface Counted {
  readonly form: ExclusionReach;
  readonly events: number;
  /** Events of addresses that look like attackers. */
  readonly dirty: number;
  readonly addresses: number;
  readonly days: number;
}

export interface ReplayedSample {
  readonly of: ExclusionReach;
  readonly isDirty: boolean;
  /** Position in the list of files; null for an event in Postgres. */
  readonly file: number | null;
  readonly row: number;
  readonly at: number;
  /** Empty for an event in a file. */
  readonly logId: string;
  readonly ruleId: string;
  readonly ip: string;
  readonly url: string;
  readonly action: string;
}

/** Another rule that matches the same requests. */
interface Other {
  readonly other: string;
  readonly share: number;
}

/** A scheme and a host of the clause's events. */
interface Origin {
  readonly origin: string;
}

/** The protection of most of the clause's events. */
interface Protection {
  readonly feature: string | null;
}

/**
 * Returns the statements that count what a clause, its method and parameter apart, would have silenced, and what wider forms
 * would have. `pattern` finds the URLs of the template, and `written` those that the platform's form of it finds behind an
 * origin of the clause's events; null if there is no such form. Samples are drawn by a hash, so that the same search draws the same ones.
 */
export function replayExclusion(
  source: EventSource,
  span: Span,
  clause: Pick<ExclusionClause, "ruleIds" | "template"> & {
    readonly pattern: string;
    readonly written: { readonly pattern: string; readonly origin: string } | null;
  },
): Piece[] {
  const { ruleIds, template, pattern, written } = clause;
  // An archived event is found by its row. Reading its log id would take as long as reading the URLs.
  const columns = REPLAYED_COLUMNS.slice(2).map((column) => `coalesce(${column}, '') as ${column}`);
  const selects: Piece[] = [];
  if (source.files.length > 0)
    selects.push(
      duck`select occurred_at, '' as log_id, ${raw(columns.join(", "))}, file_index::bigint as f, file_row_number as r from ${readFiles(source.files)}
        where ${toTimeCondition(span)}`,
    );
  if (source.openRows !== null)
    selects.push(raw(`select ${REPLAYED_COLUMNS.join(", ")}, null as f, 0 as r from open_rows`));
  const isRule = duck`rule_id in (${join(ruleIds.map(bound), ", ")})`;
  // A literal rules most URLs out for a fraction of what the expression costs.
  const literal = (template ?? "").split("/").filter((part) => !/^\{|…$/.test(part));
  const [longest = ""] = literal.sort((one, other) => other.length - one.length);
  const isPath =
    template === null
      ? raw("false")
      : duck`(contains(url, ${bound(longest)}) and regexp_matches(url, ${bound(pattern)}))`;
  // The whole authority is an origin, or none is: the beginning of one with a user is a host that nobody asked for.
  const toOrigin = duck`regexp_extract(url, ${bound(`(${written?.origin ?? ""})([/?#]|$)`)}, 1)`;
  const isWritten =
    written === null
      ? raw("false")
      : duck`(contains(url, ${bound(longest)}) and regexp_matches(url, ${bound(written.pattern)}) and ${toOrigin} in (select origin from origins))`;
  const flags = duck`${isRule} as is_rule, ${isPath} as is_path, ${isWritten} as is_written`;
  const isClause = raw(template === null ? "is_rule" : "(is_rule and is_path)");
  const of = { clause: isClause, rule: raw("is_rule"), path: raw("is_written") };
  const eachForm = (write: (form: ExclusionReach) => Piece, separator: string) =>
    join(EXCLUSION_REACHES.map(write), separator);
  return [
    ...prepareSource(source),
    duck`with e as not materialized (select *, epoch_ms(occurred_at) as ms, epoch_ms(occurred_at) // 86400000 as day
        from (${join(selects, " union all ")})),
      origins as materialized (select ${toOrigin} as origin from e where ${isRule} and ${isPath} and ${toOrigin} <> ''
        group by origin order by count(*) desc, origin limit ${MOST_ORIGINS}),
      m as materialized (select *, hash(ms, ip, url, rule_id) as place from (select *, ${flags} from e) where is_rule or is_path or is_written),
      hits as materialized (select ip, day, ${eachForm((form) => duck`count(*) filter (${of[form]}) as ${raw(form)}`, ", ")}
        from m group by ip, day),
      elsewhere as (select ip, day, rule_id, ${eachForm((form) => duck`bool_or(not ${of[form]}) as ${raw(form)}`, ", ")}
        from (select *, ${flags} from (select ip, day, rule_id, url from e semi join (select ip, day from hits where ip <> '') using (ip, day)))
        group by ip, day, rule_id),
      dirty as materialized (select ip, day, ${eachForm((form) => duck`count(*) filter (elsewhere.${raw(form)}) >= ${DIRTY_RULES} as ${raw(form)}`, ", ")}
        from elsewhere group by ip, day),
      own as materialized (select ip, url, ms // 1000 as second from m where ${of.clause} order by place limit ${SAMPLED}),
      requests as materialized (select distinct * from own)
      ${eachForm(
        (
          form,
        ) => duck`select json_object('form', '${raw(form)}', 'events', coalesce(sum(h.${raw(form)}), 0)::bigint,
            'dirty', coalesce(sum(h.${raw(form)}) filter (d.${raw(form)}), 0)::bigint, 'addresses', count(distinct ip), 'days', count(distinct day))
          from hits h left join dirty d using (ip, day) where h.${raw(form)} > 0
        union all select json_object('of', '${raw(form)}', 'isDirty', coalesce(d.${raw(form)}, false), 'file', f, 'row', r, 'at', ms,
            'logId', log_id, 'ruleId', rule_id, 'ip', ip, 'url', url, 'action', action)
          from (select distinct * from (
            (select * from m where ${of[form]} order by place limit ${SAMPLED}) union all
            (select m.* from m semi join (select ip, day from dirty where ${raw(form)}) using (ip, day) where ${of[form]}
              order by place limit ${SAMPLED_DIRTY}))) left join dirty d using (ip, day)`,
        " union all ",
      )}
      union all select json_object('other', rule_id, 'share', count(distinct (ip, url, second)) / (select count(*) from requests))
        from requests join (select ip, url, ms // 1000 as second, rule_id from m where is_path and not is_rule) using (ip, url, second)
        group by rule_id
      union all select json_object('origin', origin) from origins
      union all select json_object('feature', mode(feature)) from m where ${of.clause}`,
  ];
}

/** Reads the rows of the last statement of `replayExclusion`. */
export function readReplayed(rows: readonly string[]) {
  const read = rows.map((row) => JSON.parse(row) as Counted | ReplayedSample | Other | Origin | Protection);
  return {
    forms: read.filter((row) => "form" in row),
    samples: read.filter((row) => "of" in row),
    together: read.filter((row) => "other" in row).sort((one, other) => other.share - one.share),
    origins: read.filter((row) => "origin" in row).map(({ origin }) => origin),
    feature: read.find((row) => "feature" in row)?.feature ?? "",
  };
}
