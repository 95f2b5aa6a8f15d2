/** Counts classified requests by day, class, rules and path. */

import { DAY_MS, HOUR_MS } from "#lib/units.ts";
import { ACTION_CLASSES, REQUEST_CLASSES, type REVIEW_SAMPLES, type RequestClass } from "#model/kinds.ts";
import {
  noRequests,
  type ReviewRow,
  type ReviewTable,
  type SenderCount,
  type SharedKey,
} from "#model/review.ts";
import type { SearchPlan } from "../query/plan-search.ts";
import { BITS_PER_WORD, type Classified, REQUEST_KEY, ruleCount, toPathForm } from "./classify-requests.ts";
import { bound, duck, join, type Piece, raw, toClauses } from "./to-condition.ts";

/** Paths of requests that are not hostile, counted apart: those with the most. */
const MOST_PATHS = 300;

/** A rule that was seen in the span, with the requests of its events since a time. */
export interface SeenRule {
  readonly rule: string;
  /** The platform's protection of most of its events. */
  readonly feature: string;
  /** Whether it only adds other rules up, or is too rare to be counted: then it is in no set. */
  readonly isCounted: boolean;
  readonly isSum: boolean;
  readonly events: number;
  /** Different addresses, about. */
  readonly addresses: number;
  readonly lately: {
    readonly blocked: number;
    readonly challenged: number;
    readonly logged: number;
    readonly other: number;
  };
}

/** Returns the statement whose rows `readCounts` reads. `latelyFrom` is epoch ms. */
export function countRequests({ requests, events, toActionSql }: Classified, latelyFrom: number): Piece {
  const lately = ACTION_CLASSES.map(
    (name) => `count(*) filter (action_class = '${name}' and ms >= ${Math.floor(latelyFrom)})`,
  );
  return duck`with r as materialized (select day, class, is_stopped, w0, w1, path_key from (${requests})),
    kept as materialized (select path_key, (row_number() over (order by n desc, path_key) - 1)::integer as place
      from (select path_key, count(*) as n from r where class <> 'hostile' group by path_key order by n desc, path_key limit ${MOST_PATHS})),
    counted as (select day, class, is_stopped, w0, w1, coalesce(place, -1) as place, count(*) as n
      from r left join kept using (path_key) group by all)
    select json_object('day', day, 'rows', json_group_array(json_array(class, is_stopped, w0::varchar, w1::varchar, place, n))) from counted group by day
    union all
    select json_object('path', place, 'example', coalesce(any_value(path), ''))
      from (select path, hash(${raw(toPathForm("path"))}) as path_key from (${events})) join kept using (path_key) group by place
    union all
    select json_object('hasLed', has_led) from zone_signs
    union all
    select json_object('rule', rule_id, 'feature', any_value(feature), 'place', any_value(place), 'isSum', any_value(is_sum), 'events', count(*),
        'addresses', approx_count_distinct(ip), 'lately', json_array(${raw(lately.join(", "))}))
      from (select e.ip, epoch_ms(e.occurred_at) as ms, ${raw(toActionSql("e.action"))} as action_class, r.rule_id, r.feature, r.place, r.is_sum
        from (${events}) e join request_rules r on r.rule_id = coalesce(e.rule_id, '')) group by rule_id`;
}

interface DayRows {
  readonly day: number;
  readonly rows: readonly (readonly [string, boolean, string, string, number, number])[];
}
interface PathRow {
  readonly path: number;
  readonly example: string;
}
interface SignsRow {
  readonly hasLed: boolean;
}
interface RuleRow {
  readonly rule: string;
  readonly feature: string | null;
  readonly place: number;
  readonly isSum: boolean;
  readonly events: number;
  readonly addresses: number;
  readonly lately: readonly [number, number, number, number];
}

interface ReviewCounts {
  readonly table: ReviewTable;
  readonly seen: readonly SeenRule[];
  readonly toTemplate: (path: string) => string;
  /** Whether records show sessions or referers, so that most visitors are recognised. */
  readonly hasLed: boolean;
}

