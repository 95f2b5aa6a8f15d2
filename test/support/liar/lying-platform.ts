import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse, request as sendRequest } from "node:http";
import type { AddressInfo } from "node:net";
import { answerForeign } from "./answer-foreign.ts";
import { answerList } from "./answer-list.ts";
import { answerMetrics } from "./answer-metrics.ts";
import { answerCounts, answerExport, answerSearch, isGrouped } from "./answer-search.ts";
import type { LiarRequest } from "./asked.ts";
import { isBending, isHiding } from "./bend-entries.ts";
import { type ActiveLie, isActiveFor, type Lie, type Question, type Route } from "./lie.ts";
import { createPassMemory } from "./pass-memory.ts";
import { createTruePlatform, Unbendable } from "./true-platform.ts";
import { createWitness, type Witness } from "./witness.ts";

/** How often a lie was used. */
export interface LieTally {
  readonly lie: Lie;
  /** Answers that the lie changed, and events in them. An event counts once per answer. */
  answers: number;
  events: number;
}

export interface LyingPlatformOptions {
  /** URL of the emulator. */
  readonly url: string;
  /** The emulator's clock. */
  readonly now: () => number;
  /**
   * True to read every answer, and to send more requests to the emulator, so that `witness` knows what was shown and
   * counted.
   */
  readonly isWitnessed: boolean;
}

export interface LyingPlatform {
  readonly url: string;
  readonly port: number;
  /** Applies the lie from its beginning on; `end` removes this one. */
  tell(lie: Lie): { readonly tally: Readonly<LieTally>; readonly end: () => void };
  /** Removes all lies. */
  stop(): void;
  /** Returns whether a lie changes what the search shows of this event now. */
  isHidden(zone: number, event: { readonly logId: string; readonly timestamp: number }): boolean;
  /** Returns the tallies of all lies so far, in order. */
  tallies(): readonly LieTally[];
  /** Returns the service's requests so far, by zone and route. */
  requests(): ReadonlyMap<number, Readonly<Record<Route, number>>>;
  readonly witness: Witness;
  close(): Promise<void>;
}

/** A lie that is told now. */
interface Telling {
  readonly tally: LieTally;
  readonly lie: ActiveLie;
}

const DAY_SECONDS = 86_400;
const JSON_HEADERS = { "content-type": "application/json; charset=utf-8" };
const CSV_HEADERS = { "content-type": "text/csv; charset=utf-8" };

const ROUTE_PATHS: readonly (readonly [pattern: RegExp, route: Route])[] = [
  [/^\/shield\/event-logs\/(\d+)\/search$/, "search"],
  [/^\/shield\/event-logs\/(\d+)\/export$/, "export"],
  [/^\/shield\/event-logs\/(\d+)\/\d\d-\d\d-\d{4}(?:\/.*)?$/, "list"],
  [/^\/shield\/metrics\/shield-zone\/(\d+)\/waf-rule\/[^/]+$/, "metrics"],
];

const ANSWERS: Readonly<Record<Route, (asked: LiarRequest) => Promise<unknown>>> = {
  search: answerSearch,
  counts: answerCounts,
  list: answerList,
  export: answerExport,
  metrics: answerMetrics,
};

/**
 * Starts a proxy between the service and the emulator. Answers without a lie are passed on byte for byte, faults of
 * the transport included. The others are made from the emulator's true answers, so that totals, pages and counts of
 * one answer fit each other and the same lie on two routes hides the same events.
 */
