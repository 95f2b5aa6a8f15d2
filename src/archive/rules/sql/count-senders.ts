import { DAY_MS } from "#lib/units.ts";
import type { RequestClass } from "#model/kinds.ts";
import type { SenderCount, SharedKey } from "#model/review.ts";
import type { SearchPlan } from "../query/plan-search.ts";
import { type Classified, toPathForm } from "./classify-requests.ts";
import { bound, duck, join, type Piece, raw, toClauses } from "./to-condition.ts";

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
  const none = { hostile: 0, machine: 0, visitor: 0, unknown: 0 };
  return { all: read.find((row) => !("ip" in row)) ?? none, counts: read.filter((row) => "ip" in row) };
}
