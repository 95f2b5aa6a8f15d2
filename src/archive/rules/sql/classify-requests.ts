/** Says of each request in the events of a span whose it is. */
import { DAY_MS } from "#lib/units.ts";
import { ARCHIVE_FORMAT } from "#model/archive-layout.ts";
import type { Span } from "#model/horizon.ts";
import { SAME_REQUEST_MS } from "#model/request-facts.ts";
import type { RequestFinding } from "#model/review.ts";
import { SUM_RULES } from "#model/rules.ts";
import type { UsualValue } from "#model/stored-sources.ts";
import { DIRTY_RULES } from "#model/verdict.ts";
import { planFilters, type SearchPlan } from "../query/plan-search.ts";
import { type EventSource, prepareSource, selectEvents } from "./event-source.ts";
import { bound, duck, join, type Piece, raw, toClauses } from "./to-condition.ts";

/** The columns that are read of each event. No record is opened. */
export const CLASSIFIED_COLUMNS =
  "occurred_at log_id feature rule_id ip ja4 ua url asn action request_id path facts".split(" ");

/** SELECTs for a statement that runs after those of `prepare`: the requests with their classes, and the events with their columns. */
export interface Classified extends Pick<SenderKnowledge, "toActionSql"> {
  readonly prepare: readonly Piece[];
  readonly requests: Piece;
  readonly events: Piece;
}

/** Returns SQL for the form of a path, which is equal for paths that differ in a digit: `/p/12` and `/p/34`. */
export const toPathForm = (column: string) => `translate(${column}, '0123456789', '##########')`;

/** Texts of a request that are read if they are asked for. */
export type RequestText = "ip" | "asn" | "ja4" | "ua" | "path";

/** A set of rules is so many numbers with so many bits. Rules beyond the most frequent ones have no bit. */
const RULE_WORDS = 2;
export const BITS_PER_WORD = 62;

/** SQL for the number of an event's request. */
export const REQUEST_KEY = `case when request_id <> '' then hash(request_id) else hash(ip, url, epoch_ms(occurred_at) // ${SAME_REQUEST_MS}) end`;
/** A program that came on so many days, with so few rules, is a monitor or a job of the site. */
const STEADY_DAYS = 5;
const STEADY_RULES = 2;
/** So is one that came on so many days to one path alone, whatever it sent, from one address or from one a day: a scan has several paths. */
const LOYAL_DAYS = 3;
/**
 * A fingerprint or a network is of people if so many percent of its requests have a session or an own referer; if no request of the zone has one, unless so many hold an
 * idiom, name a tool or look for hidden files. A fingerprint of which so many do, or that names several browsers, is one of attackers' programs.
 */
const LED_PERCENT = 30;
/** A request with so many signs is a visitor's, if nothing says more of it. */
const VISITOR_SIGNS = 2;
/**
 * A request with so many signs of a visitor is not hostile for an idiom, or for other rules that its address triggered: people write about attacks, and share addresses.
 * Without sessions and referers it cannot have more than the two of a visitor.
 */
const SURE_SIGNS = 3;

/** If most of so many requests with a session hold no idiom on a path, those of the others there are of what people or partners write. */
const FREE_REQUESTS = 10;

/** The senders of which something is known. */
export interface SenderKnowledge {
  readonly findings: readonly RequestFinding[];
  /** Networks and JA4 fingerprints that are usual in the zone. */
  readonly usual: readonly UsualValue[];
  /** Tests of the known sources; an event is of one if any clause holds. */
  readonly known: SearchPlan["clauses"];
  readonly crawlers: readonly { readonly agent: string; readonly networks: readonly string[] }[];
  /** Returns SQL for the class of a column's action. */
  readonly toActionSql: (column: string) => string;
}

/** Files that no page of a site leads to: hidden ones, backups, keys and logs. As a regular expression of RE2 over a path, in upper or lower case. */
const PROBE =
  "(?i)/[.](?:[a-vx-z]|w[a-df-z])|[.](?:bak|backup|cfg|conf|config|db|dbf|ini|key|log|mdb|old|orig|pem|pwd|rdb|save|sql|sqlite|swp)(?:[.]gz)?$|/id_rsa$";