/** Reads the rows of `countRequests`. `templatesOf` returns a function to the template of a path, which it infers from all of them. */
export function readCounts(
  lines: readonly string[],
  templatesOf: (paths: readonly string[]) => ReviewCounts["toTemplate"],
): ReviewCounts {
  const read = lines.map((line) => JSON.parse(line) as DayRows | PathRow | RuleRow | SignsRow);
  const seen = read
    .filter((row) => "rule" in row)
    .sort((one, other) => other.events - one.events || (one.rule < other.rule ? -1 : 1));
  const counted = seen
    .filter(({ place, isSum }) => !isSum && place < 2 * BITS_PER_WORD)
    .sort((one, other) => one.place - other.place);
  const templates = new Map<string, number>();
  const pathOf = new Map([[-1, -1]]);
  const kept = read.filter((row) => "path" in row);
  const toTemplate = templatesOf(kept.map(({ example }) => example));
  for (const { path, example } of kept) {
    const template = toTemplate(example);
    if (!templates.has(template)) templates.set(template, templates.size);
    pathOf.set(path, templates.get(template) ?? -1);
  }
  const sets: number[][] = [];
  const setOf = new Map<string, number>();
  const toSet = (words: readonly string[]): number => {
    const key = words.join();
    const known = setOf.get(key);
    if (known !== undefined) return known;
    sets.push(
      words.flatMap((word, index) => toPlaces(BigInt(word)).map((place) => place + index * BITS_PER_WORD)),
    );
    setOf.set(key, sets.length - 1);
    return sets.length - 1;
  };
  const rows = new Map<string, ReviewRow>();
  for (const { day, rows: ofDay } of read.filter((row) => "day" in row))
    for (const [of, isStopped, w0, w1, place, n] of ofDay) {
      const key = [
        day,
        REQUEST_CLASSES.findIndex((name) => name === of),
        isStopped ? 1 : 0,
        toSet([w0, w1]),
        pathOf.get(place) ?? -1,
      ] as const;
      rows.set(key.join(), [...key, (rows.get(key.join())?.[5] ?? 0) + n]);
    }
  const table = {
    rules: counted.map(({ rule }) => rule),
    paths: [...templates.keys()],
    sets,
    rows: [...rows.values()],
  };
  return {
    table,
    toTemplate,
    hasLed: read.some((row) => "hasLed" in row && row.hasLed),
    seen: seen.map(
      ({ rule, feature, place, isSum, events, addresses, lately: [blocked, challenged, logged, other] }) => ({
        rule,
        feature: feature ?? "",
        isSum,
        events,
        addresses,
        isCounted: !isSum && place < 2 * BITS_PER_WORD,
        lately: { blocked, challenged, logged, other },
      }),
    ),
  };
}

function toPlaces(word: bigint): number[] {
  const places: number[] = [];
  for (let place = 0; word >> BigInt(place) > 0n; place += 1)
    if ((word >> BigInt(place)) & 1n) places.push(place);
  return places;
}

/** Requests of each kind that are shown of a rule. */
const MOST_SAMPLES = 10;

/** A request of the rule that no other blocking rule matches: of a visitor, whom it would stop, or hostile, which would get through without it. */
export interface SampledRequest {
  readonly kind: (typeof REVIEW_SAMPLES)[number];
  readonly class: string;
  readonly at: number;
  readonly logId: string;
  readonly ip: string;
  readonly url: string;
  readonly action: string;
}

/**
 * Returns the statement that finds the newest requests of a rule since a time (epoch ms), one of each sender. `patterns` find the URLs on which the rule
 * does not block.
 */
export function sampleRequests(
  { requests, events }: Classified,
  {
    rule,
    others,
    patterns,
    from,
  }: {
    readonly rule: string;
    readonly others: readonly string[];
    readonly patterns: readonly string[];
    readonly from: number;
  },
): Piece {
  const isExcluded =
    patterns.length === 0
      ? raw("false")
      : join(
          patterns.map((pattern) => duck`regexp_matches(coalesce(url, ''), ${bound(pattern)})`),
          " or ",
        );
  const isOther = others.length === 0 ? raw("false") : duck`rule_id in (${join(others.map(bound), ", ")})`;
  return duck`with others as (select coalesce(bit_or(w0), 0) as w0, coalesce(bit_or(w1), 0) as w1 from request_rules where ${isOther}),
    own as materialized (select ${raw(REQUEST_KEY)} as request, log_id, epoch_ms(occurred_at) as ms, ip, url, action from (${events})
      where coalesce(rule_id, '') = ${bound(rule)} and epoch_ms(occurred_at) >= ${Math.floor(from)} and not (${isExcluded})),
    found as (select class, case class when 'hostile' then 'attack' else 'visitor' end as kind, coalesce(sender, r.request) as sent_by, own.*
      from (${requests}) r join own on own.request = r.request cross join others
      where class <> 'machine' and r.w0 & others.w0 = 0 and r.w1 & others.w1 = 0),
    each as (select *, row_number() over (partition by kind, sent_by order by ms desc, log_id) as turn from found),
    newest as (select *, row_number() over (partition by kind order by ms desc, log_id) as place from each where turn = 1)
    select json_object('kind', kind, 'class', class, 'at', ms, 'logId', log_id, 'ip', coalesce(ip, ''), 'url', coalesce(url, ''), 'action', coalesce(action, ''))
    from newest where place <= ${MOST_SAMPLES} order by kind desc, place`;
}