export async function startLyingPlatform(options: LyingPlatformOptions): Promise<LyingPlatform> {
  const witness = createWitness();
  const requests = new Map<number, Record<Route, number>>();
  const passes = createPassMemory();
  const told: LieTally[] = [];
  let active: Telling[] = [];

  function consider(request: IncomingMessage, bytes: Buffer): LiarRequest | null {
    const path = (request.url ?? "/").split("?")[0] ?? "/";
    const question = readQuestion(path, bytes);
    if (question === null) return null;
    const counts = requests.get(question.zone) ?? { search: 0, counts: 0, list: 0, export: 0, metrics: 0 };
    counts[question.route]++;
    requests.set(question.zone, counts);
    const now = options.now();
    const applied = active.filter(({ lie }) => isActiveFor(lie, question, now));
    const accessKey = String(request.headers["accesskey"] ?? "");
    return {
      ...question,
      path,
      now,
      witness,
      truth: createTruePlatform(options.url, accessKey, options.now),
      passes,
      lies: applied.map(({ lie }) => lie),
      ...createTalliers(applied),
    };
  }

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const bytes = await readBody(request);
    const asked = consider(request, bytes);
    if (asked === null || (asked.lies.length === 0 && !options.isWitnessed)) {
      await relay(options.url, { request, bytes }, response);
      return;
    }
    const refusal = asked.lies.find(({ kind }) => kind === "refuses");
    if (refusal !== undefined) {
      asked.note(refusal, 0);
      const headers = { ...JSON_HEADERS, "retry-after": String(refusal.retryAfter ?? DAY_SECONDS) };
      response.writeHead(429, headers).end(JSON.stringify({ Message: "Too many requests." }));
      return;
    }
    const foreign = asked.lies.find(({ kind }) => kind === "foreign");
    try {
      const made = await (foreign === undefined
        ? ANSWERS[asked.route](asked)
        : answerForeign(asked, foreign));
      if (typeof made === "string") response.writeHead(200, CSV_HEADERS).end(made);
      else response.writeHead(200, JSON_HEADERS).end(JSON.stringify(made));
    } catch (thrown) {
      if (!(thrown instanceof Unbendable)) throw thrown;
      response.writeHead(thrown.status, { "content-type": thrown.contentType }).end(thrown.body);
    }
  }

  const server = createServer((request, response) => {
    // The emulator cut the connection, or the caller disconnected. The caller sees a cut connection.
    answer(request, response).catch(() => response.destroy());
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    port,
    tell(lie) {
      const tally = { lie, answers: 0, events: 0 };
      told.push(tally);
      const telling = { tally, lie: { ...lie, chosen: new Set<string>(), reads: new Map<string, number>() } };
      active.push(telling);
      const end = () => void (active = active.filter((other) => other !== telling));
      return { tally, end };
    },
    stop() {
      active = [];
    },
    isHidden: (zone, event) =>
      active.some(({ lie }) => {
        const now = options.now();
        return isActiveFor(lie, { route: "search", zone }, now) && isHiding(lie, event, now);
      }),
    tallies: () => told,
    requests: () => requests,
    witness,
    async close() {
      const closed = once(server, "close");
      server.close();
      server.closeAllConnections();
      await closed;
    },
  };
}

function readQuestion(path: string, bytes: Buffer): (Question & { body: unknown }) | null {
  for (const [pattern, route] of ROUTE_PATHS) {
    const [, zone] = pattern.exec(path) ?? [];
    if (zone === undefined) continue;
    if (route !== "search" && route !== "export") return { route, zone: Number(zone), body: undefined };
    try {
      const body: unknown = JSON.parse(bytes.toString());
      return { route: route === "search" && isGrouped(body) ? "counts" : route, zone: Number(zone), body };
    } catch {
      return null;
    }
  }
  return null;
}

function createTalliers(
  applied: readonly Telling[],
): Pick<LiarRequest, "tally" | "note" | "emptyPage" | "contradict"> {
  const tallies = applied.map(({ tally }) => tally);
  const note = (lie: ActiveLie, events: number) => {
    const tally = applied.find((telling) => telling.lie === lie)?.tally;
    if (tally === undefined) return;
    tally.answers++;
    tally.events += events;
  };
  return {
    note,
    tally(changed) {
      for (const { lie } of applied) {
        const events = changed.filter((event) => isBending(lie, event)).length;
        if (events > 0) note(lie, events);
      }
    },
    emptyPage() {
      const emptying = tallies.find(({ lie, answers }) => {
        return lie.kind === "emptyPage" && answers < (lie.pages ?? Number.POSITIVE_INFINITY);
      });
      if (emptying === undefined) return false;
      emptying.answers++;
      return true;
    },
    contradict() {
      const contradicting = tallies.find(({ lie }) => lie.kind === "contradictory");
      if (contradicting === undefined) return false;
      contradicting.answers++;
      return true;
    },
  };
}

async function readBody(request: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
}

interface Relayed {
  readonly request: IncomingMessage;
  readonly bytes: Buffer;
}

/** Passes a request and its answer on unchanged, chunk by chunk. */
async function relay(baseUrl: string, { request, bytes }: Relayed, response: ServerResponse): Promise<void> {
  const { method = "GET", url = "/" } = request;
  const headers = { ...request.headers, host: new URL(baseUrl).host };
  const onward = sendRequest(baseUrl + url, { method, headers });
  response.once("close", () => onward.destroy());
  onward.end(bytes);
  const [original] = (await once(onward, "response")) as [IncomingMessage];
  response.writeHead(original.statusCode ?? 502, original.headers);
  response.flushHeaders();
  for await (const chunk of original) response.write(chunk);
  response.end();
}