/** The bits of an event about its request. */
const SAYS = { machine: 1, attacker: 2, shared: 4, misfire: 8, stopped: 16, probe: 32 } as const;
/** The bits of facts that are true, as `packFacts` writes them, behind those of `SAYS`. */
const FACTS_AT = 8;
const TRUE = {
  session: 2 << FACTS_AT,
  referer: 8 << FACTS_AT,
  idiom: 32 << FACTS_AT,
  tool: 128 << FACTS_AT,
} as const;
/** The bits of what a user agent names: a bot is a program, too. `engine`: a browser that is neither of the two others. */
const NAMES = { program: 1 << 18, bot: 1 << 19, firefox: 1 << 20, chrome: 1 << 21, engine: 1 << 22 } as const;
const NAMED = `case when ua is null then 0 when regexp_matches(ua, 'bot|crawl|spider|monitor', 'i') then ${NAMES.program | NAMES.bot}
  when not regexp_matches(ua, '^(Mozilla|Opera)/[0-9]') then ${NAMES.program} when contains(ua, 'Firefox/') then ${NAMES.firefox} when contains(ua, 'Chrome/') then ${NAMES.chrome} else ${NAMES.engine} end`;
/** A fingerprint is of one kind of browser. If two kinds are so many percent of its requests, from so many networks, programs pretend to be browsers. */
const KIND_PERCENT = 15;
const PRETENDER_NETWORKS = 5;
const PRETENDS = [NAMES.firefox, NAMES.chrome, NAMES.engine].map(
  (kind) => `(count(*) filter (says & ${kind} > 0) * 100 >= count(*) * ${KIND_PERCENT})::integer`,
);
/** The bits of requests that a page of the site led to, and of those that an attacker sends. */
const LED = TRUE.session | TRUE.referer;
const ATTACKS = TRUE.tool | TRUE.idiom | SAYS.probe;
/** The column of a request that holds the value of a finding. A rule is found by its bits. */
const KEY_OF = { ip: "sender", asn: "asn_key", ja4: "ja4_key", ua: "ua_key", path: "path_key" } as const;

const isSender = (column: string) =>
  `${column} not in ('', '0.0.0.0', '::', 'erased') and not contains(${column}, '*')`;
const words = Array.from({ length: RULE_WORDS }, (_, word) => word);
const eachWord = (write: (word: number) => string, separator = ", ") => raw(words.map(write).join(separator));
/** Returns SQL for the number of rules in the columns of bits that `write` names. */
export const ruleCount = (write: (word: string) => string) =>
  eachWord((word) => `bit_count(${write(`w${word}`)})`, " + ");
const toTable = (value: unknown, shape: string): Piece =>
  duck`(select unnest(from_json(${bound(JSON.stringify(value))}, ${raw(`'${shape}'`)}), recursive := true))`;

/**
 * Returns the statements that prepare a connection, and a SELECT of the requests for the statement after them:
 * `request` (hash of its name), `first_at` (epoch ms), `day` (days since the epoch), `sender` (hash of the address; null if it stands for nobody or for many), `path_key` (hash of the form of its path),
 * `class`, `is_stopped`, the bits of its rules `w0` and `w1` by the places in the table `request_rules`, and the texts that are asked for. An event without a name of
 * its request belongs to that of the same address and URL within two seconds. The requests of days whose files have no facts are unknown. The table `zone_signs` has
 * `has_led`: whether any request has a session or an own referer.
 *
 * The first that holds decides. *machine*: a known source, a crawler in its operator's network, what an incident found, or a program that comes day after day. *hostile*: an attacker of an
 * incident, an idiom, a tool, or an address with three rules on other paths of the day. *visitor*: at least two of session, own referer, usual JA4 and usual
 * network, or a misfire. An idiom with a session is not hostile on a path where most of those hold none. A JA4, network, agent, path or rule that an attack shares with others makes hostile only who has not two of these signs. So does the JA4 of a program
 * that mostly attackers use, or that names several browsers.
 */