/** The newest events of a rule that say what it does. */
const NEWEST = 10;

/** Returns the statement that says of each rule what it did with its newest events, and when it stopped visitors, since a time (epoch ms). */
export function watchRules(
  { requests, events, toActionSql }: Classified,
  { rules, from }: { readonly rules: readonly string[]; readonly from: number },
): Piece {
  return duck`with own as materialized (select rule_id as rule, ${raw(REQUEST_KEY)} as request, epoch_ms(occurred_at) as ms, ${raw(toActionSql("action"))} as fate
      from (${events}) where rule_id in (${join(rules.map(bound), ", ")}) and epoch_ms(occurred_at) >= ${Math.floor(from)}),
    seen as (select own.*, fate in ('blocked', 'challenged') as is_stopped, class, coalesce(sender, r.request) as visitor, ${ruleCount((word) => word)} = 1 as is_alone
      from own join (${requests}) r on own.request = r.request),
    newest as (select rule, json_group_array(json_array(ms, is_stopped)) as newest
      from (select *, row_number() over (partition by rule order by ms desc) as place from seen where fate = 'logged' or (is_stopped and is_alone))
      where place <= ${NEWEST} group by rule),
    stopped as (select rule, json_group_array(json_array(first, last)) as visits
      from (select rule, min(ms) as first, max(ms) as last from seen where is_stopped and class = 'visitor' group by rule, visitor, ms // ${HOUR_MS}) group by rule)
    select json_object('rule', rule, 'newest', coalesce(newest, json_array()), 'visits', coalesce(visits, json_array()), 'stoppedAt', stopped_at)
    from (select rule, max(ms) filter (is_stopped) as stopped_at from seen group by rule) left join newest using (rule) left join stopped using (rule)`;
}

/** More senders than this are not read; visitors come first. */
const MOST_ROWS = 200_000;

/** Requests of all senders since a time. */
export type AllRequests = Readonly<Record<RequestClass, number>>;

const COUNTS = duck`'hostile', count(*) filter (class = 'hostile'), 'machine', count(*) filter (class = 'machine'),
  'visitor', count(*) filter (class = 'visitor'), 'unknown', count(*) filter (class = 'unknown')`;

interface Counted extends Pick<SearchPlan, "clauses"> {
  readonly end: number;
  readonly since: number;
  readonly shared: readonly SharedKey[];
}

function isOfKey({ kind, key, from, to }: SharedKey): Piece {
  const rule = duck`exists (select 1 from request_rules q where q.rule_id = ${bound(key)} and (r.w0 & q.w0 <> 0 or r.w1 & q.w1 <> 0))`;
  const isOf = {
    rule,
    path: duck`path_key = hash(${raw(toPathForm("?"))})`,
    ja4: duck`ja4 = ${bound(key)}`,
    asn: duck`asn = ${bound(key)}`,
  }[kind];
  const values = kind === "path" ? { ...isOf, values: [key] } : isOf;
  return duck`(first_at between ${from} and ${to} and ${values})`;
}

/**
 * Returns the statement that counts the requests before `end` of each sender that passes the clauses or was found, and all requests since `since`.
 * The classified requests must have the texts ip, asn and ja4.
 */
export function countSenders(
  { requests }: Pick<Classified, "requests">,
  { end, since, clauses, shared }: Counted,
): Piece {
  const isNamed = shared.length === 0 ? raw("false") : join(shared.map(isOfKey), " or ");
  const hasKey = clauses.length === 0 ? raw("false") : toClauses({ clauses }, 2);
  return duck`with r as (select *, (${end} - 1 - first_at) // ${DAY_MS} as ago,
      class = 'hostile' and (${isNamed}) as is_found from (${requests}) r)
    select json_object(${COUNTS}) from r where first_at >= ${since}
    union all select * from (
      select json_object('ago', ago, 'ip', ip, 'asn', asn, 'ja4', ja4, 'first', min(first_at),
        'from', min(first_at) filter (class = 'hostile'), 'to', max(first_at) filter (class = 'hostile'),
        'found', count(*) filter (is_found), ${COUNTS})
      from r where is_found or ${hasKey} group by ago, ip, asn, ja4
      order by bool_or(class = 'visitor') desc, count(*) desc limit ${MOST_ROWS})`;
}

/** Reads the rows of the statement. */
export function readSenders(rows: readonly string[]): { all: AllRequests; counts: SenderCount[] } {
  const read = rows.map((row) => JSON.parse(row) as AllRequests | SenderCount);
  return {
    all: read.find((row) => !("ip" in row)) ?? noRequests(),
    counts: read.filter((row) => "ip" in row),
  };
}
