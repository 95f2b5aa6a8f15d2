import { isObject } from "#lib/json.ts";
import { createMapping, type Template } from "./elastic-mapping.ts";
import { type Answer, type Arrived, type Received, type Receiver, startReceiver } from "./receiver.ts";

type Document = Readonly<Record<string, unknown>>;

interface BulkLine extends Arrived {
  readonly op: "create" | "index";
  readonly index: string;
}

const VENDOR_TYPE = /application\/vnd\.elasticsearch\+json; ?compatible-with=(\d+)/;

function failure(status: number, type: string, reason: string): Answer {
  return { status, body: { error: { root_cause: [{ type, reason }], type, reason }, status } };
}

/** Returns whether a document matches a query: match_all, ids, range, term and bool with filter. */
function matches(query: Document, id: string, document: Document): boolean {
  return Object.entries(query).every(([name, clause]) => {
    if (name === "match_all") return true;
    if (name === "bool") {
      const filter = [(clause as { filter?: Document | Document[] }).filter ?? []].flat();
      return filter.every((one) => matches(one, id, document));
    }
    if (name === "ids") return (clause as { values: string[] }).values.includes(id);
    const [field = "", wanted] = Object.entries(clause as Document)[0] ?? [];
    const value = document[field];
    if (name === "term") return value === (isObject(wanted) ? wanted["value"] : wanted);
    if (name !== "range") throw new Error(`unknown query [${name}]`);
    const { gte = "", lt = "" } = wanted as { gte?: number | string; lt?: number | string };
    const at = Date.parse(String(value));
    return at >= new Date(gte).getTime() && at < new Date(lt).getTime();
  });
}

function readBulk(text: string): BulkLine[] {
  if (!text.endsWith("\n")) throw new Error("The bulk request must be terminated by a newline [\\n]");
  const lines = text.slice(0, -1).split("\n");
  const found: BulkLine[] = [];
  for (let at = 0; at < lines.length; at += 2) {
    const [[op, action] = []] = Object.entries(JSON.parse(lines[at] ?? "") as Document);
    if (op !== "create" && op !== "index") throw new Error(`Malformed action/metadata line [${at + 1}]`);
    const { _index: index, _id: id } = action as { _index: string; _id: string };
    found.push({ op, index, id, body: JSON.parse(lines[at + 1] ?? "") });
  }
  return found;
}

/**
 * Elasticsearch, as far as its client needs it to store, count and search documents. New fields are mapped as documented, and a
 * document that does not fit is refused. `mayInstall`: whether the key may install index templates.
 */
export function startElasticReceiver({
  authorization,
  mayInstall = true,
}: {
  readonly authorization: string;
  readonly mayInstall?: boolean;
}): Promise<Receiver> {
  const indexes = new Map<string, ReturnType<typeof createMapping>>();
  const templates = new Map<string, Template>();

  function mappingOf(index: string) {
    const template = [...templates.values()].find(({ index_patterns }) => index_patterns.includes(index));
    const mapping = indexes.get(index) ?? createMapping(template);
    indexes.set(index, mapping);
    return mapping;
  }

  function find(request: Received, stored: ReadonlyMap<string, unknown>): Document[] {
    const { query = { match_all: {} } } = JSON.parse(request.text === "" ? "{}" : request.text) as {
      query?: Document;
    };
    return [...stored].flatMap(([_id, _source]) =>
      matches(query, _id, _source as Document) ? [{ _index: "events", _id, _score: 1, _source }] : [],
    );
  }

  const shards = { total: 1, successful: 1, skipped: 0, failed: 0 };
  return startReceiver({
    headers: ({ headers }) => {
      const version = VENDOR_TYPE.exec(headers.accept ?? "")?.[1];
      const type = `application/vnd.elasticsearch+json;compatible-with=${version}`;
      return {
        "x-elastic-product": "Elasticsearch",
        ...(version === undefined ? {} : { "content-type": type }),
      };
    },
    failure: (status, reason = "rejected execution") =>
      failure(
        status,
        status === 400 ? "illegal_argument_exception" : "es_rejected_execution_exception",
        reason,
      ).body,
    answer(request, stored) {
      if (request.headers.authorization !== authorization)
        return failure(401, "security_exception", "missing or wrong authentication credentials");
      const { path, query } = request;
      if (path === "/_bulk") return null;
      const [, kind, name = ""] = path.split("/");
      if (kind === "_index_template") {
        if (!mayInstall) return failure(403, "security_exception", "action is unauthorized");
        if (query.get("create") === "true" && templates.has(name))
          return failure(400, "illegal_argument_exception", `index template [${name}] already exists`);
        templates.set(name, JSON.parse(request.text) as Template);
        return { status: 200, body: { acknowledged: true } };
      }
      if (path === "/")
        return { status: 200, body: { version: { number: "9.1.0" }, tagline: "You Know, for Search" } };
      const [, index = "", route] = path.split("/");
      if (route === "_refresh") return { status: 200, body: { _shards: shards } };
      const isKnown = index === "_all" || indexes.has(index) || query.get("ignore_unavailable") === "true";
      if (!isKnown) return failure(404, "index_not_found_exception", `no such index [${index}]`);
      const hits = find(request, stored);
      if (route === "_count") return { status: 200, body: { count: hits.length, _shards: shards } };
      const total = { value: hits.length, relation: "eq" };
      return {
        status: 200,
        body: { took: 1, timed_out: false, _shards: shards, hits: { total, max_score: 1, hits } },
      };
    },
    read: ({ text }) => readBulk(text),
    take(events, { refused, postponed, isStored, store }) {
      const items = (events as readonly BulkLine[]).map((event) => {
        const { op, index: _index, id: _id, body } = event;
        const result = (status: number, type?: string, reason?: string) => ({
          [op]: { _index, _id, status, ...(type === undefined ? {} : { error: { type, reason } }) },
        });
        if (postponed.has(_id)) return result(429, "es_rejected_execution_exception", "queue capacity");
        if (refused.has(_id) || !isObject(body))
          return result(400, "document_parsing_exception", "failed to parse field [status]");
        const mistake = mappingOf(_index)(body);
        if (mistake !== null) return result(400, "document_parsing_exception", mistake);
        if (op === "create" && isStored(_id))
          return result(409, "version_conflict_engine_exception", "exists");
        return result(store(event) ? 201 : 200);
      });
      const errors = items.some((item) => Object.values(item).some(({ status }) => status >= 300));
      return { status: 200, body: { took: 1, errors, items } };
    },
  });
}