export function classifyRequests(
  source: EventSource,
  span: Span,
  { findings, usual, known, crawlers, toActionSql }: SenderKnowledge,
  texts: readonly RequestText[] = [],
): Classified {
  // Texts as they are keep their dictionaries: classes of actions take a twentieth of the time.
  const events = selectEvents(source, { ...span, clauses: [] }, CLASSIFIED_COLUMNS, { keepsNulls: true });
  const networks = findings.filter(
    ({ kind, key, says }) => kind === "ip" && key.includes("/") && says === "hostile",
  );
  const isWithin = networks.length === 0 ? raw("false") : toClauses({ clauses: ofNetworks(networks) }, 2);
  const isKnown = anyOf(known.map((clause) => toClauses({ clauses: [clause] }, 2)));
  const isCrawler = anyOf(
    crawlers.map(
      ({ agent, networks: own }) =>
        duck`(regexp_extract(asn, '^(?:AS)?([0-9]+)', 1, 'i') in (${join(own.map(bound), ", ")}) and regexp_matches(ua, ${bound(agent)}, 'i'))`,
    ),
  );
  const says = join(
    [
      raw(`coalesce(facts, 0)::integer << ${FACTS_AT}`),
      duck`case when ${isKnown} or ${isCrawler} then ${SAYS.machine} else 0 end`,
      duck`case when ${isWithin} then ${SAYS.attacker} else 0 end`,
      raw(NAMED),
      raw(`case when regexp_matches(path, '${PROBE}') then ${SAYS.probe} else 0 end`),
      raw(`case when ${toActionSql("action")} in ('blocked', 'challenged') then ${SAYS.stopped} else 0 end`),
    ],
    " | ",
  );
  // The agents of browsers are needed for findings only.
  const isAsked = findings.some(({ kind }) => kind === "ua") ? "true" : `says & ${NAMES.program} > 0`;
  const agent = `case when ${isAsked} then hash(left(ua, 300)) end`;
  const prepare = [
    ...prepareSource(source),
    duck`create temp table request_rules as select *,
      ${eachWord((word) => `case when not is_sum and place between ${word * BITS_PER_WORD} and ${(word + 1) * BITS_PER_WORD - 1} then 1::bigint << (place - ${word * BITS_PER_WORD}) else 0 end as w${word}`)}
      from (select *, (row_number() over (partition by is_sum order by events desc, rule_id) - 1)::integer as place
        from (select rule_id, regexp_matches(rule_id, ${bound(SUM_RULES)}) as is_sum, arg_max(feature, n) as feature, sum(n)::bigint as events
          from (select coalesce(rule_id, '') as rule_id, feature, count(*) as n from (${events}) group by all) group by rule_id))`,
    duck`create temp table found as select *, hash(case kind when 'path' then ${raw(toPathForm("key"))} else key end) as key_hash, case says when 'hostile' then case kind when 'ip' then ${SAYS.attacker} else ${SAYS.shared} end
        when 'machine' then ${SAYS.machine} else ${SAYS.misfire} end as bit
      from ${toTable(findings, '[{"kind":"VARCHAR","key":"VARCHAR","from":"BIGINT","to":"BIGINT","says":"VARCHAR"}]')}`,
    duck`create temp table usual as select dimension, hash(value) as value_hash, min(since) as since from
      ${toTable(usual, '[{"dimension":"VARCHAR","value":"VARCHAR","since":"BIGINT"}]')} group by all`,
    // Numbers instead of texts: a zone has a million requests, and most texts are asked for by nobody.
    duck`create temp table all_requests as select request, min(ms) as first_at, min(ms) // ${DAY_MS} as day, bit_or(says) as says,
        ${eachWord((word) => `bit_or(w${word}) as w${word}`)}, min(case when ${raw(isSender("ip"))} then hash(ip) end) as sender, min(hash(${raw(toPathForm("path"))})) as path_key,
        min(hash(asn)) as asn_key, min(hash(ja4)) as ja4_key, min(${raw(agent)}) as ua_key${raw(texts.map((text) => `, coalesce(any_value(${text}), '') as ${text}`).join(""))}
      from (select e.*, r.* exclude (rule_id, feature), ${says} as says, ${raw(REQUEST_KEY)} as request
        from (select *, epoch_ms(occurred_at) as ms from (${events})) e join request_rules r on r.rule_id = coalesce(e.rule_id, '')) group by request`,
    duck`create temp table sender_days as select sender, day, min(path_key) <> max(path_key) as has_paths, min(path_key) as first_path, max(path_key) as last_path, ${eachWord((word) => `bit_or(w${word}) as w${word}`)}, bool_and(says & ${NAMES.program} > 0) as is_program
      from all_requests where sender is not null group by sender, day`,
    // Few addresses have several rules and paths on a day, so only theirs are looked at.
    duck`create temp table sender_rules as select sender, day, place, min(path_key) as first_path, max(path_key) as last_path
      from all_requests a semi join (select sender, day from sender_days where has_paths and ${ruleCount((word) => word)} >= ${DIRTY_RULES}) using (sender, day)
      join request_rules r on ${eachWord((word) => `a.w${word} & r.w${word} <> 0`, " or ")} group by all`,
    raw(`create temp table senders as select sender, day, count(*) filter (first_path <> last_path) as several,
      count(*) filter (first_path = last_path) as single from sender_rules group by all`),
    raw(`create temp table own_rules as select sender, day, first_path as path_key, count(*) as own
      from sender_rules where first_path = last_path group by all`),
    duck`create temp table steady as select sender, true as is_steady from sender_days group by sender
      having bool_and(is_program) and ((count(*) >= ${STEADY_DAYS} and ${ruleCount((word) => `bit_or(${word})`)} <= ${STEADY_RULES}) or (count(*) >= ${LOYAL_DAYS} and min(first_path) = max(last_path)))`,
    // A partner or a job of the site comes from changing addresses, one a day.
    raw(`create temp table loyal as select ua_key, true as is_loyal
      from (select ua_key, min(path_key) as first_path, max(path_key) as last_path, coalesce(min(sender) = max(sender), true) as is_one
        from all_requests where says & ${NAMES.program} > 0 and ua_key <> hash('') group by ua_key, day)
      group by ua_key having count(*) >= ${LOYAL_DAYS} and min(first_path) = max(last_path) and bool_and(is_one)`),
    raw(`create temp table free_paths as select path_key, true as is_free from all_requests where says & ${TRUE.session} > 0
      group by path_key having count(*) >= ${FREE_REQUESTS} and count(*) filter (says & ${TRUE.idiom} > 0) * 2 < count(*)`),
    raw(
      `create temp table zone_signs as select coalesce(bool_or(says & ${LED} > 0), false) as has_led from all_requests`,
    ),
    ...(["ja4", "asn"] as const).flatMap((dimension) => [
      raw(`create temp table senders_${dimension} as select ${dimension}_key, count(*) filter (says & ${LED} > 0) * 100 >= count(*) * ${LED_PERCENT} as is_led,
        count(*) filter (says & ${ATTACKS} > 0) * 100 >= count(*) * ${LED_PERCENT}${dimension === "asn" ? "" : ` or (approx_count_distinct(asn_key) >= ${PRETENDER_NETWORKS} and ${PRETENDS.join(" + ")} >= 2)`} as attacks from all_requests group by all`),
      // Passing tools make their fingerprints and networks usual, too. Those of people have sessions, if any request of the zone has one.
      raw(`create temp table usual_${dimension} as select ${dimension}_key, since from senders_${dimension}
        join usual on dimension = '${dimension}' and value_hash = ${dimension}_key cross join zone_signs where case when has_led then is_led else not attacks end`),
    ]),
    duck`create temp table found_requests as select request, bit_or(bit) as found from (${join(toFoundRequests(findings), " union all ")}) group by request`,
  ];
  const signs = `((says & ${TRUE.session} > 0)::integer + (says & ${TRUE.referer} > 0)::integer
    + coalesce(usual_ja4.since < first_at, false)::integer + coalesce(usual_asn.since < first_at, false)::integer)`;
  const sure = raw(`case when has_led then ${SURE_SIGNS} else ${VISITOR_SIGNS} end`);
  const unknownDays = source.files
    .filter(({ format }) => format < ARCHIVE_FORMAT)
    .map(({ path }) => dayOf(path));
  const isOld = unknownDays.length === 0 ? "false" : `day in (${unknownDays.join(", ")})`;
  const columns = [
    "request",
    "first_at",
    "day",
    "sender",
    "path_key",
    ...words.map((word) => `w${word}`),
    ...texts,
  ];
  const requests = duck`
    select ${raw(columns.join(", "))}, says & ${SAYS.stopped} > 0 as is_stopped, case when ${raw(isOld)} then 'unknown'
      when says & ${SAYS.machine} > 0 then 'machine'
      when says & ${SAYS.attacker} > 0 or (is_attacker and signs < ${sure} and says & ${NAMES.bot} = 0) then 'hostile'
      when says & ${SAYS.misfire} > 0 and signs > 0 then 'visitor'
      when is_steady or is_loyal then 'machine'
      when says & ${TRUE.tool} > 0 or (says & ${SAYS.probe} > 0 and signs < ${SURE_SIGNS}) or (says & ${TRUE.idiom} > 0 and signs < ${sure} and not (says & ${TRUE.session} > 0 and is_free)) or (says & ${SAYS.shared} > 0 and signs < ${VISITOR_SIGNS}) then 'hostile'
      when signs >= ${VISITOR_SIGNS} then 'visitor' when attacks and not is_led and ja4_key <> hash('') then 'hostile' else 'unknown' end as class
    from (select a.* exclude (says), says | coalesce(found, 0) as says, coalesce(several + single - coalesce(own, 0) >= ${DIRTY_RULES}, false) as is_attacker,
        coalesce(is_steady, false) as is_steady, coalesce(is_loyal, false) as is_loyal, coalesce(is_free, false) as is_free, attacks, is_led, ${raw(signs)} as signs
      from all_requests a left join senders using (sender, day) left join own_rules using (sender, day, path_key) left join steady using (sender) left join loyal using (ua_key) left join free_paths using (path_key) left join senders_ja4 using (ja4_key)
      left join found_requests using (request)
      left join usual_ja4 using (ja4_key) left join usual_asn using (asn_key)) cross join zone_signs`;
  return { prepare, requests, events, toActionSql };
}

