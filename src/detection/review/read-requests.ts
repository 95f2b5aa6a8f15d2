/** Reads the classified requests of a zone, of files and rows alike. */

import { planFilters } from "#archive/rules/query/plan-search.ts";
import {
  CLASSIFIED_COLUMNS,
  type Classified,
  classifyRequests,
  type RequestText,
  type SenderKnowledge,
} from "#archive/rules/sql/classify-requests.ts";
import type { Piece } from "#archive/rules/sql/to-condition.ts";
import { readUnion } from "#archive/search/read-union.ts";
import type { SearchDeps } from "#archive/search/searching.ts";
import { inSearchView } from "#db/archive/search-condition.ts";
import type { Queryable } from "#db/client.ts";
import { listKnownSources, toKnownSource } from "#db/detection/exclusions.ts";
import { readRequestFindings, readUsualSenders } from "#db/detection/request-findings.ts";
import { CRAWLERS } from "#detection/rules/verdict/crawlers.ts";
import type { ActionStates } from "#model/action-class.ts";
import { ARCHIVE_FORMAT } from "#model/archive-layout.ts";
import type { Span } from "#model/horizon.ts";
import type { KnownSource } from "#model/known-source.ts";

interface Asked {
  readonly zoneId: number;
  readonly span: Span;
  /** The known sources of the configuration file. */
  readonly knownSources: readonly KnownSource[];
  readonly actions: ActionStates;
}

interface Wanted {
  /** Texts of requests that the statement reads. Each costs memory. Default: none. */
  readonly texts?: readonly RequestText[];
  readonly write: (classified: Classified) => Piece;
}

/** The rows of a statement over classified requests. */
interface ReadRequests extends Pick<SenderKnowledge, "usual"> {
  readonly rows: readonly string[];
  /** The days in the span whose files are of an older format and have no facts (`yyyy-mm-dd`): their requests are unknown. */
  readonly olderDays: readonly string[];
}

/** Runs a statement over the requests of a span and returns its first column. */
export async function readRequests(
  deps: SearchDeps,
  asked: Asked,
  { texts = [], write }: Wanted,
  signal: AbortSignal,
): Promise<ReadRequests> {
  const { zoneId, span } = asked;
  const knowledge = await inSearchView(deps.queries, signal, (tx) => readKnowledge(tx, asked));
  const options = { columns: CLASSIFIED_COLUMNS, signal };
  const { rows, days } = await readUnion(deps, [zoneId], { ...span, clauses: [] }, options, (source) => {
    const classified = classifyRequests(source, span, knowledge, texts);
    return [...classified.prepare, write(classified)];
  });
  const older = days.filter(({ events }) => events.format < ARCHIVE_FORMAT);
  return { rows, olderDays: older.map(({ events: { day } }) => day), usual: knowledge.usual };
}

/** The platform may write a network as 64500, AS64500 or AS64500 Example Hosting. */
function toClauses(known: readonly KnownSource[]): SenderKnowledge["known"] {
  return Array.from(
    Map.groupBy(known, ({ kind }) => kind),
    ([field, ofKind]) => {
      const patterns = ofKind.map(({ pattern }) => pattern);
      const numbers = patterns.map((pattern) => pattern.replace(/^AS/i, ""));
      if (field === "asn")
        return {
          field,
          op: "wildcard" as const,
          value: numbers.flatMap((one) => [one, `AS${one}`, `AS${one} *`]),
        };
      return {
        field,
        op: field === "ip" ? ("cidr" as const) : field === "ua" ? ("wildcard" as const) : ("in" as const),
        value: patterns,
      };
    },
  ).flatMap((filter) => planFilters([filter]));
}

async function readKnowledge(
  tx: Queryable,
  { zoneId, span, knownSources, actions }: Asked,
): Promise<SenderKnowledge> {
  const stored = (await listKnownSources(tx)).map(toKnownSource);
  const known = [...knownSources, ...stored].filter(
    ({ zoneIds, untilMs }) => (zoneIds?.includes(zoneId) ?? true) && (untilMs === null || untilMs > span.to),
  );
  return {
    findings: await readRequestFindings(tx, zoneId, span),
    usual: await readUsualSenders(tx, zoneId, span.to),
    known: toClauses(known),
    crawlers: CRAWLERS.filter(({ networks }) => networks.length > 0).map(({ agent, networks }) => ({
      agent: agent.source,
      networks,
    })),
    toActionSql: actions.toSql,
  };
}