/** Returns the day (since the epoch) that a file's folder names. */
function dayOf(path: string): number {
  return Math.floor(Date.parse(/day=([0-9-]{10})/.exec(path)?.[1] ?? "") / DAY_MS);
}

/** Returns SELECTs of the requests that findings are about, each with a bit of `SAYS`. */
function toFoundRequests(findings: readonly RequestFinding[]): Piece[] {
  const isIn = `a.first_at between found."from" and found."to"`;
  return [...new Set(["ip" as const, ...findings.map(({ kind }) => kind)])].map((kind) => {
    const isOf =
      kind === "rule"
        ? words.map((word) => `a.w${word} & found.w${word} <> 0`).join(" or ")
        : `found.key_hash = a.${KEY_OF[kind]}`;
    const table =
      kind === "rule" ? "(select * from found join request_rules on rule_id = key) found" : "found";
    return raw(
      `select request, bit from all_requests a join ${table} on found.kind = '${kind}' and (${isOf}) and ${isIn}`,
    );
  });
}

function ofNetworks(findings: readonly RequestFinding[]): SearchPlan["clauses"] {
  return planFilters([{ field: "ip", op: "cidr", value: [...new Set(findings.map(({ key }) => key))] }]);
}

/** Returns `false` for an empty list. */
function anyOf(tests: readonly Piece[]): Piece {
  return tests.length === 0 ? raw("false") : duck`(${join(tests, " or ")})`;
}
